import { objectAt, type UnknownObject } from '@thv/kernel/json'
import type { KubeObject, OwnerReference } from '@thv/kube/objects/types'

/** The parts of a Service that export reads: to whom it belongs and where it leads. */
export interface BackendService {
  readonly namespace: string
  readonly name: string
  readonly owners: readonly Pick<OwnerReference, 'apiVersion' | 'kind' | 'name' | 'uid' | 'controller'>[]
  readonly selector: Readonly<Record<string, string>>
  readonly headless: boolean
}

export function backendServiceOf(object: KubeObject): BackendService {
  const spec = objectAt(object as unknown as UnknownObject, 'spec')
  const selector = Object.entries(objectAt(spec, 'selector')).filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  return {
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name,
    owners: (object.metadata.ownerReferences ?? []).map(({ apiVersion, kind, name, uid, controller }) => ({
      apiVersion,
      kind,
      name,
      uid,
      ...(controller === undefined ? {} : { controller }),
    })),
    selector: Object.fromEntries(selector),
    headless: spec['clusterIP'] === 'None',
  }
}
