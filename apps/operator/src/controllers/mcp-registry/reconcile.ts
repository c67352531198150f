import { MAX_SHARDS, shardName } from '@thv/catalog/shards/shards'
import {
  configMaps,
  deployments,
  done,
  formatKey,
  type KubeObject,
  type ObjectKey,
  type Outcome,
  type Pod,
  type ReconcileContext,
  services,
  writeStatus,
} from '@thv/kube'
import { MCPRegistryReason } from '@thv/resources/kinds/mcp-registry/constants'
import { normaliseMcpRegistry } from '@thv/resources/kinds/mcp-registry/normalise'
import { type MCPRegistry, mcpRegistryType as type } from '@thv/resources/kinds/mcp-registry/schema'
import { configMapCache, deploymentCache, podCache, secretCache, serviceCache, WORKLOAD_INDEX } from '../../caches/built-in-caches.ts'
import type { ForeignChild, Owner } from '../../deployment/child-applier.ts'
import { cachedKind } from '../../deployment/deployment-plan.ts'
import { isReady, type PodRole, worstProblem } from '../../deployment/status/pod-problem.ts'
import { tellTermination } from '../../deployment/status/terminating.ts'
import { secretsHash } from '../../deployment/template/annotations.ts'
import type { Env } from '../../environment.ts'
import { followerOf } from '../../export/follower-of.ts'
import { urlAtAddress } from '../../proxy/proxy-url.ts'
import type { EntryAggregate } from './aggregate/aggregate-entry.ts'
import { SELECTION_BYTES } from './aggregate/contribution-reader.ts'
import { isSelected } from './aggregate/selected-maps.ts'
import { cache, referencesOfRegistry } from './cache.ts'
import { registryEvents, unsupportedTrigger } from './events.ts'
import { ensureForeignAccess, removeForeignAccess, withdrawForeignAccess } from './foreign-access.ts'
import { COMPONENT_LABEL, registryNames } from './objects/names.ts'
import { certificateKeys } from './objects/pod-volumes.ts'
import { writeWaves } from './objects/write-waves.ts'
import type { HeldSource } from './plan/known-servers.ts'
import { ownedDataMaps } from './plan/owned-data.ts'
import { planMcpRegistry, type RegistryPlan } from './plan/plan.ts'
import { referenceProblems } from './plan/reference-problems.ts'
import { ensureBudget, removeBudget } from './pod-budget.ts'
import { type RegistryState, stateOf } from './registry-state.ts'
import { nextLook } from './status/next-look.ts'
import { registryStatus, type StatusInput } from './status/registry-status.ts'
import { type SyncFacts, syncFactsOf } from './status/sync-status.ts'

const API_PODS: PodRole = {
  name: 'registry API',
  imageAdvice: 'Check TOOLHIVE_REGISTRY_API_IMAGE of the operator and the pull secrets.',
}

interface Work {
  readonly registry: MCPRegistry
  readonly key: ObjectKey
  readonly env: Env
  readonly state: RegistryState
  readonly signal: AbortSignal
}

/** Makes data, configuration and API server as the resource says, and reports what they come to. */
export async function reconcileMcpRegistry(key: ObjectKey, env: Env, { signal }: ReconcileContext): Promise<Outcome> {
  const registry = env.caches.of(cache).get(key)
  const state = stateOf(env)
  if (registry === undefined || registry.metadata.deletionTimestamp !== undefined) {
    state.forget(key)
    state.syncs.forget(key)
    state.images.forget(key)
    if (registry === undefined) return done
    // Its objects go with it, but for rights in other namespaces.
    await removeForeignAccess({ registry, env, signal })
    await tellTermination(registry, { type, env, signal })
    return done
  }
  const work: Work = { registry, key, env, state, signal }
  const aggregates = await aggregatesOf(work)
  await lookUpImages(work, aggregates)
  const plan = planMcpRegistry({
    registry,
    settings: env.settings,
    aggregates,
    missing: missingReferences(work),
    invalidReferences: await invalidReferences(work),
    live: liveDeployment(work),
    secretsHash: variablesHash(work),
    exportReading: followerOf(env)?.read(key),
  })
  const conflict = await execute(plan, work)
  const sync = 'source' in plan.spec ? await state.syncs.step({ registry, plan, signal }) : await serverFacts(plan, work)
  const images = await state.images.update({
    ...work,
    spec: plan.spec,
    maps: env.caches.of(configMapCache).list(key.namespace),
    pods: podsOf(work).filter(isReady),
  })
  await tell(plan, { conflict, sync: { ...sync, conditions: [...sync.conditions, ...images.conditions] } }, work)
  return nextLook({ ...sync, pending: sync.pending || images.pending }, plan)
}

async function aggregatesOf({ registry, key, env, state, signal }: Work): Promise<EntryAggregate[]> {
  const { spec } = normaliseMcpRegistry(registry)
  if (!('registries' in spec)) return []
  const results: EntryAggregate[] = []
  const budget = { left: SELECTION_BYTES }
  for (const entry of spec.registries) {
    const { configMapSelector: selector } = entry
    if (selector === undefined) continue
    const selected = env.caches
      .of(configMapCache)
      .list(key.namespace)
      .filter((map) => isSelected(map, selector))
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    const maps = await state.contributions.read(selected, { ...entry, configMapSelector: selector }, { signal, budget })
    results.push(state.merges.aggregate(formatKey(key), entry, maps))
  }
  return results
}

/**
 * In mode operator the export looks images up in the sources that the operator holds; git and other registries are the server's. Only in
 * those before the first that it does not hold: a copy stands before all sources and would hide a name that an earlier one may list.
 */
async function lookUpImages({ registry, key, env, state, signal }: Work, aggregates: readonly EntryAggregate[]): Promise<void> {
  const { spec } = normaliseMcpRegistry(registry)
  if (spec.export?.mode !== 'operator') return
  const held: HeldSource[] = []
  if ('source' in spec) {
    const shards = Array.from({ length: MAX_SHARDS }, (_, index) => shardName(registryNames(key.name).storage, index))
    const texts = shards.map((name) => env.caches.of(configMapCache).get({ ...key, name })?.data?.['registry.json'])
    held.push({ format: spec.source.type === 'api' ? 'upstream' : spec.source.format, texts: texts.filter((text) => text !== undefined) })
  }
  for (const entry of 'registries' in spec ? spec.registries : []) {
    const { name, format, configMapRef, filter } = entry
    const merged = aggregates.find((aggregate) => aggregate.entry === name)?.texts
    if (merged !== undefined) {
      held.push({ format, texts: merged.filter((text) => text !== undefined) })
      continue
    }
    // The server applies the filter: a copy must not bring back what it leaves out.
    if (configMapRef === undefined || filter !== undefined) break
    const content = await env.caches.configMapContent({ ...key, name: configMapRef.name }, signal)
    const text = content?.data[configMapRef.key]
    if (text === undefined) break
    held.push({ format, texts: [text] })
  }
  followerOf(env)?.setKnown(key, state.knownServers.of(formatKey(key), held))
}

/** As `ConfigMap name` or `Secret name`. */
function missingReferences({ registry, key, env }: Work): string[] {
  const { configMaps: maps, secrets } = referencesOfRegistry(registry)
  const isMissing = (found: KubeObject | undefined) => found === undefined || found.metadata.deletionTimestamp !== undefined
  return [
    ...maps.filter((name) => isMissing(env.caches.of(configMapCache).get({ ...key, name }))).map((name) => `ConfigMap ${name}`),
    ...secrets.filter((name) => isMissing(env.caches.of(secretCache).get({ ...key, name }))).map((name) => `Secret ${name}`),
  ]
}

async function invalidReferences({ registry, key, env, signal }: Work): Promise<string[]> {
  const { spec } = normaliseMcpRegistry(registry)
  const contents = new Map<string, Readonly<Record<string, string>>>()
  for (const name of certificateKeys(spec).keys()) {
    const content = await env.caches.configMapContent({ ...key, name }, signal)
    if (content !== undefined) contents.set(name, content.data)
  }
  const secretKeys = (name: string) => {
    const secret = env.caches.of(secretCache).get({ ...key, name })
    return secret && Object.keys(secret.data ?? {})
  }
  return referenceProblems(spec, { configMap: (name) => contents.get(name), secretKeys }, env.clock.now())
}

function liveDeployment({ key, env }: Work) {
  const name = registryNames(key.name).deployment
  return env.children.latest({ type: deployments, cache: env.caches.of(deploymentCache) }, { ...key, name })
}

/** Of the Secrets that reach the server as variables, or as a file that it reads at the start only. */
function variablesHash({ registry, key, env }: Work): string | undefined {
  const { databaseConfig: database, pgpassSecretRef: pgpass } = registry.spec
  const names = [database?.dbAppUserPasswordSecretRef.name, database?.dbMigrationUserPasswordSecretRef.name, pgpass?.name]
  const secret = (name: string) => {
    const found = env.caches.of(secretCache).get({ ...key, name })
    return (
      found && { uid: found.metadata.uid ?? '', resourceVersion: found.metadata.resourceVersion ?? '', keys: Object.keys(found.data ?? {}) }
    )
  }
  return secretsHash(
    names.filter((name) => name !== undefined),
    { secret } as unknown as Parameters<typeof secretsHash>[1],
  )
}

/** Writes what differs. Gives the object of somebody else that is in the way. */
async function execute(plan: RegistryPlan, work: Work): Promise<ForeignChild | undefined> {
  const { registry, key, env, signal } = work
  const owner: Owner = { object: registry, type }
  if (plan.budget === undefined && plan.blockers.length === 0) await removeBudget({ registry, owner, env, signal }, liveDeployment(work))
  const conflict = await applyObjects(plan, owner, work)
  const isHeld = conflict !== undefined || plan.blockers.length > 0
  // Rights that are not allowed any more go also while something else is wrong.
  await (isHeld ? withdrawForeignAccess : ensureForeignAccess)({ registry, env, signal }, plan.readable)
  if (conflict !== undefined) return conflict
  if (plan.budget !== undefined && plan.blockers.length === 0) await ensureBudget({ registry, owner, env, signal }, plan.budget)
  const maps = { type: configMaps, cache: env.caches.of(configMapCache) }
  for (const { kind, name } of plan.unwanted) await env.children.remove(owner, { ...cachedKind(kind, env.caches), name }, signal)
  const held = env.caches.of(configMapCache).list(key.namespace)
  for (const name of ownedDataMaps(held, { registry, plan, live: liveDeployment(work) }))
    await env.children.remove(owner, { ...maps, name }, signal)
  return undefined
}

/** Data first, the Deployment last. Ends at an object of somebody else. */
async function applyObjects(plan: RegistryPlan, owner: Owner, { env, signal }: Work): Promise<ForeignChild | undefined> {
  const maps = { type: configMaps, cache: env.caches.of(configMapCache) }
  for (const wave of writeWaves(plan.data.wanted)) {
    const outcomes = await Promise.all(wave.map((object) => env.children.ensure(owner, { ...maps, object, isLarge: true }, signal)))
    const taken = outcomes.find((outcome) => outcome.kind === 'foreign')
    if (taken !== undefined) return taken
  }
  for (const { kind, object } of plan.children) {
    const outcome = await env.children.ensure(owner, { ...cachedKind(kind, env.caches), object }, signal)
    if (outcome.kind === 'foreign') return outcome
  }
  return undefined
}

/** The state of sources that the registry server reads. */
async function serverFacts(plan: RegistryPlan, work: Work): Promise<SyncFacts> {
  const { registry, state, signal } = work
  const before = registry.status?.syncStatus
  if (!plan.spec.api.enabled) return { status: undefined, conditions: [], neverSucceeded: false, pending: false }
  const pods = podsOf(work).filter(isReady)
  const [pod] = pods
  if (pod === undefined) {
    const facts = syncFactsOf(undefined, before)
    // Before the first pod is ready there is nothing to report about sources.
    return liveDeployment(work)?.status?.readyReplicas ? facts : { ...facts, conditions: [], pending: false }
  }
  for (const each of pods) {
    const report = await state.reports.read(each, signal)
    if (report !== undefined) return syncFactsOf(report, before)
  }
  return syncFactsOf(undefined, before)
}

function podsOf({ key, env }: Work): Pod[] {
  return env.caches
    .of(podCache)
    .byIndex(WORKLOAD_INDEX, formatKey(key))
    .filter(({ metadata }) => metadata.labels?.[COMPONENT_LABEL] === 'registry-api')
}

async function tell(plan: RegistryPlan, made: Pick<StatusInput, 'conflict' | 'sync'>, work: Work): Promise<void> {
  const { registry, key, env, state, signal } = work
  const deployment = env.caches.of(deploymentCache).get({ ...key, name: registryNames(key.name).deployment })
  const input: StatusInput = {
    ...made,
    plan,
    deployment: plan.spec.api.enabled ? deployment : undefined,
    podProblem: worstProblem(podsOf(work), API_PODS),
    url: urlOf(plan, work),
    generation: registry.metadata.generation,
    ...state.syncs.facts(key, plan.spec),
    mayWriteTimes: state.mayWriteTimes(key, env.clock.now()),
    now: env.clock.now(),
  }
  const { written, before, object } = await writeStatus(
    env.client,
    { type, key, cached: registry },
    { mutate: (current) => registryStatus(current, input), reads: ['conditions'], signal, clock: env.clock },
  )
  if (state.isNewTrigger(key, plan.trigger)) for (const event of unsupportedTrigger(registry)) env.events.record(registry, event)
  if (!written || object === undefined) return
  for (const event of registryEvents(before ?? registry, object)) {
    env.events.record(object, event)
    if (event.reason === MCPRegistryReason.PartialSyncFailure) logFailedMaps(object, env)
  }
}

/** A line of its own for each ConfigMap that was left out. */
function logFailedMaps({ metadata, status }: MCPRegistry, { log }: Env): void {
  for (const { name, error } of status?.configMaps ?? [])
    if (error !== undefined)
      log.warn('a selected ConfigMap is invalid', { registry: metadata.name, namespace: metadata.namespace, configMap: name, error })
}

function urlOf(plan: RegistryPlan, { key, env }: Work): string | undefined {
  if (env.settings.serviceUrls === 'dns') return plan.url
  const service = env.children.latest(
    { type: services, cache: env.caches.of(serviceCache) },
    { ...key, name: registryNames(key.name).service },
  )
  return urlAtAddress(plan.url, service)?.replace(/\/$/, '')
}
