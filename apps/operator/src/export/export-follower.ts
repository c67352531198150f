import { Debounce } from '@thv/catalog/cluster/debounce'
import type { DiscoveryResult } from '@thv/catalog/discover/discovery'
import type { KnownServers } from '@thv/catalog/discover/entry/known-servers'
import { isResourceKind, type ResourceKind, resourceKinds } from '@thv/catalog/discover/objects/mcp-resource'
import type { Clock } from '@thv/kernel/clock'
import { formatKey, type KubeClient, type KubeObject, keyOf, type ObjectEvent, type ObjectKey } from '@thv/kube'
import { normaliseMcpRegistry } from '@thv/resources/kinds/mcp-registry/normalise'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import type { Logger } from '@thv/telemetry/log'
import type { KindCache } from '../caches/kind-cache.ts'
import type { EventSink } from '../environment.ts'
import { decideExport, type ExportScope, type ExportSettings } from './export-scope.ts'
import { GATEWAY_KINDS, type GatewayKind, GatewayWatches, type GatewayWatchesOptions } from './gateway-watches.ts'
import { type FollowedKind, RegistryExport } from './registry-export.ts'
import { asksForExport, type ResourceOutcome } from './resource-export.ts'

export interface FollowedCaches {
  /** Of MCPRegistry. */
  readonly registries: KindCache
  readonly services: KindCache
  readonly resources: Readonly<Record<ResourceKind, KindCache>>
}

export interface ExportFollowerOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  readonly settings: ExportSettings
  readonly caches: FollowedCaches
  readonly events: EventSink
  /** The export of a registry, or the outcome of a resource, is another than before. */
  readonly wake: (kind: 'MCPRegistry' | ResourceKind, key: ObjectKey) => void
  readonly debounceMs?: number
  /** How the Gateway API is watched. */
  readonly openWatches?: (options: GatewayWatchesOptions) => Pick<GatewayWatches, 'isReady' | 'problems' | 'changes' | 'close'>
}

export interface ExportReading {
  readonly result: DiscoveryResult
  /** Why kinds of the Gateway API cannot be read. */
  readonly problems: readonly string[]
}

const DEBOUNCE_MS = 1_000

/**
 * The exports of all MCPRegistries, followed by the caches of the operator and by watches of the Gateway API, which run only while some
 * registry exports. A change wakes exactly the registries and resources whose export it changes.
 */
export class ExportFollower {
  readonly #options: ExportFollowerOptions
  readonly #registries = new Map<string, RegistryExport>()
  readonly #objects: Readonly<Record<GatewayKind, Map<string, KubeObject>>> = {
    HTTPRoute: new Map(),
    Gateway: new Map(),
    ReferenceGrant: new Map(),
  }
  readonly #leave: (() => void)[] = []
  readonly #debounce: Debounce
  #watches: Pick<GatewayWatches, 'isReady' | 'problems' | 'changes' | 'close'> | undefined
  #outcomes: Map<string, ResourceOutcome> | undefined
  /** Resources to judge again: by `Kind/namespace/name`, or all. */
  #unjudged: Set<string> | 'all' = 'all'
  #told = new Set<string>()
  #closed = false

  constructor(options: ExportFollowerOptions) {
    this.#options = options
    const { caches, clock, debounceMs: windowMs = DEBOUNCE_MS } = options
    this.#debounce = new Debounce({ clock, windowMs, fire: () => this.#settle() })
    this.#subscribe(caches.registries, (event) => this.#takeRegistry(event as ObjectEvent<MCPRegistry>))
    for (const kind of resourceKinds) this.#subscribe(caches.resources[kind], (event) => this.#take(kind, event))
    this.#subscribe(caches.services, (event) => this.#take('Service', event))
    this.#debounce.change()
  }

  /** The export of a registry; undefined until the cluster has been read, and for one that exports nothing. */
  read(key: ObjectKey): ExportReading | undefined {
    const result = this.#registries.get(formatKey(key))?.result
    return result === undefined ? undefined : { result, problems: this.#watches?.problems ?? [] }
  }

  /** Servers of the other sources of a registry, for its look-ups by image. */
  setKnown(key: ObjectKey, known: KnownServers): void {
    if (this.#registries.get(formatKey(key))?.setKnown(known)) this.#debounce.change()
  }

  /** Of a resource that asks for its export or has one; `unknown` until the cluster has been read. */
  outcomeOf(kind: ResourceKind, key: ObjectKey): ResourceOutcome | undefined | 'unknown' {
    return this.#outcomes === undefined ? 'unknown' : this.#outcomes.get(idOf(kind, key))
  }

  /** Times that a kind of the Gateway API came, went, or lost or got its rights, since it is watched. */
  get kindChanges(): number {
    return this.#watches?.changes ?? 0
  }

  /** Whether all changes so far have been judged. */
  get isSettled(): boolean {
    return !this.#debounce.isPending && this.#watches?.isReady !== false
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#debounce.close()
    for (const leave of this.#leave) leave()
    await this.#watches?.close()
  }

  #subscribe(cache: KindCache, handler: (event: ObjectEvent) => void): void {
    for (const reflector of cache.reflectors) this.#leave.push(reflector.addHandler(handler))
  }

  #takeRegistry({ type, object }: ObjectEvent<MCPRegistry>): void {
    const { namespace = '', name, deletionTimestamp } = object.metadata
    const id = formatKey({ namespace, name })
    const known = this.#registries.get(id)
    const scope = type === 'DELETED' || deletionTimestamp !== undefined ? undefined : this.#scopeOf(object)
    if (JSON.stringify(known?.scope) === JSON.stringify(scope)) return
    if (scope === undefined) this.#registries.delete(id)
    else this.#registries.set(id, this.#filled({ namespace, name }, scope))
    this.#unjudged = 'all'
    this.#watchAsNeeded()
    this.#debounce.change()
  }

  #scopeOf(registry: MCPRegistry): ExportScope | undefined {
    const decision = decideExport(normaliseMcpRegistry(registry).spec, registry.metadata.namespace ?? '', this.#options.settings)
    return decision.kind === 'export' ? decision.scope : undefined
  }

  /** With all that is known already. */
  #filled(key: ObjectKey, scope: ExportScope): RegistryExport {
    const { caches, settings } = this.#options
    const registry = new RegistryExport(key, scope, settings.watchNamespaces)
    const add = (kind: FollowedKind, objects: Iterable<KubeObject>) => {
      for (const object of objects) registry.take(kind, { type: 'ADDED', object })
    }
    for (const kind of resourceKinds) add(kind, caches.resources[kind].list())
    add('Service', caches.services.list())
    for (const kind of GATEWAY_KINDS) add(kind, this.#objects[kind].values())
    return registry
  }

  #watchAsNeeded(): void {
    if (this.#registries.size > 0 && this.#watches === undefined) {
      const { client, clock, random, log, settings, openWatches = (options) => new GatewayWatches(options) } = this.#options
      this.#watches = openWatches({
        client,
        clock,
        random,
        log,
        namespaces: settings.watchNamespaces,
        onEvent: (kind, event) => this.#takeGatewayObject(kind, event),
        onState: () => this.#debounce.change(),
      })
    }
    if (this.#registries.size > 0 || this.#watches === undefined) return
    void this.#watches.close()
    this.#watches = undefined
    for (const kind of GATEWAY_KINDS) this.#objects[kind].clear()
  }

  #takeGatewayObject(kind: GatewayKind, event: ObjectEvent): void {
    if (this.#watches === undefined) return
    const id = formatKey(keyOf(event.object))
    const isKept = event.type !== 'DELETED' && (kind !== 'HTTPRoute' || 'spec' in event.object)
    const wasKept = this.#objects[kind].has(id)
    if (isKept) this.#objects[kind].set(id, event.object)
    else this.#objects[kind].delete(id)
    // A route that does not opt in, and did not before, concerns no registry.
    if (isKept || wasKept) this.#take(kind, event)
  }

  #take(kind: FollowedKind, event: ObjectEvent): void {
    for (const registry of this.#registries.values()) registry.take(kind, event)
    const isResource = isResourceKind(kind)
    if (isResource && this.#unjudged !== 'all') this.#unjudged.add(idOf(kind, keyOf(event.object)))
    if (isResource || [...this.#registries.values()].some(({ needsUpdate }) => needsUpdate)) this.#debounce.change()
  }

  #settle(): void {
    if (this.#closed || this.#watches?.isReady === false) return
    const updated = [...this.#registries.values()].filter(({ needsUpdate }) => needsUpdate)
    for (const registry of updated) {
      if (registry.update()) this.#options.wake('MCPRegistry', registry.key)
      const changed = registry.takeChanged()
      if (this.#unjudged !== 'all') for (const id of changed) this.#unjudged.add(id)
    }
    this.#settleResources()
    if (updated.length > 0 || this.#registries.size === 0) this.#tellRoutes()
  }

  /** Judges the resources that changed, or whose export did. */
  #settleResources(): void {
    const unjudged = this.#unjudged
    this.#unjudged = new Set()
    if (unjudged !== 'all' && unjudged.size === 0) return
    const before = this.#outcomes
    const after = unjudged === 'all' ? new Map<string, ResourceOutcome>() : new Map(before)
    const problems = this.#resourceProblems()
    const judge = (kind: ResourceKind, object: KubeObject) => {
      const key = keyOf(object)
      const id = idOf(kind, key)
      const outcome = this.#judge(kind, object, problems.get(id) ?? [])
      if (outcome === undefined) after.delete(id)
      else after.set(id, outcome)
      const isNews = before === undefined ? outcome !== undefined || hasCondition(object) : !isSame(before.get(id), outcome)
      if (isNews) this.#options.wake(kind, key)
    }
    for (const kind of resourceKinds) {
      const cache = this.#options.caches.resources[kind]
      if (unjudged === 'all') for (const object of cache.list()) judge(kind, object)
    }
    if (unjudged !== 'all')
      for (const id of unjudged) {
        const [kind, namespace = '', name = ''] = id.split('/')
        if (!isResourceKind(kind)) continue
        const object = this.#options.caches.resources[kind].get({ namespace, name })
        if (object === undefined) after.delete(id)
        else judge(kind, object)
      }
    this.#outcomes = after
  }

  /** By object; each once, however many registries have it. */
  #resourceProblems(): Map<string, ResourceOutcome['problems'][number][]> {
    const all = new Map<string, ResourceOutcome['problems'][number][]>()
    for (const registry of this.#registries.values())
      for (const { level, object, reason, message } of registry.result?.warnings ?? []) {
        if (level !== 'warning' || object.kind === 'HTTPRoute') continue
        const id = `${object.kind}/${formatKey(object)}`
        const known = all.get(id) ?? []
        if (!known.some((each) => each.reason === reason && each.message === message)) known.push({ reason, message })
        all.set(id, known)
      }
    return all
  }

  #judge(kind: ResourceKind, object: KubeObject, problems: ResourceOutcome['problems']): ResourceOutcome | undefined {
    const key = keyOf(object)
    const covering = [...this.#registries.values()].filter((registry) => registry.covers(key.namespace ?? ''))
    const exports = covering.flatMap((registry) => {
      const found = registry.exportOf(kind, key)
      return found === undefined ? [] : [{ registry: formatKey(registry.key), urls: found.urls }]
    })
    if (exports.length === 0 && !asksForExport(object)) return undefined
    return {
      registries: exports.map(({ registry }) => registry).sort(),
      urls: [...new Set(exports.flatMap(({ urls }) => urls))].sort(),
      problems,
      isCovered: covering.length > 0,
    }
  }

  /** Routes have no status of ours: a new reason becomes an Event. */
  #tellRoutes(): void {
    const now = new Set<string>()
    for (const registry of this.#registries.values())
      for (const { level, object, reason, message } of registry.result?.warnings ?? []) {
        if (level !== 'warning' || object.kind !== 'HTTPRoute') continue
        const id = `${object.namespace}/${object.name} ${reason} ${message}`
        const route = this.#objects.HTTPRoute.get(formatKey(object))
        if (!this.#told.has(id) && !now.has(id) && route !== undefined)
          this.#options.events.record(
            { ...route, apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' },
            { type: 'Warning', reason, note: message, action: 'Export' },
          )
        now.add(id)
      }
    this.#told = now
  }
}

function idOf(kind: ResourceKind, key: ObjectKey): string {
  return `${kind}/${formatKey(key)}`
}

function isSame(a: ResourceOutcome | undefined, b: ResourceOutcome | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function hasCondition(object: KubeObject): boolean {
  const { status } = object as KubeObject & { status?: { conditions?: readonly { type: string }[] } }
  return status?.conditions?.some(({ type }) => type === 'RegistryExport') ?? false
}
