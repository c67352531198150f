import {
  KubeApiError,
  type KubeObject,
  type ObjectKey,
  type Predicate,
  type Reflector,
  type Source,
  watchMapped,
  watchOwned,
  watchSelf,
} from '@thv/kube'

/**
 * One kind in all watched namespaces: one reflector for all of them, or one for each namespace that the operator may see. Objects are
 * shared by everybody: never change one.
 */
export interface KindCache<T extends KubeObject = KubeObject> {
  get(key: ObjectKey): T | undefined
  list(namespace?: string): T[]
  /** Throws a RangeError for an index that was never added. */
  byIndex(index: string, value: string): T[]
  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void
  /** As sources of a controller: of its own kind, of children, of whatever else concerns its objects. */
  self(...predicates: Predicate<T>[]): Source[]
  owned(owner: { group: string; ownerKind: string }, ...predicates: Predicate<T>[]): Source[]
  mapped(map: (object: T) => readonly ObjectKey[], ...predicates: Predicate<T>[]): Source[]
  /** Whether all objects of a namespace are in the cache. */
  listing(namespace: string | undefined): Listing
  /** A source for the keys that `concerned` gives whenever the listing of a namespace changes; undefined is all of them. */
  listings(concerned: (namespace: string | undefined) => readonly ObjectKey[]): Source[]
  readonly reflectors: readonly Reflector<T>[]
}

/** `rejected`: the API server does not let the operator list them. What was listed before stays in the cache. */
export type Listing = { readonly state: 'complete' | 'pending' } | { readonly state: 'rejected'; readonly error: KubeApiError }

export function kindCache<T extends KubeObject>(byNamespace: ReadonlyMap<string, Reflector<T>>): KindCache<T> {
  const reflectors = [...byNamespace.values()]
  /** The key of the only reflector is '' when it sees all namespaces. */
  const reflectorOf = (namespace: string | undefined) => byNamespace.get('') ?? byNamespace.get(namespace ?? '')
  const storeOf = (namespace: string | undefined) => reflectorOf(namespace)?.store
  return {
    get: (key) => storeOf(key.namespace)?.get(key),
    list: (namespace) =>
      namespace === undefined ? reflectors.flatMap((reflector) => reflector.store.list()) : (storeOf(namespace)?.list({ namespace }) ?? []),
    byIndex: (index, value) => reflectors.flatMap((reflector) => reflector.store.byIndex(index, value)),
    addIndex(name, valuesOf) {
      for (const reflector of reflectors) reflector.store.addIndex(name, valuesOf)
    },
    self: (...predicates) => reflectors.map((reflector) => watchSelf(reflector, ...predicates)),
    owned: (owner, ...predicates) => reflectors.map((reflector) => watchOwned(reflector, owner, ...predicates)),
    mapped: (map, ...predicates) => reflectors.map((reflector) => watchMapped(reflector, map, ...predicates)),
    listing: (namespace) => listingOf(reflectorOf(namespace)),
    listings: (concerned) =>
      [...byNamespace].map(([namespace, reflector]) =>
        withoutWaiting({
          name: reflector.name,
          subscribe: (enqueue) =>
            reflector.addListingHandler(() => {
              for (const key of concerned(namespace || undefined)) enqueue(key)
            }),
        }),
      ),
    reflectors,
  }
}

/** For a controller that can work before the source is complete. */
export function withoutWaiting({ name, subscribe }: Pick<Source, 'name' | 'subscribe'>): Source {
  return { name, subscribe, hasSynced: true, waitForSync: async () => {} }
}

function listingOf(reflector: Pick<Reflector, 'hasSynced' | 'listFailure'> | undefined): Listing {
  const error = reflector?.listFailure
  if (error instanceof KubeApiError && isRejected(error)) return { state: 'rejected', error }
  return { state: reflector?.hasSynced === true ? 'complete' : 'pending' }
}

/** Errors that pass by themselves are none: a server that is busy, or a list that took too long. */
function isRejected({ status }: KubeApiError): boolean {
  return status >= 400 && status < 500 && ![408, 410, 429].includes(status)
}
