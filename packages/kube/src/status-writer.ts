import { jsonEqual } from '@thv/kernel/json-equal'
import type { JsonPatchOp, KubeClient } from './client.ts'
import { isConflict, isNotFound } from './kube-api-error.ts'
import { noteOwnWrite, withOwnWrites } from './own-writes.ts'
import { type ConflictRetryOptions, retryOnConflict } from './retry-on-conflict.ts'
import type { KubeObject, ObjectKey, ResourceType } from './types.ts'

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

/**
 * Writes what `mutate` makes of the current object into its status: one request, none when that would change nothing or `mutate` returns
 * undefined. When somebody else wrote first, `mutate` is asked again about the fresh object, so it must be pure. After the last conflict
 * that is thrown.
 */
export async function writeStatus<T extends KubeObject>(
  client: Pick<KubeClient, 'tryGet' | 'patch'>,
  target: StatusTarget<T>,
  options: ConflictRetryOptions & { mutate: (current: T) => object | undefined },
): Promise<StatusWrite<T>> {
  const { type, key, cached } = target
  const { signal } = options
  return await retryOnConflict(
    async (attempt) => {
      const current = attempt === 1 && cached !== undefined ? withOwnWrites(client, cached) : await client.tryGet(type, key, { signal })
      // Another object may have the name by now; what was found out is not about that one.
      const isOther = cached?.metadata.uid !== undefined && current?.metadata.uid !== cached.metadata.uid
      if (current === undefined || isOther) return { written: false, object: undefined }
      const status = options.mutate(current)
      if (status === undefined || jsonEqual(status, statusOf(current))) return { written: false, before: current, object: current }
      try {
        const object = await client.patch(type, key, { kind: 'json', ops: statusPatch(current, status) }, { subresource: 'status', signal })
        noteOwnWrite(client, object)
        return { written: true, before: current, object }
      } catch (error) {
        if (isNotFound(error)) return { written: false, object: undefined }
        throw error
      }
    },
    isConflict,
    options,
  )
}

/** Replaces the status whole; a resourceVersion in the result that is not the current one makes the server answer 409. */
function statusPatch(current: KubeObject, status: object): JsonPatchOp[] {
  return [
    { op: 'replace', path: '/metadata/resourceVersion', value: current.metadata.resourceVersion },
    { op: 'add', path: '/status', value: status },
  ]
}

function statusOf(object: KubeObject): unknown {
  return 'status' in object ? object.status : undefined
}
