import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { DEFAULT_FETCH_LIMITS, type FetchLimits } from '@thv/catalog/sources/fetch/registry-handler'
import { apiServerAddresses } from '@thv/http/outbound/api-server-addresses'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import type { Logger } from '@thv/telemetry/log'
import type { RegistryConfig } from '../config/registry-config.ts'
import { type ConnectCluster, connectCluster } from '../kubernetes/cluster-connection.ts'
import { createClusterWatches } from '../kubernetes/cluster-watches.ts'
import { createIntrospections } from '../kubernetes/introspections.ts'
import { createKnownEntries } from '../kubernetes/known-entries.ts'
import { createKubernetesHandler } from '../kubernetes/kubernetes-handler.ts'
import { createLeadership } from '../kubernetes/leadership.ts'
import type { RegistryStore, SourceRecord } from '../store/registry-store.ts'
import { createFileWatcher } from '../sync/file-watcher.ts'
import { startSyncLoop } from '../sync/sync-loop.ts'
import type { Handlers } from '../sync/sync-options.ts'
import type { EngineAdmin, EngineStatus } from './engine.ts'
import { type EntryPage, type EntryPlace, entryPage } from './entry-page.ts'
import { createListedImages } from './listed-images.ts'
import type { Publication, ViewTarget } from './publication.ts'
import { startViewLoop, type ViewFacts } from './view-loop.ts'

export interface EngineCoreOptions {
  readonly config: RegistryConfig
  /** Becomes the engine's: it closes it. */
  readonly store: RegistryStore
  readonly handlers: Handlers
  readonly clock: Clock
  readonly log: Logger
  readonly publish: (publication: Publication) => void
  /** In [0, 1). */
  readonly random?: () => number
  /** For tests: clusters, and the environment that says whether this is a pod. */
  readonly connectCluster?: ConnectCluster
  readonly env?: Readonly<Record<string, string | undefined>>
  /** For tests: from one look for a kind that the cluster does not have to the next. */
  readonly clusterProbeMs?: number
}

/** The working half, wherever it runs: what it finds out goes to `publish`. */
export interface EngineCore extends AsyncDisposable {
  readonly admin: CoreAdmin
  reload(config: RegistryConfig): Promise<void>
  resign(): Promise<void>
  want(target: ViewTarget): void
  unwant(target: ViewTarget): void
}

/** Long lists in pages: a message of 100,000 objects would stop the other thread. */
export interface CoreAdmin extends Omit<EngineAdmin, 'entriesOf'> {
  entryPage(source: string, after: EntryPlace | undefined): Promise<EntryPage>
}

const SERVED_WITHIN_MS = 2_000
/** Of what a file may hold, at most this share more comes over the wire: headers, other files of a repository. */
const WIRE_FACTOR = 2

export async function createEngineCore(options: EngineCoreOptions): Promise<EngineCore> {
  const { store, handlers, clock, log, publish, random = Math.random } = options
  let config = options.config
  await store.reconcileConfig(config)
  await requestOnce(store)
  const pause = async () => void (await setImmediate())
  const views = startViewLoop({ store, clock, log, publish, pause, onStatus: () => publishStatus() })
  const known = createKnownEntries({ store, catalog: views.catalog, pause })
  const listedImages = createListedImages({ store, catalog: views.catalog, pause })
  const connect = options.connectCluster ?? connectCluster
  const leadership = createLeadership({ clock, log, random, env: options.env ?? process.env, connect, onChange: () => leadershipChanged() })
  leadership.set(config.sources)
  const introspections = createIntrospections({
    clock,
    random,
    log,
    connect,
    onChange(source, resource) {
      watches.of(source)?.toolsChanged(resource)
      if (watches.of(source) === undefined) void requestSync(source)
    },
  })
  let kindChanges = 0
  const watches = createClusterWatches({
    toolsOf: (source) => introspections.of(source)?.toolsOf,
    clock,
    random,
    connect: async (source) => (await connect(source)).client,
    onChange: (source) => void requestSync(source),
    onKind(source, kind, state) {
      kindChanges++
      log.info('a kind of the cluster changed', { source, kind, state })
      publishStatus()
    },
    ...(options.clusterProbeMs !== undefined && { probeMs: options.clusterProbeMs }),
  })
  const kubernetes = createKubernetesHandler({
    connect: async (source) => (await connect(source)).client,
    mayRead: (source) => leadership.mayTake(source),
    watchOf: (source) => watches.of(source),
    introspectionOf: (source) => introspections.of(source),
    async known(source) {
      await views.caughtUp(SERVED_WITHIN_MS)
      return await known(source)
    },
  })
  const sync = startSyncLoop({
    store,
    handlers: { kubernetes, ...handlers },
    clock,
    log,
    config: () => config.sync,
    owner: randomUUID(),
    limits: () => limitsOf(config),
    tempDir: tmpdir(),
    blockedAddresses: apiServerAddresses({ env: process.env }),
    random,
    pause,
    withheld: () => leadership.withheld,
    onEnd(source, end) {
      publishStatus()
      if (end === 'succeeded' && source.kubernetes === undefined) void wakeReaders(source.name)
    },
  })

  const followClusters = () => {
    const led = config.sources.filter(({ name }) => leadership.mayTake(name))
    introspections.set(led)
    watches.set(led)
  }
  followClusters()

  function leadershipChanged(): void {
    followClusters()
    sync.poke()
    publishStatus()
  }

  async function requestSync(source: string): Promise<void> {
    try {
      await store.requestSync(source)
      sync.poke()
    } catch (error) {
      log.debug('a change of the cluster is synced at the next interval', { source, error: errorMessage(error) })
    }
  }

  /** Kubernetes sources look for images in the other sources of their registries. */
  async function wakeReaders(changed: string): Promise<void> {
    try {
      const readers = new Set((await store.sources()).flatMap(({ config: one }) => (one.kubernetes === undefined ? [] : [one.name])))
      if (readers.size === 0) return
      const beside = (await store.registries()).filter(({ spec }) => spec.sources.includes(changed)).flatMap(({ spec }) => spec.sources)
      for (const source of new Set(beside)) if (readers.has(source)) await store.requestSync(source)
      sync.poke()
    } catch (error) {
      log.debug('kubernetes sources see the change at their next sync', { error: errorMessage(error) })
    }
  }

  const files = createFileWatcher({
    clock,
    log,
    async onChange(source) {
      // A kubeconfig: the watches begin again with it. They ask for a sync where the cluster is another.
      if (config.sources.some(({ name, kubernetes }) => name === source && kubernetes !== undefined)) return followClusters()
      await store.requestSync(source)
      sync.poke()
    },
  })

  function publishStatus(): void {
    const { storeError, unbuilt, revision, sources } = views.facts
    files.set(filesOf(sources))
    followClusters()
    const leader = leadership.status
    const named = (which: (sync: (typeof sources)[number]['sync']) => boolean) =>
      sources.filter((source) => which(source.sync)).map((source) => source.config.name)
    const status: EngineStatus = {
      ...(storeError !== undefined && { storeError }),
      loaded: storeError === undefined,
      unbuilt,
      unsynced: named(({ phase, attemptCount, lastSuccess }) => phase !== 'complete' && attemptCount === 0 && lastSuccess === undefined),
      failed: named(({ phase, attemptCount }) => phase === 'failed' || (phase === 'syncing' && attemptCount > 0)),
      revision,
      ...(leader && { leader: { ...leader, ownStore: store.kind === 'sqlite' } }),
      syncs: { ...sync.counts },
      kindChanges,
    }
    publish({ kind: 'status', status })
  }

  /** Writes, and waits until it shows. */
  async function served<T>(write: Promise<T>, source?: string): Promise<T> {
    const result = await write
    if (source !== undefined) void wakeReaders(source)
    sync.poke()
    await views.caughtUp(SERVED_WITHIN_MS)
    return result
  }

  const admin: CoreAdmin = unlessLost(() => views.facts, {
    sources: () => store.sources(),
    registries: () => store.registries(),
    putSource: (source) => served(store.putSource(source)),
    deleteSource: (name) => served(store.deleteSource(name)),
    putRegistry: (registry) => served(store.putRegistry(registry)),
    deleteRegistry: (name) => served(store.deleteRegistry(name)),
    async requestSync(source) {
      await store.requestSync(source)
      sync.poke()
    },
    entryPage: async (source, after) => entryPage(views.catalog, source, after),
    async listedImages() {
      await views.caughtUp(SERVED_WITHIN_MS)
      return await listedImages()
    },
    publish: (entry) => served(store.publish(entry), entry.source),
    replaceDocument: (entry) => served(store.replaceDocument(entry), entry.source),
    setStatus: (change) => served(store.setStatus(change), change.source),
    versionsOf: (source, name) => store.versionsOf(source, name),
    claimsOf: (source, name) => store.claimsOf(source, name),
    setClaims: (change) => served(store.setClaims(change), change.source),
  })

  return {
    admin,
    async reload(next) {
      if (!jsonEqual(next.storage, config.storage)) {
        throw new ThvError('registry_config_invalid', 'the storage cannot change while the server runs: restart it')
      }
      await store.reconcileConfig(next)
      config = next
      leadership.set(config.sources)
      followClusters()
      sync.poke()
      await views.caughtUp(SERVED_WITHIN_MS)
    },
    resign: () => leadership.resign(),
    want: views.want,
    unwant: views.unwant,
    async [Symbol.asyncDispose]() {
      await leadership[Symbol.asyncDispose]()
      await files[Symbol.asyncDispose]()
      await watches[Symbol.asyncDispose]()
      await introspections[Symbol.asyncDispose]()
      await sync[Symbol.asyncDispose]()
      await views[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

/** A source without an interval is fetched once per start. An embedded store has everything due then anyway. */
async function requestOnce(store: RegistryStore): Promise<void> {
  for (const { config } of await store.sources())
    if (config.managed === undefined && config.intervalMs === undefined) await store.requestSync(config.name)
}

function filesOf(sources: readonly SourceRecord[]): ReadonlyMap<string, string> {
  return new Map(
    sources.flatMap(({ config: { name, file, kubernetes } }) => {
      const path = file?.path ?? (kubernetes?.watch?.enabled === true ? kubernetes.kubeconfig?.path : undefined)
      return path === undefined ? [] : [[name, path] as const]
    }),
  )
}

/** A database that is silent costs each statement half a minute. Once that is known, calls fail at once. */
function unlessLost(facts: () => ViewFacts, admin: CoreAdmin): CoreAdmin {
  const guarded = (call: (...args: never[]) => Promise<unknown>) => {
    return async (...args: never[]) => {
      const { lost, storeError = '' } = facts()
      if (lost) throw new ThvError('store_unavailable', storeError)
      return call(...args)
    }
  }
  return Object.fromEntries(Object.entries(admin).map(([name, call]) => [name, guarded(call)])) as unknown as CoreAdmin
}

function limitsOf({ sync }: RegistryConfig): FetchLimits {
  return { ...DEFAULT_FETCH_LIMITS, maxBytes: sync.maxFileBytes, maxWireBytes: sync.maxFileBytes * WIRE_FACTOR }
}
