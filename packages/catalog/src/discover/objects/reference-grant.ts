import { objectAt, objectsAt, type UnknownObject } from '@thv/kernel/json'
import type { KubeObject } from '@thv/kube/objects/types'

/** A permission to refer to objects of the namespace that it lies in. */
export interface ReferenceGrant {
  readonly namespace: string
  readonly name: string
  readonly from: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[]
  readonly to: readonly { readonly group: string; readonly kind: string; readonly name?: string }[]
}

export function referenceGrantOf(object: KubeObject): ReferenceGrant {
  const spec = objectAt(object as unknown as UnknownObject, 'spec')
  const text = (value: unknown) => (typeof value === 'string' ? value : '')
  return {
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name,
    from: objectsAt(spec, 'from').map((from) => ({
      group: text(from['group']),
      kind: text(from['kind']),
      namespace: text(from['namespace']),
    })),
    to: objectsAt(spec, 'to').map((to) => ({
      group: text(to['group']),
      kind: text(to['kind']),
      ...(text(to['name']) === '' ? {} : { name: text(to['name']) }),
    })),
  }
}
