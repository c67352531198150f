import { compareCodePoints } from '../text.ts'
import { ClusterIndex, indexKey } from './cluster-index.ts'
import { addTo, Dependents, removeFrom } from './dependents.ts'
import { copiedEntries } from './entry/copied-entry.ts'
import type { ExportedEntry } from './entry/exported-entry.ts'
import { type KnownServers, noKnownServers } from './entry/known-servers.ts'
import { newEntry } from './entry/new-entry.ts'
import { type EvaluatedResource, evaluateResource, type ResourceEvaluation } from './entry/resource-evaluation.ts'
import { generatedName } from './entry/server-names.ts'
import { type EntryChanges, EntryOutputs } from './entry-outputs.ts'
import { NameGroups } from './name-groups.ts'
import type { ExportOptions } from './objects/export-options.ts'
import { ExportReason, type ExportWarning, exportWarning } from './objects/export-warning.ts'
import type { Gateway } from './objects/gateway.ts'
import type { HttpRoute } from './objects/http-route.ts'
import type { McpResource } from './objects/mcp-resource.ts'
import type { ReferenceGrant } from './objects/reference-grant.ts'
import type { BackendService } from './objects/service.ts'
import { evaluateRoute, type RouteEvaluation } from './route/route-evaluation.ts'
import { WarningList } from './warning-list.ts'

export interface DiscoveryResult {
  /** By name, then newest version first. */
  readonly entries: readonly ExportedEntry[]
  /** By object, then reason. */
  readonly warnings: readonly ExportWarning[]
}

export interface ResourceExport {
  /** Name of its entry. */
  readonly server: string
  readonly urls: readonly string[]
}

/** Where the entry of a resource is made: a name of its own, or the copy of a known server. */
type Placement = { readonly base: string; readonly namespace: string } | { readonly copy: string; readonly version: string }

/**
 * The export of a cluster, kept up to date. Objects come and go one by one; `result` evaluates again only the routes, resources and
 * names that a change concerns, and equals what the same objects give in any other order.
 */
export class Discovery {
  readonly #options: ExportOptions
  readonly #index = new ClusterIndex()
  readonly #dependents = new Dependents()
  #known: KnownServers = noKnownServers
  readonly #routeEvaluations = new Map<string, RouteEvaluation>()
  readonly #routesTo = new Map<string, Set<string>>()
  readonly #evaluated = new Map<string, EvaluatedResource>()
  readonly #placements = new Map<string, Placement>()
  readonly #names = new NameGroups()
  readonly #copies = new Map<string, Set<string>>()
  readonly #outputs = new EntryOutputs()
  readonly #warnings = new WarningList()
  readonly #dirtyRoutes = new Set<string>()
  readonly #dirtyResources = new Set<string>()
  readonly #changed = new Set<string>()

  constructor(options: ExportOptions) {
    this.#options = options
  }

  /** Servers of the other sources; looked up by image. */
  setKnownServers(known: KnownServers): void {
    this.#known = known
    for (const [key, { image }] of this.#index.resources) if (image !== undefined) this.#dirtyResources.add(key)
    for (const [key, placement] of this.#placements) if ('copy' in placement) this.#dirtyResources.add(key)
  }

  setResource(resource: McpResource): void {
    const key = indexKey.resource(resource)
    this.#index.resources.set(key, resource)
    this.#resourceChanged(key)
  }

  deleteResource(resource: Pick<McpResource, 'kind' | 'namespace' | 'name'>): void {
    const key = indexKey.resource(resource)
    if (this.#index.resources.delete(key)) this.#resourceChanged(key)
  }

  /** `toolsOf` of the options answers otherwise than before. */
  toolsChanged(resource: Pick<McpResource, 'kind' | 'namespace' | 'name'>): void {
    const key = indexKey.resource(resource)
    if (this.#index.resources.has(key)) this.#dirtyResources.add(key)
  }

  setRoute(route: HttpRoute): void {
    const key = indexKey.route(route.namespace, route.name)
    this.#index.routes.set(key, route)
    this.#dirtyRoutes.add(key)
  }

  deleteRoute(namespace: string, name: string): void {
    const key = indexKey.route(namespace, name)
    if (this.#index.routes.delete(key)) this.#dirtyRoutes.add(key)
  }

  setGateway(gateway: Gateway): void {
    this.#objectChanged(this.#index.setGateway(gateway))
  }

  deleteGateway(namespace: string, name: string): void {
    this.#delete(indexKey.gateway(namespace, name))
  }

  setService(service: BackendService): void {
    this.#objectChanged(this.#index.setService(service))
  }

  deleteService(namespace: string, name: string): void {
    this.#delete(indexKey.service(namespace, name))
  }

  /** Of a Gateway or Service that exists but may not be read: `Gateway/namespace/name`. */
  setUnreadable(key: string): void {
    this.#index.setUnreadable(key)
    this.#objectChanged(key)
  }

  setGrant(grant: ReferenceGrant): void {
    this.#index.setGrant(grant)
    this.#objectChanged(indexKey.grants(grant.namespace))
  }

  deleteGrant(namespace: string, name: string): void {
    this.#index.deleteGrant(namespace, name)
    this.#objectChanged(indexKey.grants(namespace))
  }

  /** Whether `result` would evaluate something again. */
  get hasChanges(): boolean {
    return this.#dirtyRoutes.size > 0 || this.#dirtyResources.size > 0
  }

  /** Keys of the resources that `result` has evaluated since the last call. */
  takeChanged(): ReadonlySet<string> {
    const changed = new Set(this.#changed)
    this.#changed.clear()
    return changed
  }

  result(): DiscoveryResult {
    this.settle()
    return { entries: this.#outputs.entries, warnings: this.#warnings.all }
  }

  /** Evaluates what the changes concern, without putting all entries together as `result` does. */
  settle(): void {
    for (const route of this.#dirtyRoutes) this.#evaluateRoute(route)
    this.#dirtyRoutes.clear()
    this.#placeResources()
  }

  /** Of the entries, since the last `markRead`, as of the last `settle`. */
  get changes(): EntryChanges {
    return this.#outputs.changes
  }

  markRead(): void {
    this.#outputs.markRead()
  }

  /** As of the last `settle`. The same list for as long as it says the same. */
  get warnings(): readonly ExportWarning[] {
    return this.#warnings.all
  }

  /** Resources with an entry, as of the last `result`. */
  exported(): readonly McpResource[] {
    return [...this.#evaluated.values()].flatMap(({ exported }) => (exported === undefined ? [] : [exported.resource]))
  }

  /** The entry of a resource and its URLs, as of the last `result`; undefined when it is not exported. */
  exportOf(resource: Pick<McpResource, 'kind' | 'namespace' | 'name'>): ResourceExport | undefined {
    const key = indexKey.resource(resource)
    const placement = this.#placements.get(key)
    if (placement === undefined) return undefined
    const output = this.#outputs.get('copy' in placement ? `copy ${placement.copy}` : key)
    const server = output?.entries[0]?.name
    return server === undefined ? undefined : { server, urls: this.#exported(key)?.remotes.map(({ url }) => url) ?? [] }
  }

  #delete(key: string): void {
    this.#index.delete(key)
    this.#objectChanged(key)
  }

  #objectChanged(key: string): void {
    for (const route of this.#dependents.of(key)) this.#dirtyRoutes.add(route)
  }

  #resourceChanged(key: string): void {
    this.#dirtyResources.add(key)
    this.#objectChanged(key)
  }

  #evaluateRoute(key: string): void {
    for (const resource of this.#routeEvaluations.get(key)?.urls.keys() ?? []) {
      removeFrom(this.#routesTo, resource, key)
      this.#dirtyResources.add(resource)
    }
    const route = this.#index.routes.get(key)
    if (route === undefined) {
      this.#warnings.set(key, [])
      this.#routeEvaluations.delete(key)
      this.#dependents.delete(key)
      return
    }
    const asked = new Set<string>()
    const evaluation = evaluateRoute(route, this.#index.lookup(asked), this.#options)
    this.#dependents.set(key, asked)
    this.#routeEvaluations.set(key, evaluation)
    this.#warnings.set(key, evaluation.warnings)
    for (const resource of evaluation.urls.keys()) {
      addTo(this.#routesTo, resource, key)
      this.#dirtyResources.add(resource)
    }
  }

  #placeResources(): void {
    const groups = new Map<string, { base: string; namespace: string }>()
    const copies = new Set<string>()
    const note = (placement: Placement | undefined) => {
      if (placement === undefined) return
      if ('copy' in placement) copies.add(placement.copy)
      else groups.set(placement.base, placement)
    }
    for (const key of this.#dirtyResources) {
      this.#changed.add(key)
      note(this.#unplace(key))
      note(this.#place(key))
      this.#warnings.set(key, this.#evaluated.get(key)?.warnings ?? [])
    }
    this.#dirtyResources.clear()
    for (const copy of copies) this.#makeCopy(copy)
    for (const [key, name] of this.#names.settle([...groups.values()], (resource) => this.#claimOf(resource))) this.#makeNew(key, name)
    for (const key of this.#outputs.takeTouched()) this.#warnings.set(`entry ${key}`, this.#outputs.get(key)?.warnings ?? [])
  }

  #unplace(key: string): Placement | undefined {
    const placement = this.#placements.get(key)
    this.#placements.delete(key)
    this.#evaluated.delete(key)
    this.#outputs.set(key, undefined)
    if (placement === undefined) return undefined
    if ('copy' in placement) removeFrom(this.#copies, placement.copy, key)
    else this.#names.remove(placement.base, key)
    return placement
  }

  #place(key: string): Placement | undefined {
    const resource = this.#index.resources.get(key)
    if (resource === undefined) return undefined
    const candidates = [...(this.#routesTo.get(key) ?? [])]
      .map((route) => {
        const { namespace = '', name = '' } = this.#index.routes.get(route) ?? {}
        return { route: { kind: 'HTTPRoute', namespace, name }, urls: this.#routeEvaluations.get(route)?.urls.get(key) ?? [] }
      })
      .sort(({ route: a }, { route: b }) => compareCodePoints(a.namespace, b.namespace) || compareCodePoints(a.name, b.name))
    const evaluated = evaluateResource(resource, candidates, this.#options)
    this.#evaluated.set(key, evaluated)
    if (evaluated.exported === undefined) return undefined
    const known = resource.image === undefined ? undefined : this.#known.find(resource.image)
    const { namespace } = resource
    const placement: Placement =
      known === undefined
        ? { base: generatedName(resource, this.#options.clusterName), namespace }
        : { copy: known.name, version: known.version }
    this.#placements.set(key, placement)
    if ('copy' in placement) addTo(this.#copies, placement.copy, key)
    else this.#names.add(placement.base, key)
    return placement
  }

  #makeCopy(name: string): void {
    for (const key of this.#copies.get(name) ?? []) this.#changed.add(key)
    const resources = [...(this.#copies.get(name) ?? [])].flatMap((key) => {
      const placement = this.#placements.get(key)
      const evaluation = this.#exported(key)
      return placement !== undefined && 'copy' in placement && evaluation ? [{ evaluation, version: placement.version }] : []
    })
    const outputKey = `copy ${name}`
    if (resources.length === 0) this.#outputs.set(outputKey, undefined)
    else this.#outputs.set(outputKey, copiedEntries(name, resources, { known: this.#known, options: this.#options }))
  }

  #makeNew(key: string, name: string | undefined): void {
    this.#changed.add(key)
    const evaluation = this.#exported(key)
    if (evaluation === undefined) return
    const { kind, namespace, name: own } = evaluation.resource
    if (name === undefined) {
      const message = 'another resource has this name in the registry; rename one of them'
      const warning = exportWarning(ExportReason.DuplicateServerName, { kind, namespace, name: own }, message)
      this.#outputs.set(key, { entries: [], warnings: [warning] })
      return
    }
    const { entry, warnings } = newEntry(evaluation, name, this.#options)
    this.#outputs.set(key, { entries: entry === undefined ? [] : [entry], warnings })
  }

  #exported(key: string): ResourceEvaluation | undefined {
    return this.#evaluated.get(key)?.exported
  }

  #claimOf(key: string) {
    const evaluation = this.#exported(key)
    if (evaluation === undefined) throw new TypeError(`${key} has no export`)
    return { resource: evaluation.resource, gateway: evaluation.remotes[0]?.gateway }
  }
}
