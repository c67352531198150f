import { objectAt, objectsAt, type UnknownObject } from '@thv/kernel/json'
import type { KubeObject } from '@thv/kube/objects/types'

export interface Listener {
  readonly name: string
  /** Lower case; undefined: every host. */
  readonly hostname?: string
  readonly port: number
  readonly protocol: string
  /** Of `allowedRoutes.namespaces.from`. */
  readonly from: string
  /** False when its status says `Accepted=False` or `Programmed=False`. */
  readonly usable: boolean
}

export interface GatewayAddress {
  readonly type: string
  readonly value: string
}

/** The parts of a Gateway that export reads. Addresses are those of its status. */
export interface Gateway {
  readonly namespace: string
  readonly name: string
  readonly listeners: readonly Listener[]
  readonly addresses: readonly GatewayAddress[]
}

export function gatewayOf(object: KubeObject): Gateway {
  const root = object as unknown as UnknownObject
  const status = objectAt(root, 'status')
  const unusable = new Set(
    objectsAt(status, 'listeners')
      .filter((listener) => objectsAt(listener, 'conditions').some(refuses))
      .map((listener) => String(listener['name'])),
  )
  return {
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name,
    listeners: objectsAt(objectAt(root, 'spec'), 'listeners').map((listener) => {
      const { name, hostname, port, protocol } = listener
      const from = objectAt(objectAt(listener, 'allowedRoutes'), 'namespaces')['from']
      return {
        name: String(name),
        ...(typeof hostname === 'string' && hostname !== '' ? { hostname: hostname.toLowerCase() } : {}),
        port: typeof port === 'number' ? port : 0,
        protocol: String(protocol),
        from: typeof from === 'string' ? from : 'Same',
        usable: !unusable.has(String(name)),
      }
    }),
    addresses: objectsAt(status, 'addresses').map(({ type, value }) => ({
      type: typeof type === 'string' ? type : 'IPAddress',
      value: typeof value === 'string' ? value : '',
    })),
  }
}

function refuses(condition: UnknownObject): boolean {
  return (condition['type'] === 'Accepted' || condition['type'] === 'Programmed') && condition['status'] === 'False'
}
