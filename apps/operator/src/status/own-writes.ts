import { compareResourceVersions, type KubeClient, type KubeObject, keyOf, type ResourceType } from '@thv/kube'

/*
 * A status that goes to and fro faster than the cache follows: the last write is not in the cache yet, and what is wanted now equals what
 * the cache still has. Nothing would be written, and no event would wake anybody, since own writes of a status wake nobody.
 */

/** Versions of the last own writes that a cache may not have yet, by uid. */
const behind = new WeakMap<object, Map<string, string>>()
/** Only what was deleted before the cache saw its last write stays: more than this is forgotten. */
const MAX_NOTED = 10_000

export function noteOwnWrite(client: Pick<KubeClient, 'tryGet'>, { metadata }: KubeObject): void {
  const { uid, resourceVersion } = metadata
  if (uid === undefined || resourceVersion === undefined) return
  const noted = behind.get(client) ?? new Map<string, string>()
  behind.set(client, noted)
  if (noted.size >= MAX_NOTED) noted.clear()
  noted.set(uid, resourceVersion)
}

/** The cached object, or the server's when the cache is behind an own write; undefined when it is gone, or another has its name. */
export async function withOwnWrites<T extends KubeObject>(
  client: Pick<KubeClient, 'tryGet'>,
  { type, cached }: { type: ResourceType<T>; cached: T },
  signal: AbortSignal,
): Promise<T | undefined> {
  const { uid = '', resourceVersion } = cached.metadata
  const noted = behind.get(client)
  const written = noted?.get(uid)
  if (written === undefined) return cached
  if ((compareResourceVersions(resourceVersion, written) ?? 0) >= 0) {
    noted?.delete(uid)
    return cached
  }
  const fresh = await client.tryGet(type, keyOf(cached), { signal })
  return fresh?.metadata.uid === uid ? fresh : undefined
}
