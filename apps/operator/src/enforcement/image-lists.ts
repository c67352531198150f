import { formatKey, type ObjectKey, parseKey, type Source } from '@thv/kube'

/** The images that one registry lists. */
export interface ImageList {
  readonly hashes: ReadonlySet<string>
}

/** Last known images of the registries with `enforceServers`. The MCPRegistry controller writes it, that of MCPServers reads. */
export interface ImageLists {
  get(registry: ObjectKey): ImageList | undefined
  /** Wakes readers if the list is another. */
  set(registry: ObjectKey, list: ImageList): void
  forget(registry: ObjectKey): void
  /** Registries whose list changed. */
  source(mapped: (registry: ObjectKey) => readonly ObjectKey[]): Source
}

const lists = new WeakMap<object, ImageLists>()

/** One per operator, as all else that controllers share. */
export function imageListsOf(caches: object): ImageLists {
  const known = lists.get(caches) ?? createImageLists()
  lists.set(caches, known)
  return known
}

function createImageLists(): ImageLists {
  const known = new Map<string, ImageList>()
  const listeners = new Set<(registry: ObjectKey) => void>()
  const tell = (id: string) => {
    for (const listener of listeners) listener(parseKey(id))
  }
  return {
    get: (registry) => known.get(formatKey(registry)),
    set(registry, list) {
      const id = formatKey(registry)
      const before = known.get(id)
      known.set(id, list)
      if (before === undefined || !isSame(before.hashes, list.hashes)) tell(id)
    },
    forget(registry) {
      const id = formatKey(registry)
      if (known.delete(id)) tell(id)
    },
    source: (mapped) => ({
      name: 'images of registries',
      hasSynced: true,
      waitForSync: async () => {},
      subscribe(enqueue) {
        const listener = (registry: ObjectKey) => {
          for (const key of mapped(registry)) enqueue(key)
        }
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    }),
  }
}

function isSame(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a === b || (a.size === b.size && [...a].every((hash) => b.has(hash)))
}
