import { controllerOf, type KubeObject, type ReadonlyStore } from '@thv/kube'

const INDEX = 'workload controller'

/** A store is shared, and an index can be added to it once. */
const indexed = new WeakSet<object>()

/** The objects that the owner controls, and those of its namespace without a controller. */
export function ownedAndOrphans<T extends KubeObject>(store: ReadonlyStore<T>, owner: KubeObject): T[] {
  const { uid = '', namespace } = owner.metadata
  return [...ownedBy(store, uid), ...indexedStore(store).byIndex(INDEX, orphansOf(namespace))]
}

export function ownedBy<T extends KubeObject>(store: ReadonlyStore<T>, uid: string): T[] {
  return indexedStore(store).byIndex(INDEX, uid)
}

function indexedStore<T extends KubeObject>(store: ReadonlyStore<T>): ReadonlyStore<T> {
  if (!indexed.has(store)) {
    store.addIndex(INDEX, (object) => [controllerOf(object)?.uid ?? orphansOf(object.metadata.namespace)])
    indexed.add(store)
  }
  return store
}

/** No uid contains a slash. */
function orphansOf(namespace: string | undefined): string {
  return `orphans/${namespace ?? ''}`
}
