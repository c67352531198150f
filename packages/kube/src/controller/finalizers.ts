import type { JsonPatchOp, KubeClient } from '../client/client.ts'
import { isConflict, isInvalid, isNotFound } from '../client/kube-api-error.ts'
import { type ConflictRetryOptions, retryOnConflict } from '../client/retry-on-conflict.ts'
import { keyOf } from '../objects/object-key.ts'
import type { KubeObject, ResourceType } from '../objects/types.ts'

export function hasFinalizer(object: KubeObject, name: string): boolean {
  return object.metadata.finalizers?.includes(name) ?? false
}

/**
 * The patch that adds a finalizer, undefined when it is there. It fails when somebody changed the list meanwhile (or, when there was no
 * list, anything): no edit of others is lost.
 */
export function addFinalizer(object: KubeObject, name: string): JsonPatchOp[] | undefined {
  const { finalizers, resourceVersion } = object.metadata
  if (hasFinalizer(object, name)) return undefined
  if (finalizers !== undefined && finalizers.length > 0) {
    return [
      { op: 'test', path: '/metadata/finalizers', value: finalizers },
      { op: 'add', path: '/metadata/finalizers/-', value: name },
    ]
  }
  return [
    { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
    { op: 'add', path: '/metadata/finalizers', value: [name] },
  ]
}

/** The patch that removes a finalizer, undefined when it is not there. */
export function removeFinalizer(object: KubeObject, name: string): JsonPatchOp[] | undefined {
  const { finalizers = [] } = object.metadata
  const at = finalizers.indexOf(name)
  if (at < 0) return undefined
  return [
    { op: 'test', path: '/metadata/finalizers', value: finalizers },
    { op: 'remove', path: `/metadata/finalizers/${at}` },
  ]
}

type FinalizerClient = Pick<KubeClient, 'tryGet' | 'patch'>

/**
 * Adds the finalizer if it is missing. Returns the object as it then is; undefined when it is gone, or when another one has its name
 * now. An object that is being deleted can take no finalizer and comes back without it: look at its deletionTimestamp.
 */
export async function ensureFinalizer<T extends KubeObject>(
  client: FinalizerClient,
  target: { type: ResourceType<T>; object: T; name: string },
  options: ConflictRetryOptions = {},
): Promise<T | undefined> {
  return await edit(client, target, {
    ...options,
    patchOf: (object) => (isDeleting(object) ? undefined : addFinalizer(object, target.name)),
  })
}

/** Removes the finalizer if it is there, which may be what the object's deletion waits for. Returns as `ensureFinalizer`. */
export async function dropFinalizer<T extends KubeObject>(
  client: FinalizerClient,
  target: { type: ResourceType<T>; object: T; name: string },
  options: ConflictRetryOptions = {},
): Promise<T | undefined> {
  return await edit(client, target, { ...options, patchOf: (object) => removeFinalizer(object, target.name) })
}

/** The first try trusts the given object, which may come from a cache; each further one reads it again. */
async function edit<T extends KubeObject>(
  client: FinalizerClient,
  { type, object }: { type: ResourceType<T>; object: T },
  options: ConflictRetryOptions & { patchOf: (object: T) => JsonPatchOp[] | undefined },
): Promise<T | undefined> {
  const key = keyOf(object)
  const { signal } = options
  let tried: string | undefined
  let isRepeated = false
  return await retryOnConflict(
    async (attempt) => {
      const current = attempt === 1 ? object : await client.tryGet(type, key, { signal })
      if (current === undefined || current.metadata.uid !== object.metadata.uid) return undefined
      const ops = options.patchOf(current)
      if (ops === undefined) return current
      isRepeated = JSON.stringify(ops) === tried
      tried = JSON.stringify(ops)
      try {
        return await client.patch(type, key, { kind: 'json', ops }, { signal })
      } catch (error) {
        if (isNotFound(error)) return undefined
        throw error
      }
    },
    // A failed `test` is answered with 422, like an object that the server finds invalid. Refused again on fresh state, it was no race.
    (error) => isConflict(error) || (isInvalid(error) && !isRepeated),
    options,
  )
}

function isDeleting(object: KubeObject): boolean {
  return object.metadata.deletionTimestamp !== undefined
}
