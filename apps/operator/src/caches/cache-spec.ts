import type { CacheShape, KubeObject, ResourceType } from '@thv/kube'
import type { References } from '../references/references.ts'

/** One cached kind: which objects, how much of each, and how to find them. Pass it to `OperatorCaches.of`. */
export interface CacheSpec<T extends KubeObject = KubeObject> {
  readonly type: ResourceType<T>
  /** The part of each object that is kept; without it all but `managedFields`. */
  readonly shape?: CacheShape
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** The objects that an object names. Adds the reference indexes and makes the kind appear in `OperatorCaches.referring`. */
  references?(object: T): References
  /** One more index. */
  readonly index?: { readonly name: string; valuesOf(object: T): readonly string[] }
}
