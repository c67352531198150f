import { createHash } from 'node:crypto'
import { readDocument } from '@thv/catalog/merge/read-document'
import { MAX_SHARDS, shardName } from '@thv/catalog/shards/shards'
import { configMapText } from '@thv/catalog/sources/config-map/config-map-text'
import { configHash } from '@thv/kernel/config-hash'
import { errorMessage } from '@thv/kernel/errors'
import { type ConfigMap, configMaps, formatKey, isControlledBy, keyOf, type ObjectKey, refusedWrite, secrets } from '@thv/kube'
import { MCPRegistryCondition, MCPRegistryReason } from '@thv/resources/kinds/mcp-registry/constants'
import { type MCPRegistry, mcpRegistryType } from '@thv/resources/kinds/mcp-registry/schema'
import { scrub } from '@thv/telemetry/redact'
import { configMapCache } from '../../../caches/built-in-caches.ts'
import { OPERATOR } from '../../../deployment/status/refused-write.ts'
import type { Env } from '../../../environment.ts'
import { credentialProblems } from '../config/server-config.ts'
import { dataMaps } from '../objects/children.ts'
import { CONTENT_CHECKSUM, registryNames } from '../objects/names.ts'
import type { RegistryPlan } from '../plan/plan.ts'
import type { StatusInput } from '../status/registry-status.ts'
import type { SyncFacts, SyncStatus } from '../status/sync-status.ts'
import { hashOfTexts, storedData } from './fetch-documents.ts'
import { type FetchFailure, type FetchOutcome, PARALLEL_FETCHES } from './fetch-job.ts'
import { fetchInWorker } from './fetch-worker.ts'
import { createSlots } from './slots.ts'
import { decideSync, retryMs } from './sync-decision.ts'
import { onControllerEnd, wakeRegistry } from './sync-source.ts'

export interface SyncStep {
  readonly registry: MCPRegistry
  readonly plan: RegistryPlan
  readonly signal: AbortSignal
}

/** Syncs of the `source` shape: at most two at a time, one per registry; namespaces take turns. */
export interface SyncRunner {
  /** Starts what is due and gives the state. */
  step(step: SyncStep): Promise<SyncFacts>
  /** None of the other shapes has any. */
  facts(key: ObjectKey, spec: RegistryPlan['spec']): Pick<StatusInput, 'storageRef' | 'filterHash'>
  forget(key: ObjectKey): void
}

/** The end of the last sync of this process; its status may not be written yet. */
interface Ended {
  readonly uid: string | undefined
  readonly status: SyncStatus
  readonly failure: FetchFailure | undefined
  readonly trigger: string | undefined
  readonly identity: string
}

interface Job {
  readonly abort: AbortController
  readonly reason: string
}

const SOURCE_HASH = 'toolhive.stacklok.dev/source-hash'

/** `fetch`: another one in tests. */
export function createSyncRunner(env: Env, fetch: typeof fetchInWorker = fetchInWorker): SyncRunner {
  const running = new Map<string, Job>()
  const ended = new Map<string, Ended>()
  const stored = new Map<string, Pick<StatusInput, 'storageRef' | 'filterHash'>>()
  const slots = createSlots(PARALLEL_FETCHES)

  // Without the lease nothing may be written any more, and in another term the status knows better than this memory.
  onControllerEnd(env.caches, () => {
    for (const { abort } of running.values()) abort.abort()
    for (const memory of [running, ended, stored]) memory.clear()
  })

  async function step({ registry, plan, signal }: SyncStep): Promise<SyncFacts> {
    const { spec } = plan
    if (!('source' in spec)) throw new TypeError('only the source shape is synced by the operator')
    signal.throwIfAborted()
    const key = keyOf(registry)
    const id = formatKey(key)
    const before = registry.status
    const last = ended.get(id)?.uid === registry.metadata.uid ? ended.get(id) : undefined
    const known = last?.status ?? before?.syncStatus
    const identity = configHash([spec.source, spec.filter ?? {}])
    stored.set(id, {
      storageRef: { type: 'configmap', configMapRef: { name: registryNames(key.name).storage } },
      filterHash: known?.lastSyncTime === undefined ? before?.lastAppliedFilterHash : configHash(spec.filter ?? {}),
    })
    if (running.has(id)) return factsOf({ ...known, phase: 'Syncing' }, last)
    const maps = storageMaps(registry)
    const text = spec.source.type === 'configMap' ? await sourceText(registry, plan, signal) : undefined
    const decision = decideSync({
      known,
      interval: spec.source.type === 'configMap' ? undefined : spec.syncPolicy?.interval,
      trigger: plan.trigger,
      doneTrigger: last?.trigger ?? before?.lastManualSyncTrigger,
      changed: isOther({ known, last, text, identity, stored: identityOf(maps) }),
      damaged: isDamaged(maps, registryNames(key.name).storage, text === undefined ? known?.lastSyncHash : storedHash(text.outcome)),
      now: env.clock.now(),
    })
    if (!decision.sync) return factsOf(known, last, decision.nextMs)
    const job: Job = { abort: new AbortController(), reason: decision.reason }
    running.set(id, job)
    const work = run({ registry, plan, identity, known, job, text: text?.outcome })
    if (spec.source.type === 'configMap') {
      await work
      const end = ended.get(id)
      return factsOf(end?.status, end, end?.failure && retryMs(end.status))
    }
    void work.then(() => wakeRegistry(env.caches, key))
    return factsOf({ ...known, phase: 'Syncing' }, last)
  }

  interface Run {
    readonly registry: MCPRegistry
    readonly plan: RegistryPlan
    readonly identity: string
    readonly known: SyncStatus | undefined
    readonly job: Job
    readonly text: FetchOutcome | undefined
  }

  /** Never rejects. */
  async function run({ registry, plan, identity, known, job, text }: Run): Promise<void> {
    const key = keyOf(registry)
    const id = formatKey(key)
    const { signal } = job.abort
    let outcome: FetchOutcome
    try {
      outcome = text ?? (await slots.use(key.namespace ?? '', () => fetched(registry, plan, signal)))
      if (outcome.ok && !signal.aborted) outcome = await store({ registry, plan, identity, outcome, signal })
    } catch (error) {
      outcome = { ok: false, reason: 'StorageFailed', message: refusedWrite(error, OPERATOR) ?? errorMessage(error) }
    }
    if (running.get(id) === job) running.delete(id)
    if (signal.aborted) return
    const at = new Date(env.clock.now()).toISOString()
    if (!outcome.ok)
      env.log.warn('registry sync failed', { registry: id, cause: job.reason, reason: outcome.reason, error: outcome.message })
    ended.set(id, {
      uid: registry.metadata.uid,
      identity,
      trigger: plan.trigger,
      failure: outcome.ok ? undefined : outcome,
      status: outcome.ok ? succeeded(outcome, at) : failed(outcome, known, at),
    })
  }

  async function fetched(registry: MCPRegistry, { spec }: RegistryPlan, signal: AbortSignal): Promise<FetchOutcome> {
    if (!('source' in spec)) throw new TypeError('only the source shape is synced by the operator')
    const [problem] = credentialProblems(spec.source, 'spec.source')
    if (problem !== undefined) return { ok: false, reason: 'ValidationFailed', message: `${problem.field} ${problem.message}` }
    const { git } = spec.source
    const ref = git?.auth?.passwordSecretRef
    let password: string | undefined
    if (ref !== undefined) {
      const secret = await env.client.tryGet(secrets, { ...keyOf(registry), name: ref.name }, { signal })
      const encoded = secret?.data?.[ref.key]
      if (encoded === undefined)
        return {
          ok: false,
          reason: 'SourceNotFound',
          message: `Secret ${ref.name} with key ${ref.key} does not exist: create it, or correct spec.source.git.auth`,
        }
      password = Buffer.from(encoded, 'base64').toString('utf8').trimEnd()
    }
    return await fetch({ source: spec.source, filter: spec.filter, password, remotes: env.settings.remotes }, signal)
  }

  interface Store {
    readonly registry: MCPRegistry
    readonly plan: RegistryPlan
    readonly identity: string
    readonly outcome: Extract<FetchOutcome, { ok: true }>
    readonly signal: AbortSignal
  }

  /** Gains before losses, so that no server is missing meanwhile. */
  async function store({ registry, plan, identity, outcome, signal }: Store): Promise<FetchOutcome> {
    const { name, namespace = '' } = registry.metadata
    // Another registry answers in the upstream format, whatever the spec says.
    const format = 'source' in plan.spec && plan.spec.source.api === undefined ? plan.spec.source.format : 'upstream'
    const annotations = {
      'toolhive.stacklok.dev/registry-name': name,
      'toolhive.stacklok.dev/registry-format': format,
      [SOURCE_HASH]: identity,
    }
    const first = registryNames(name).storage
    const maps = dataMaps({ name, namespace, first, component: 'registry-storage', annotations }, outcome.texts)
    const owner = { object: registry, type: mcpRegistryType }
    const kind = { type: configMaps, cache: env.caches.of(configMapCache) }
    for (const object of maps.wanted) {
      const applied = await env.children.ensure(owner, { ...kind, object, isLarge: true }, signal)
      if (applied.kind === 'foreign')
        return {
          ok: false,
          reason: 'StorageFailed',
          message: `ConfigMap ${applied.name} belongs to ${applied.controller ?? 'somebody else'}: delete it, or give this registry another name`,
        }
    }
    for (const unwanted of maps.unwanted) await env.children.remove(owner, { ...kind, name: unwanted }, signal)
    return outcome
  }

  function storageMaps(registry: MCPRegistry): ConfigMap[] {
    const first = registryNames(registry.metadata.name).storage
    return env.caches
      .of(configMapCache)
      .list(registry.metadata.namespace)
      .filter((map) => (map.metadata.name === first || map.metadata.name.startsWith(`${first}-`)) && isControlledBy(map, registry))
  }

  /** Read once per version of the ConfigMap. */
  async function sourceText(registry: MCPRegistry, { spec }: RegistryPlan, signal: AbortSignal) {
    if (!('source' in spec) || spec.source.configMap === undefined) return undefined
    const { name, key } = spec.source.configMap
    const content = await env.caches.configMapContent({ ...keyOf(registry), name }, signal)
    const text = content === undefined ? undefined : configMapText(content, key)
    const missing = (message: string) => ({ hash: undefined, outcome: { ok: false, reason: 'SourceNotFound', message } as const })
    if (text === undefined) return missing(`ConfigMap ${name} does not exist: create it, or correct spec.source.configMap`)
    if (!text.ok) return missing(`ConfigMap ${name} ${text.problem}`)
    const hash = createHash('sha256').update(text.text).digest('hex')
    const data = storedData(readDocument(text.text, spec.source.format), spec.filter)
    return { hash, outcome: data.ok ? { ...data, hash } : data }
  }

  return {
    step,
    facts: (key, spec) => ('source' in spec ? (stored.get(formatKey(key)) ?? {}) : {}),
    forget(key) {
      const id = formatKey(key)
      running.get(id)?.abort.abort()
      running.delete(id)
      ended.delete(id)
      stored.delete(id)
    },
  }
}

interface Otherness {
  readonly known: SyncStatus | undefined
  readonly last: Ended | undefined
  readonly text: { readonly hash: string | undefined; readonly outcome: FetchOutcome } | undefined
  readonly identity: string
  readonly stored: string | undefined
}

/** Another source or filter than at the last sync, or another content of the source ConfigMap. */
function isOther({ known, last, text, identity, stored }: Otherness): boolean {
  if ((last?.identity ?? stored ?? identity) !== identity) return true
  if (text === undefined) return false
  // Data that could not be stored are tried again after their wait, however often something else happens meanwhile.
  return known?.phase === 'Complete' ? text.hash !== known.lastSyncHash : text.outcome.ok && last?.failure?.reason !== 'StorageFailed'
}

function identityOf(maps: readonly ConfigMap[]): string | undefined {
  return maps[0]?.metadata.annotations?.[SOURCE_HASH]
}

function storedHash(outcome: FetchOutcome): string | undefined {
  return outcome.ok ? hashOfTexts(outcome.texts) : undefined
}

/** Missing, also one of several, or not what the operator wrote. */
function isDamaged(maps: readonly ConfigMap[], first: string, expected: string | undefined): boolean {
  const texts = Array.from(
    { length: MAX_SHARDS },
    (_, index) => maps.find(({ metadata }) => metadata.name === shardName(first, index))?.data?.['registry.json'],
  )
  if (maps.length === 0 || (expected !== undefined && hashOfTexts(texts) !== expected)) return true
  return maps.some(({ metadata, data }) => {
    const text = data?.['registry.json'] ?? ''
    const isOnly = Object.keys(data ?? {}).length === 1
    return !isOnly || metadata.annotations?.[CONTENT_CHECKSUM] !== createHash('sha256').update(text).digest('hex')
  })
}

function succeeded({ hash, servers, left }: Extract<FetchOutcome, { ok: true }>, at: string): SyncStatus {
  const message = left === 0 ? `${servers} servers` : `${servers} servers; ${left} invalid ones were left out`
  return { phase: 'Complete', message, lastAttempt: at, attemptCount: 0, lastSyncTime: at, lastSyncHash: hash, serverCount: servers }
}

function failed({ message }: FetchFailure, known: SyncStatus | undefined, at: string): SyncStatus {
  const { lastSyncTime } = known ?? {}
  const served = lastSyncTime === undefined ? '' : `; the data of ${lastSyncTime} are served`
  const told = `${scrub(message).slice(0, 1_000)}${served}`
  return { ...known, phase: 'Failed', message: told, lastAttempt: at, attemptCount: (known?.attemptCount ?? 0) + 1 }
}

function factsOf(status: SyncStatus | undefined, last: Ended | undefined, nextMs?: number): SyncFacts {
  return {
    status,
    conditions: conditionsOf(status, last?.failure),
    neverSucceeded: false,
    doneTrigger: last?.trigger,
    pending: false,
    nextMs,
  }
}

const OF_THE_SOURCE: ReadonlySet<string> = new Set(['ValidationFailed', 'HandlerCreationFailed', 'SourceNotFound'])

function conditionsOf(status: SyncStatus | undefined, failure: FetchFailure | undefined): SyncFacts['conditions'] {
  const { SyncSuccessful, SourceAvailable, DataValid } = MCPRegistryCondition
  const message = status?.message ?? ''
  if (status?.phase === 'Complete')
    return [
      { type: SyncSuccessful, status: 'True', reason: MCPRegistryReason.SyncComplete, message },
      { type: DataValid, status: 'True', reason: MCPRegistryReason.DataValid, message },
    ]
  if (status?.phase !== 'Failed')
    return [{ type: SyncSuccessful, status: 'Unknown', reason: MCPRegistryReason.SyncInProgress, message: 'the source is being read' }]
  const reason = failure?.reason ?? MCPRegistryReason.FetchFailed
  const sync = { type: SyncSuccessful, status: 'False', reason, message } as const
  if (OF_THE_SOURCE.has(reason)) return [sync, { type: SourceAvailable, status: 'False', reason, message }]
  return reason === 'InvalidData' ? [sync, { type: DataValid, status: 'False', reason, message }] : [sync]
}
