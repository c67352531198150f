import type { KubeClient } from '../client/client.ts'
import { compareResourceVersions } from '../objects/object-key.ts'
import type { KubeObject } from '../objects/types.ts'

/*
 * A status that goes to and fro faster than the cache follows: the last write is not in the cache yet, and what is wanted now equals what
 * the cache still has. Nothing would be written, and no event would wake the controller, since its own status writes do not.
 */

/** Results of the last own writes that a cache may not have yet, by uid. */
const behind = new WeakMap<object, Map<string, KubeObject>>()
/** Only what was deleted before the cache saw its last write stays: more than this is forgotten. */
const MAX_NOTED = 10_000

export function noteOwnWrite(client: Pick<KubeClient, 'patch'>, written: KubeObject): void {
  const { uid } = written.metadata
  if (uid === undefined) return
  const noted = behind.get(client) ?? new Map<string, KubeObject>()
  behind.set(client, noted)
  if (noted.size >= MAX_NOTED) noted.clear()
  noted.set(uid, written)
}

/** The cached object, or as our last write left it when the cache is behind that. Who wrote since then is found by the conflict. */
export function withOwnWrites<T extends KubeObject>(client: Pick<KubeClient, 'patch'>, cached: T): T {
  const { uid = '', resourceVersion } = cached.metadata
  const noted = behind.get(client)
  const written = noted?.get(uid)
  if (written === undefined) return cached
  if ((compareResourceVersions(resourceVersion, written.metadata.resourceVersion) ?? 0) < 0) return written as T
  noted?.delete(uid)
  return cached
}
