import type { Gateway } from './objects/gateway.ts'
import type { HttpRoute } from './objects/http-route.ts'
import { type McpResource, resourceKey } from './objects/mcp-resource.ts'
import { keyText } from './objects/object-ref.ts'
import type { ReferenceGrant } from './objects/reference-grant.ts'
import type { BackendService } from './objects/service.ts'
import type { ClusterLookup } from './route/cluster-lookup.ts'

export const indexKey = {
  resource: resourceKey,
  route: (namespace: string, name: string) => keyText('HTTPRoute', namespace, name),
  gateway: (namespace: string, name: string) => keyText('Gateway', namespace, name),
  service: (namespace: string, name: string) => keyText('Service', namespace, name),
  /** All grants of a namespace count as one object. */
  grants: (namespace: string) => keyText('ReferenceGrant', namespace),
}

/** The objects of the cluster by key. */
export class ClusterIndex {
  readonly resources = new Map<string, McpResource>()
  readonly routes = new Map<string, HttpRoute>()
  readonly #gateways = new Map<string, Gateway>()
  readonly #services = new Map<string, BackendService>()
  readonly #grants = new Map<string, Map<string, ReferenceGrant>>()
  readonly #unreadable = new Set<string>()

  setGateway(gateway: Gateway): string {
    const key = indexKey.gateway(gateway.namespace, gateway.name)
    this.#unreadable.delete(key)
    this.#gateways.set(key, gateway)
    return key
  }

  setService(service: BackendService): string {
    const key = indexKey.service(service.namespace, service.name)
    this.#unreadable.delete(key)
    this.#services.set(key, service)
    return key
  }

  /** A Gateway or Service. */
  delete(key: string): void {
    this.#gateways.delete(key)
    this.#services.delete(key)
    this.#unreadable.delete(key)
  }

  setUnreadable(key: string): void {
    this.delete(key)
    this.#unreadable.add(key)
  }

  setGrant(grant: ReferenceGrant): void {
    const key = indexKey.grants(grant.namespace)
    const grants = this.#grants.get(key) ?? new Map<string, ReferenceGrant>()
    this.#grants.set(key, grants.set(grant.name, grant))
  }

  deleteGrant(namespace: string, name: string): void {
    const grants = this.#grants.get(indexKey.grants(namespace))
    if (grants?.delete(name) && grants.size === 0) this.#grants.delete(indexKey.grants(namespace))
  }

  /** Notes in `asked` the key of everything that is asked for, whether it exists or not. */
  lookup(asked: Set<string>): ClusterLookup {
    const ask = (key: string) => {
      asked.add(key)
      return key
    }
    return {
      gateway: (namespace, name) => this.#find(this.#gateways, ask(indexKey.gateway(namespace, name))),
      service: (namespace, name) => this.#find(this.#services, ask(indexKey.service(namespace, name))),
      resource: (owner) => this.resources.get(ask(indexKey.resource(owner))),
      grants: (namespace) => this.#grants.get(ask(indexKey.grants(namespace)))?.values() ?? [],
    }
  }

  #find<T>(objects: ReadonlyMap<string, T>, key: string): T | 'unreadable' | undefined {
    return this.#unreadable.has(key) ? 'unreadable' : objects.get(key)
  }
}
