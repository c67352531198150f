import { controllerRef, type KubeObject, type Pod, type ResourceType } from '@thv/kube'
import type { PodTemplate } from './workload-kinds.ts'

/** A new pod of a workload; the caller names it, or the server does from the prefix. */
export function podFromTemplate(template: PodTemplate, owner: { object: KubeObject; type: ResourceType }): Pod {
  const { labels = {}, annotations, finalizers } = template.metadata ?? {}
  const { name, namespace } = owner.object.metadata
  return {
    metadata: {
      name: '',
      ...(namespace === undefined ? {} : { namespace }),
      generateName: prefixOf(name),
      labels: { ...labels },
      ...(annotations === undefined ? {} : { annotations: { ...annotations } }),
      ...(finalizers === undefined ? {} : { finalizers: [...finalizers] }),
      ownerReferences: [controllerRef(owner.object, owner.type)],
    },
    ...(template.spec === undefined ? {} : { spec: structuredClone(template.spec) }),
  }
}

/** The dash is left out where it would not fit into a name. */
function prefixOf(name: string): string {
  return name.length < 253 ? `${name}-` : name
}
