import type { KubeObject, ObjectKey } from '@thv/kube'
import { keyOf } from '@thv/kube'
import type { KindCache } from '../caches/kind-cache.ts'
import { REFERENCE_INDEXES, type References } from './references.ts'

/** Keys of the objects of a kind that reference this one: exactly those, through the index. */
export function referrersIn<T extends KubeObject>(
  cache: KindCache<T>,
  kind: keyof References,
): (object: KubeObject) => readonly ObjectKey[] {
  return ({ metadata }) => cache.byIndex(REFERENCE_INDEXES[kind], `${metadata.namespace}/${metadata.name}`).map(keyOf)
}

/** Keys of the objects that a referencing object names: for controllers that follow who uses their objects. */
export function referencedBy<T extends KubeObject>(
  referencesOf: (object: T) => References,
  kind: keyof References,
): (object: T) => readonly ObjectKey[] {
  return (object) => {
    const { namespace } = object.metadata
    return namespace === undefined ? [] : referencesOf(object)[kind].map((name) => ({ namespace, name }))
  }
}
