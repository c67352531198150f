import { randomUUID } from 'node:crypto'
import { gateways, httpRoutes, type KindVersions, mcpKinds, referenceGrants } from '@thv/catalog/cluster/cluster-kinds'
import { Debounce } from '@thv/catalog/cluster/debounce'
import { keptGateway, keptGrant, keptResource, keptRoute, keptService } from '@thv/catalog/cluster/kept-objects'
import { type KindState, KindWatch } from '@thv/catalog/cluster/kind-watch'
import { Discovery } from '@thv/catalog/discover/discovery'
import type { ExportedEntry } from '@thv/catalog/discover/entry/exported-entry'
import type { KnownServers } from '@thv/catalog/discover/entry/known-servers'
import type { EntryChanges } from '@thv/catalog/discover/entry-outputs'
import type { ExportOptions } from '@thv/catalog/discover/objects/export-options'
import type { ExportWarning } from '@thv/catalog/discover/objects/export-warning'
import { gatewayOf } from '@thv/catalog/discover/objects/gateway'
import { type HttpRoute, httpRouteOf } from '@thv/catalog/discover/objects/http-route'
import { type McpResource, mcpResourceOf, type ResourceKind, resourceKinds } from '@thv/catalog/discover/objects/mcp-resource'
import { referenceGrantOf } from '@thv/catalog/discover/objects/reference-grant'
import { backendServiceOf } from '@thv/catalog/discover/objects/service'
import type { KubernetesSource } from '@thv/catalog/sources/fetch/kubernetes-source'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { abortable } from '@thv/kernel/deadline'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import type { KubeClient, KubeObject, ObjectEvent } from '@thv/kube'
import { services } from '@thv/kube'
import { EntrySet } from './entry-set.ts'
import { NamedNamespaces } from './named-namespaces.ts'

export interface ClusterWatchOptions {
  readonly source: KubernetesSource
  readonly exportOptions: ExportOptions
  readonly intervalMs: number
  readonly debounceMs: number
  /** From one look for an absent kind to the next. Default 30 s. */
  readonly probeMs?: number
  readonly clock: Clock
  readonly random: () => number
  readonly connect: () => Promise<KubeClient>
  /** The export differs from what `read` gave last. */
  readonly onChange: () => void
  /** A kind went, came back, or may be read no more or again. */
  readonly onKind?: (kind: string, state: KindState) => void
}

export interface WatchReading {
  /** Names this reading: who has stored it may ask the next one for the changes alone. */
  readonly id: string
  readonly content: ClusterContent
  readonly warnings: readonly ExportWarning[]
  /** Of entries. */
  readonly count: number
  /** Of all entries. */
  readonly digest: string
  readonly routesReadable: boolean
  readonly notes: readonly string[]
  /** Resources with an entry. */
  readonly exported: () => readonly McpResource[]
}

/** Everything, or what has changed since the reading that was asked for. */
export type ClusterContent = { readonly entries: readonly ExportedEntry[] } | { readonly changes: EntryChanges }

export interface ReadOptions {
  readonly signal: AbortSignal
  /** `id` of the reading whose content the caller has. */
  readonly since?: string | undefined
}

interface Watched {
  readonly kind: string
  readonly watch: KindWatch
  readonly stopped: AbortController
}

const PROBE_MS = 30_000
/** Namespaces, beside its own, whose Gateways a source of some namespaces follows. */
const MAX_GATEWAY_NAMESPACES = 64

/** The export of a cluster, followed by watches. `read` asks the cluster nothing. */
export class ClusterWatch {
  readonly #options: ClusterWatchOptions
  readonly #discovery: Discovery
  readonly #watches = new Map<string, Watched>()
  readonly #routes = new Map<string, HttpRoute>()
  readonly #gatewayNamespaces = new NamedNamespaces(MAX_GATEWAY_NAMESPACES)
  readonly #debounce: Debounce
  readonly #stopped = new AbortController()
  readonly #running: Promise<void>
  readonly #ends = new Set<Promise<void>>()
  #client: KubeClient | undefined
  #problem = 'the cluster has not been reached yet'
  #ready = Promise.withResolvers<void>()
  #isReady = false
  #known: KnownServers | undefined
  readonly #identity = randomUUID()
  readonly #entries = new EntrySet()
  #readings = 0
  #readWarnings: readonly ExportWarning[] | undefined

  constructor(options: ClusterWatchOptions) {
    this.#options = options
    this.#discovery = new Discovery(options.exportOptions)
    const { clock, debounceMs: windowMs } = options
    this.#debounce = new Debounce({ clock, windowMs, fire: () => this.#compare() })
    this.#ready.promise.catch(() => {}) // who waits sees it
    this.#running = this.#run()
  }

  /** Open watches and lists so far, for metrics. */
  get missed(): number {
    return [...this.#watches.values()].reduce((sum, { watch }) => sum + watch.missed, 0)
  }

  /** Waits for the first lists of all kinds. Rejects where MCP resources may not be read. */
  async read(known: KnownServers, { signal, since }: ReadOptions): Promise<WatchReading> {
    await abortable(this.#ready.promise, signal).catch((error: unknown) => {
      throw signal.aborted && this.#client === undefined ? new ThvError('source_failed', this.#problem) : error
    })
    const notes: string[] = []
    for (const { kind, watch } of this.#watches.values()) {
      const isOurs = resourceKinds.some((own) => own === kind)
      if (watch.state === 'absent' && (isOurs || kind === 'HTTPRoute')) notes.push(`the cluster has no kind ${kind}`)
      if (watch.state !== 'forbidden') continue
      const needed = isOurs || (kind === 'Service' && this.#routes.size > 0)
      if (needed) throw new ThvError('source_failed', watch.problem)
      if (kind === 'HTTPRoute') notes.push(`${watch.problem}; routes are not exported`)
    }
    if (this.#known !== known) this.#discovery.setKnownServers(known)
    this.#known = known
    if (this.#gatewayNamespaces.isExceeded)
      notes.push(`routes name Gateways of more than ${MAX_GATEWAY_NAMESPACES} namespaces; those of further ones are not read`)
    const content = this.#takeContent(since)
    const routesReadable = ![...this.#watches.values()].some(({ kind, watch }) => kind === 'HTTPRoute' && watch.state === 'forbidden')
    return {
      ...{ id: this.#readingId, content, warnings: this.#discovery.warnings },
      ...{ count: this.#entries.size, digest: this.#entries.digest() },
      ...{ routesReadable, notes, exported: () => this.#discovery.exported() },
    }
  }

  get #readingId(): string {
    return `${this.#identity}/${this.#readings}`
  }

  #takeContent(since: string | undefined): ClusterContent {
    const isNext = since !== undefined && since === this.#readingId
    this.#discovery.settle()
    const { changes, warnings } = this.#discovery
    this.#discovery.markRead()
    this.#entries.apply(changes)
    this.#readWarnings = warnings
    this.#readings++
    return isNext ? { changes } : { entries: this.#discovery.result().entries }
  }

  /** Of a resource, by another way than the cluster. */
  toolsChanged(resource: McpResource): void {
    this.#discovery.toolsChanged(resource)
    this.#debounce.change()
  }

  async close(): Promise<void> {
    this.#stopped.abort(new ThvError('aborted', 'the watch of the cluster was closed'))
    this.#debounce.close()
    this.#ready.reject(this.#stopped.signal.reason)
    await this.#running
    await Promise.all(this.#ends)
    await this.#client?.close()
  }

  async #run(): Promise<void> {
    const { clock, random, connect, source } = this.#options
    const { signal } = this.#stopped
    const backoff = createBackoff({ baseMs: 500, maxMs: 30_000, random })
    while (!signal.aborted && this.#client === undefined) {
      try {
        this.#client = await connect()
      } catch (error) {
        this.#problem = errorMessage(error)
        await clock.sleep(backoff.next(), signal).catch(() => {}) // the loop sees the abort
      }
    }
    if (signal.aborted || this.#client === undefined) return
    const scopes = source.namespaces?.length ? source.namespaces : [undefined]
    for (const namespace of scopes) {
      for (const kind of resourceKinds) this.#follow(kind, mcpKinds[kind], namespace)
      this.#follow('HTTPRoute', httpRoutes, namespace)
      this.#follow('Service', [services], namespace)
      this.#follow('ReferenceGrant', referenceGrants, namespace)
      if (namespace === undefined) this.#follow('Gateway', gateways, namespace)
    }
    this.#stateChanged()
  }

  #follow(kind: string, versions: KindVersions, namespace: string | undefined): void {
    const key = `${kind}/${namespace ?? ''}`
    if (this.#client === undefined || this.#watches.has(key) || this.#stopped.signal.aborted) return
    const { clock, random, source, intervalMs, probeMs = PROBE_MS } = this.#options
    const isOurs = resourceKinds.some((own) => own === kind)
    let before: KindState = 'starting'
    const watch: KindWatch = new KindWatch({
      client: this.#client,
      clock,
      random,
      kind: versions,
      namespace,
      labelSelector: isOurs ? source.labelSelector || undefined : undefined,
      keep: KEEP[kind] ?? keptResource,
      checkMs: intervalMs,
      probeMs,
      onEvent: (event) => this.#take(kind, event),
      onState: () => {
        if (before !== 'starting' || watch.state !== 'synced') this.#options.onKind?.(kind, watch.state)
        before = watch.state
        this.#stateChanged()
      },
    })
    const stopped = new AbortController()
    this.#watches.set(key, { kind, watch, stopped })
    const running = watch.run(linkSignals(this.#stopped.signal, stopped.signal)).finally(() => this.#ends.delete(running))
    this.#ends.add(running)
  }

  #leave(kind: string, namespace: string): void {
    const watched = this.#watches.get(`${kind}/${namespace}`)
    if (watched === undefined) return
    this.#watches.delete(`${kind}/${namespace}`)
    watched.watch.leave()
    watched.stopped.abort()
  }

  #take(kind: string, event: ObjectEvent): void {
    const gone = event.type === 'DELETED'
    const { object } = event
    const { namespace = '', name } = object.metadata
    const discovery = this.#discovery
    if (kind === 'HTTPRoute') this.#takeRoute(object, gone)
    else if (kind === 'Gateway') gone ? discovery.deleteGateway(namespace, name) : discovery.setGateway(gatewayOf(object))
    else if (kind === 'Service') gone ? discovery.deleteService(namespace, name) : discovery.setService(backendServiceOf(object))
    else if (kind === 'ReferenceGrant') gone ? discovery.deleteGrant(namespace, name) : discovery.setGrant(referenceGrantOf(object))
    else {
      const resource = gone ? undefined : mcpResourceOf(kind as ResourceKind, object)
      if (resource === undefined) discovery.deleteResource({ kind: kind as ResourceKind, namespace, name })
      else discovery.setResource(resource)
    }
    this.#debounce.change()
  }

  #takeRoute(object: KubeObject, gone: boolean): void {
    const { namespace = '', name } = object.metadata
    const route = gone ? undefined : httpRouteOf(object)
    const key = `${namespace}/${name}`
    if (route === undefined) {
      this.#routes.delete(key)
      this.#discovery.deleteRoute(namespace, name)
    } else {
      this.#routes.set(key, route)
      this.#discovery.setRoute(route)
    }
    this.#followGateways(key, route)
  }

  /** A source of some namespaces follows Gateways where its routes name them. */
  #followGateways(key: string, route: HttpRoute | undefined): void {
    if (this.#watches.has('Gateway/')) return
    const named = new Set((route?.parents ?? []).flatMap(({ kind, namespace }) => (kind === 'Gateway' ? [namespace] : [])))
    const own = this.#options.source.namespaces ?? []
    const needsGrants = this.#options.exportOptions.crossNamespaceGateway === 'referenceGrant'
    const change = this.#gatewayNamespaces.set(key, new Set([...named].filter((namespace) => !own.includes(namespace))))
    for (const namespace of change.leave) {
      this.#leave('Gateway', namespace)
      if (needsGrants) this.#leave('ReferenceGrant', namespace)
    }
    for (const namespace of [...own.filter((each) => named.has(each)), ...change.follow]) {
      this.#follow('Gateway', gateways, namespace)
      if (needsGrants) this.#follow('ReferenceGrant', referenceGrants, namespace)
    }
    this.#markUnreadable(change.leave.length + change.follow.length > 0 || route === undefined ? undefined : [route])
  }

  /** Gateways of namespaces that may not be read, or are too many to be followed. */
  #markUnreadable(routes: Iterable<HttpRoute> = this.#routes.values()): void {
    for (const route of routes)
      for (const { kind, namespace, name } of route.parents) {
        const watched = this.#watches.get(`Gateway/${namespace}`) ?? this.#watches.get('Gateway/')
        if (kind === 'Gateway' && (watched === undefined || watched.watch.state === 'forbidden'))
          this.#discovery.setUnreadable(`Gateway/${namespace}/${name}`)
      }
  }

  #stateChanged(): void {
    this.#markUnreadable()
    if (!this.#isReady && [...this.#watches.values()].every(({ watch }) => watch.state !== 'starting')) {
      this.#isReady = true
      this.#ready.resolve()
    }
    this.#debounce.change()
  }

  #compare(): void {
    if (!this.#isReady) return
    this.#discovery.settle()
    const { changes, warnings } = this.#discovery
    if (this.#readings === 0 || changes.entries.length + changes.gone.length > 0 || warnings !== this.#readWarnings)
      this.#options.onChange()
  }
}

const KEEP: Readonly<Record<string, (object: KubeObject) => KubeObject>> = {
  HTTPRoute: keptRoute,
  Gateway: keptGateway,
  Service: keptService,
  ReferenceGrant: keptGrant,
}
