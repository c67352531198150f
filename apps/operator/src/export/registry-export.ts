import { Discovery, type DiscoveryResult, type ResourceExport } from '@thv/catalog/discover/discovery'
import type { KnownServers } from '@thv/catalog/discover/entry/known-servers'
import { gatewayOf } from '@thv/catalog/discover/objects/gateway'
import { httpRouteOf } from '@thv/catalog/discover/objects/http-route'
import { mcpResourceOf, type ResourceKind } from '@thv/catalog/discover/objects/mcp-resource'
import { referenceGrantOf } from '@thv/catalog/discover/objects/reference-grant'
import { backendServiceOf } from '@thv/catalog/discover/objects/service'
import { formatKey, type KubeObject, type ObjectEvent, type ObjectKey } from '@thv/kube'
import type { ExportScope } from './export-scope.ts'
import type { GatewayKind } from './gateway-watches.ts'

export type FollowedKind = ResourceKind | GatewayKind | 'Service'

/** The export of one registry, kept up to date with the objects of its namespaces. */
export class RegistryExport {
  readonly key: ObjectKey
  readonly scope: ExportScope
  readonly #discovery: Discovery
  /** Namespaces whose objects the operator sees; undefined: all. */
  readonly #seen: readonly string[] | undefined
  /** Gateways that may not be read, by the routes that name them. */
  readonly #unreadable = new Map<string, Set<string>>()
  #known: KnownServers | undefined
  #isStale = false
  #result: DiscoveryResult | undefined

  constructor(key: ObjectKey, scope: ExportScope, seen: readonly string[] | undefined) {
    this.key = key
    this.scope = scope
    this.#seen = seen
    this.#discovery = new Discovery({ mode: scope.mode, crossNamespaceGateway: scope.crossNamespaceGateway })
  }

  /** Undefined before the first `update`, and while known servers wait for one: mode operator looks images up before anything else. */
  get result(): DiscoveryResult | undefined {
    return this.#isStale || (this.scope.mode === 'operator' && this.#known === undefined) ? undefined : this.#result
  }

  covers(namespace: string): boolean {
    return this.scope.namespaces === 'all' || this.scope.namespaces.includes(namespace)
  }

  /** Servers of the other sources of the registry. True when they are others than before. */
  setKnown(known: KnownServers): boolean {
    if (this.#known === known) return false
    this.#known = known
    this.#isStale = true
    this.#discovery.setKnownServers(known)
    return true
  }

  take(kind: FollowedKind, event: ObjectEvent): void {
    const { object } = event
    const { namespace = '', name } = object.metadata
    const gone = event.type === 'DELETED'
    const discovery = this.#discovery
    if (kind === 'Service') gone ? discovery.deleteService(namespace, name) : discovery.setService(backendServiceOf(object))
    else if (kind === 'ReferenceGrant') gone ? discovery.deleteGrant(namespace, name) : discovery.setGrant(referenceGrantOf(object))
    else if (kind === 'Gateway') this.#takeGateway(object, gone)
    else if (!this.covers(namespace)) return
    else if (kind === 'HTTPRoute') this.#takeRoute(object, gone)
    else {
      const resource = gone ? undefined : mcpResourceOf(kind, object)
      if (resource === undefined) discovery.deleteResource({ kind, namespace, name })
      else discovery.setResource(resource)
    }
  }

  /** Whether an object that the export depends on has changed. */
  get needsUpdate(): boolean {
    return this.#result === undefined || this.#isStale || this.#discovery.hasChanges
  }

  /** Resources whose export may have changed with the updates since the last call, by `Kind/namespace/name`. */
  takeChanged(): ReadonlySet<string> {
    return this.#discovery.takeChanged()
  }

  /** Computes the result again. True when it is another than before. */
  update(): boolean {
    const before = this.#result
    const wasStale = this.#isStale
    this.#discovery.settle()
    const { entries, gone } = this.#discovery.changes
    this.#discovery.markRead()
    this.#result = this.#discovery.result()
    this.#isStale = false
    return wasStale || before === undefined || entries.length + gone.length > 0 || before.warnings !== this.#result.warnings
  }

  exportOf(kind: ResourceKind, { namespace = '', name }: ObjectKey): ResourceExport | undefined {
    return this.#discovery.exportOf({ kind, namespace, name })
  }

  #takeGateway(object: KubeObject, gone: boolean): void {
    const { namespace = '', name } = object.metadata
    if (!this.#readsGateways(namespace)) return
    if (gone) this.#discovery.deleteGateway(namespace, name)
    else this.#discovery.setGateway(gatewayOf(object))
  }

  #takeRoute(object: KubeObject, gone: boolean): void {
    const { namespace = '', name } = object.metadata
    const route = gone ? undefined : httpRouteOf(object)
    const parents = (route?.parents ?? []).filter((parent) => parent.kind === 'Gateway' && !this.#readsGateways(parent.namespace))
    this.#noteUnreadable(formatKey({ namespace, name }), new Set(parents.map((parent) => `Gateway/${parent.namespace}/${parent.name}`)))
    if (route === undefined) this.#discovery.deleteRoute(namespace, name)
    else this.#discovery.setRoute(route)
  }

  /** A Gateway that no route names any more is forgotten. */
  #noteUnreadable(route: string, named: ReadonlySet<string>): void {
    for (const [key, routes] of this.#unreadable) {
      if (named.has(key) || !routes.delete(route) || routes.size > 0) continue
      this.#unreadable.delete(key)
      const [, namespace = '', name = ''] = key.split('/')
      this.#discovery.deleteGateway(namespace, name)
    }
    for (const key of named) {
      const routes = this.#unreadable.get(key)
      if (routes === undefined) this.#discovery.setUnreadable(key)
      this.#unreadable.set(key, (routes ?? new Set()).add(route))
    }
  }

  /** The registry server has rights in the exported namespaces only. */
  #readsGateways(namespace: string): boolean {
    return this.scope.mode === 'server' ? this.covers(namespace) : (this.#seen?.includes(namespace) ?? true)
  }
}
