import { jsonEqual } from '@thv/kernel/json'
import type { JsonPatchOp, KubeClient } from '../client/client.ts'
import { isConflict, isInvalid, isNotFound } from '../client/kube-api-error.ts'
import { type ConflictRetryOptions, retryOnConflict } from '../client/retry-on-conflict.ts'
import type { KubeObject, ObjectKey, ResourceType } from '../objects/types.ts'
import { noteOwnWrite, withOwnWrites } from './own-writes.ts'

export interface StatusTarget<T extends KubeObject> {
  type: ResourceType<T>
  key: ObjectKey
  /**
   * The object as a cache has it: saves the read. When it is behind our own last write, that is taken; when it is behind somebody else's,
   * the server says so and it is read again.
   */
  cached?: T | undefined
}

export interface StatusWrite<T extends KubeObject> {
  readonly written: boolean
  /** As it was before; undefined when it was gone already. */
  readonly before?: T | undefined
  /** As it is now; undefined when it is gone, or when another one has its name. */
  readonly object: T | undefined
}

export interface StatusWriteOptions<T extends KubeObject> extends ConflictRetryOptions {
  mutate: (current: T) => object | undefined
  /**
   * The members of the status that `mutate` looks at. After a first conflict only a change of these is one: a client that writes other
   * members, or metadata, however often, does not keep the status from being written. Without it every write of others counts.
   */
  reads?: readonly string[] | undefined
}

/**
 * Writes what `mutate` makes of the current object into its status: one request, none when that would change nothing or `mutate` returns
 * undefined. When somebody else wrote first, `mutate` is asked again about the fresh object, so it must be pure. After the last conflict
 * that is thrown.
 */
export async function writeStatus<T extends KubeObject>(
  client: Pick<KubeClient, 'tryGet' | 'patch'>,
  target: StatusTarget<T>,
  options: StatusWriteOptions<T>,
): Promise<StatusWrite<T>> {
  const { type, key, cached } = target
  const { signal, reads } = options
  let tried: string | undefined
  let isRepeated = true
  return await retryOnConflict(
    async (attempt) => {
      const current = attempt === 1 && cached !== undefined ? withOwnWrites(client, cached) : await client.tryGet(type, key, { signal })
      // Another object may have the name by now; what was found out is not about that one.
      const isOther = cached?.metadata.uid !== undefined && current?.metadata.uid !== cached.metadata.uid
      if (current === undefined || isOther) return { written: false, object: undefined }
      const status = options.mutate(current)
      if (status === undefined || jsonEqual(status, statusOf(current))) return { written: false, before: current, object: current }
      const guards = (attempt > 1 && reads && guardsOf(current, reads)) || undefined
      isRepeated = guards === undefined || JSON.stringify(guards) === tried
      tried = guards && JSON.stringify(guards)
      const ops = guards ? [...guards, setStatus(status)] : statusPatch(current, status)
      try {
        const object = await client.patch(type, key, { kind: 'json', ops }, { subresource: 'status', signal })
        noteOwnWrite(client, object)
        return { written: true, before: current, object }
      } catch (error) {
        if (isNotFound(error)) return { written: false, object: undefined }
        throw error
      }
    },
    // A failed `test` is answered with 422, like an object that the server finds invalid. Refused again on the same state, it was no race.
    (error) => isConflict(error) || (isInvalid(error) && !isRepeated),
    options,
  )
}

/** Replaces the status whole; a resourceVersion in the result that is not the current one makes the server answer 409. */
function statusPatch(current: KubeObject, status: object): JsonPatchOp[] {
  return [{ op: 'replace', path: '/metadata/resourceVersion', value: current.metadata.resourceVersion }, setStatus(status)]
}

function setStatus(status: object): JsonPatchOp {
  return { op: 'add', path: '/status', value: status }
}

/** The same object with the same members. Undefined when one of them is absent, as no `test` can say that. */
function guardsOf(current: KubeObject, members: readonly string[]): JsonPatchOp[] | undefined {
  const status = statusOf(current) as Readonly<Record<string, unknown>> | undefined
  if (members.some((member) => status?.[member] === undefined)) return undefined
  return [
    { op: 'test', path: '/metadata/uid', value: current.metadata.uid },
    ...members.map((member): JsonPatchOp => ({ op: 'test', path: `/status/${member}`, value: status?.[member] })),
  ]
}

function statusOf(object: KubeObject): unknown {
  return 'status' in object ? object.status : undefined
}
