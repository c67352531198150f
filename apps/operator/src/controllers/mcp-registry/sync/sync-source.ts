import { formatKey, type ObjectKey, parseKey, type Source } from '@thv/kube'

/** Ends of syncs wake the controller. One per set of caches, as all else that controllers share. */
const listeners = new WeakMap<object, Set<(key: ObjectKey) => void>>()
const endings = new WeakMap<object, Set<() => void>>()

export function syncSource(caches: object): Source {
  return {
    name: 'registry syncs',
    hasSynced: true,
    waitForSync: async () => {},
    subscribe(enqueue) {
      const all = listeners.get(caches) ?? new Set()
      listeners.set(caches, all)
      all.add(enqueue)
      return () => {
        all.delete(enqueue)
        for (const end of endings.get(caches) ?? []) end()
      }
    },
  }
}

export function wakeRegistry(caches: object, key: ObjectKey): void {
  for (const enqueue of listeners.get(caches) ?? []) enqueue(parseKey(formatKey(key)))
}

/** `end` is called whenever the controller stops: at the end of the process, and when the lease is lost. */
export function onControllerEnd(caches: object, end: () => void): void {
  endings.set(caches, (endings.get(caches) ?? new Set()).add(end))
}
