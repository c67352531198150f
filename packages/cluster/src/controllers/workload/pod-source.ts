import {
  controllerOf,
  type KubeObject,
  keyOf,
  type ObjectKey,
  ownerKeys,
  type Reflector,
  type ResourceType,
  type Source,
  watchMapped,
} from '@thv/kube'
import { workloadSelector } from './selector.ts'
import type { Workload } from './workload-kinds.ts'

/** Wakes the owner of a changed object; an orphan wakes all whose selectors match it: one of them may want to adopt it. */
export function watchChildren<T extends KubeObject, O extends Workload>(
  children: Reflector<T>,
  owners: Reflector<O>,
  ownerType: ResourceType<O>,
): Source {
  return watchMapped(children, (object) =>
    controllerOf(object) === undefined
      ? ownersWanting(owners, object)
      : ownerKeys(object, { group: ownerType.group, kind: ownerType.kind }),
  )
}

function ownersWanting<O extends Workload>(owners: Reflector<O>, object: KubeObject): ObjectKey[] {
  return owners.store
    .list({ namespace: object.metadata.namespace })
    .filter((owner) => workloadSelector(owner.spec?.selector)?.matches(object.metadata.labels) ?? false)
    .map(keyOf)
}
