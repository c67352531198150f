import { type KubeObject, type ObjectKey, type Predicate, type Reflector, type Source, watchMapped, watchOwned, watchSelf } from '@thv/kube'

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
  readonly reflectors: readonly Reflector<T>[]
}

export function kindCache<T extends KubeObject>(byNamespace: ReadonlyMap<string, Reflector<T>>): KindCache<T> {
  const reflectors = [...byNamespace.values()]
  /** The key of the only reflector is '' when it sees all namespaces. */
  const storeOf = (namespace: string | undefined) => (byNamespace.get('') ?? byNamespace.get(namespace ?? ''))?.store
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
    reflectors,
  }
}
