import { formatKey, type ObjectKey } from '@thv/kube'
import type { WorkloadKind } from '@thv/resources/shared/referencing-workloads'
import type { OperatorCaches } from '../../caches/operator-caches.ts'
import type { References } from '../../references/references.ts'
import type { WorkloadReference } from './status.ts'

/** The objects that name this one, sorted by kind and name. An object that is being deleted counts until it is gone. */
export function referencingWorkloads(caches: Pick<OperatorCaches, 'referring'>, to: keyof References, key: ObjectKey): WorkloadReference[] {
  return caches.referring(to).flatMap(({ kind, objects }) =>
    objects(formatKey(key))
      .map(({ metadata }) => ({ kind: kind as WorkloadKind, name: metadata.name }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  )
}
