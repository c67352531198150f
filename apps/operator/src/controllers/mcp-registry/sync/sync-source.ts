import { formatKey, type ObjectKey, parseKey, type Source } from '@thv/kube'

/** Ends of syncs wake the controller. One per set of caches, as all else that controllers share. */
const listeners = new WeakMap<object, Set<(key: ObjectKey) => void>>()

export function syncSource(caches: object): Source {
  return {
    name: 'registry syncs',
    hasSynced: true,
    waitForSync: async () => {},
    subscribe(enqueue) {
      const all = listeners.get(caches) ?? new Set()
      listeners.set(caches, all)
      all.add(enqueue)
      return () => void all.delete(enqueue)
    },
  }
}

export function wakeRegistry(caches: object, key: ObjectKey): void {
  for (const enqueue of listeners.get(caches) ?? []) enqueue(parseKey(formatKey(key)))
}
