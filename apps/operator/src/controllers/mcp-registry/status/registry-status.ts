import type { Conditions, ConditionUpdate, Deployment } from '@thv/kube'
import { MCPRegistryCondition, MCPRegistryReason } from '@thv/resources/kinds/mcp-registry/constants'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import type { ForeignChild } from '../../../deployment/child-applier.ts'
import { nextConditions } from '../../../deployment/status/conditions.ts'
import type { PodProblem } from '../../../deployment/status/pod-problem.ts'
import { podSelector } from '../objects/names.ts'
import type { RegistryPlan } from '../plan/plan.ts'
import type { SyncFacts, SyncStatus } from './sync-status.ts'

type Status = NonNullable<MCPRegistry['status']>

export interface StatusInput {
  readonly plan: RegistryPlan
  /** As it is in the cluster; undefined: there is none. */
  readonly deployment: Deployment | undefined
  readonly podProblem: PodProblem | undefined
  readonly conflict: ForeignChild | undefined
  readonly sync: SyncFacts
  /** Where clients reach the API; undefined while the address is not known. */
  readonly url: string | undefined
  /** Of the spec that the plan was made of. */
  readonly generation: number | undefined
  readonly storageRef?: Status['storageRef']
  readonly filterHash?: string | undefined
  /** Times alone are written at most once a minute. */
  readonly mayWriteTimes: boolean
  readonly now: number
}

/** The whole status after one reconcile. Pure: asked again about fresh state when somebody else wrote first. */
export function registryStatus(current: MCPRegistry, input: StatusInput): Status {
  const { plan, sync, deployment, generation, now } = input
  const { status: before = {} } = current
  const api = apiStatusOf(input, before)
  const overall = overallOf(input, api.phase)
  const set = [
    readyCondition(input, overall),
    apiCondition(input, api),
    ...plan.conditions,
    ...sync.conditions,
    ...blocked(plan),
    ...taken(input),
  ]
  const kept = plan.exportPending ? [MCPRegistryCondition.RegistryExport as string] : []
  const unique = [...new Map(set.map((update) => [update.type, update])).values()]
  const known = new Set<string>(unique.map(({ type }) => type))
  const conditions = nextConditions(
    before.conditions as Conditions | undefined,
    { set: unique, remove: Object.values<string>(MCPRegistryCondition).filter((type) => !known.has(type) && !kept.includes(type)) },
    { generation, now },
  )
  const trigger = sync.doneTrigger ?? before.lastManualSyncTrigger
  const configMaps = mapStatus(plan)
  const syncStatus = steadyTimes(sync.status, before.syncStatus, input.mayWriteTimes)
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    ...overall,
    ...(input.url !== undefined && api.phase === 'Ready' && { url: input.url }),
    replicas: deployment?.status?.replicas ?? 0,
    readyReplicas: deployment?.status?.readyReplicas ?? 0,
    selector: Object.entries(podSelector(current.metadata.name))
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
    ...(syncStatus !== undefined && { syncStatus }),
    apiStatus: api,
    ...(input.filterHash !== undefined && { lastAppliedFilterHash: input.filterHash }),
    ...(trigger !== undefined && { lastManualSyncTrigger: trigger }),
    ...(input.storageRef !== undefined && { storageRef: input.storageRef }),
    ...(configMaps.length > 0 && { configMaps }),
    ...exportedServers(plan, before),
    conditions: [...conditions],
  } as Status
}

/** The last number stays until the cluster has been read. */
function exportedServers({ exportedServers: count, exportPending }: RegistryPlan, before: Status): Pick<Status, 'exportedServers'> {
  const known = exportPending ? before.exportedServers : count
  return known === undefined ? {} : { exportedServers: known }
}

type ApiStatus = NonNullable<Status['apiStatus']>

function apiStatusOf({ plan, deployment, podProblem, conflict, url, now }: StatusInput, before: Status): ApiStatus {
  if (!plan.spec.api.enabled) return { phase: 'NotStarted', message: 'the API is disabled' }
  if (conflict !== undefined) return { phase: 'Error', message: conflictMessage(conflict) }
  if ((deployment?.status?.readyReplicas ?? 0) > 0) {
    const wasReady = before.apiStatus?.phase === 'Ready' ? before.apiStatus.readySince : undefined
    return {
      phase: 'Ready',
      message: 'the API is serving requests',
      ...(url !== undefined && { endpoint: url }),
      readySince: wasReady ?? new Date(now).toISOString(),
    }
  }
  if (podProblem?.fatal) return { phase: 'Error', message: podProblem.message }
  if (deployment === undefined) return { phase: 'NotStarted', message: 'the API is not deployed' }
  const phase = before.apiStatus?.readySince === undefined ? 'Deploying' : 'Unhealthy'
  return { phase, message: podProblem?.message ?? 'no API pod is ready yet' }
}

interface Overall {
  readonly phase: NonNullable<Status['phase']>
  readonly message: string
}

function overallOf({ plan, sync, conflict, deployment, podProblem }: StatusInput, api: ApiStatus['phase']): Overall {
  const [blocker] = plan.blockers
  if (blocker !== undefined) return { phase: 'Failed', message: plan.blockers.map(({ message }) => message).join('; ') }
  if (conflict !== undefined) return { phase: 'Failed', message: conflictMessage(conflict) }
  if (sync.neverSucceeded) return { phase: 'Failed', message: `Sync failed: ${sync.status?.message ?? 'no source could be read'}` }
  const isOperatorSync = 'source' in plan.spec
  if (isOperatorSync && sync.status?.phase === 'Failed') return { phase: 'Failed', message: `Sync failed: ${sync.status.message ?? ''}` }
  if (api === 'Error') return { phase: 'Failed', message: `API deployment failed: ${podProblem?.message ?? ''}` }
  if (isOperatorSync && sync.status?.phase !== 'Complete') return { phase: 'Syncing', message: 'Registry data synchronization in progress' }
  if (api === 'Ready') return { phase: 'Ready', message: `Registry is ready and API is serving requests${failures(sync, plan)}` }
  if (!plan.spec.api.enabled) return { phase: 'Ready', message: `Registry data is up to date; the API is disabled${failures(sync, plan)}` }
  if (isOperatorSync) return { phase: 'Pending', message: 'Registry data synced, API deployment in progress' }
  return {
    phase: 'Pending',
    message: podProblem?.message ?? (deployment ? 'Registry API deployment is not ready yet' : 'Registry initialization in progress'),
  }
}

/** A registry that serves is Ready; its message says what is not as it should be. */
function failures({ conditions }: SyncFacts, plan: RegistryPlan): string {
  const bad = [...conditions, ...plan.conditions].filter(
    ({ type, status }) =>
      status === 'False' && (type === MCPRegistryCondition.SyncSuccessful || type === MCPRegistryCondition.SourcesValid),
  )
  return bad.map(({ message }) => `. ${message}`).join('')
}

function readyCondition({ plan }: StatusInput, { phase, message }: Overall): ConditionUpdate {
  const type = MCPRegistryCondition.Ready
  if (phase === 'Ready') return { type, status: 'True', reason: MCPRegistryReason.Ready, message }
  const reason = plan.blockers.length > 0 ? MCPRegistryReason.ValidationFailed : MCPRegistryReason.NotReady
  return { type, status: 'False', reason, message }
}

function apiCondition({ plan }: StatusInput, { phase, message }: ApiStatus): ConditionUpdate {
  const type = MCPRegistryCondition.APIReady
  const text = message ?? ''
  if (phase === 'Ready') return { type, status: 'True', reason: MCPRegistryReason.APIReady, message: text }
  const reason = plan.spec.api.enabled ? MCPRegistryReason.APINotReady : MCPRegistryReason.APIDisabled
  return { type, status: 'False', reason, message: text }
}

function blocked({ blockers }: RegistryPlan): ConditionUpdate[] {
  const byType = new Map<string, ConditionUpdate>()
  for (const { condition: type, status = 'False', reason, message } of blockers) {
    const before = byType.get(type)
    byType.set(type, before === undefined ? { type, status, reason, message } : { ...before, message: `${before.message}; ${message}` })
  }
  return [...byType.values()]
}

function taken({ conflict }: StatusInput): ConditionUpdate[] {
  if (conflict === undefined) return []
  const { NameConflict } = MCPRegistryCondition
  return [{ type: NameConflict, status: 'True', reason: MCPRegistryReason.NameTakenByOtherWorkload, message: conflictMessage(conflict) }]
}

function conflictMessage({ childKind, name, controller }: ForeignChild): string {
  const whose = controller === undefined ? 'which this registry did not make' : `which belongs to ${controller}`
  return `There is a ${childKind} ${name} already, ${whose}: delete it, or give this registry another name.`
}

const MAX_MAPS = 500

/** Failed ones first. */
function mapStatus({ aggregates }: RegistryPlan): NonNullable<Status['configMaps']> {
  const all = aggregates.flatMap(({ entry, maps }) => maps.map((map) => ({ registry: entry, ...map })))
  const failed = all.filter(({ error }) => error !== undefined)
  return [...failed, ...all.filter(({ error }) => error === undefined)]
    .slice(0, MAX_MAPS)
    .map(({ error, ...rest }) => ({ ...rest, ...(error !== undefined && { error: error.slice(0, 1_000) }) }))
}

function steadyTimes(next: SyncStatus | undefined, before: SyncStatus | undefined, mayWriteTimes: boolean): SyncStatus | undefined {
  if (next === undefined || before === undefined || mayWriteTimes) return next
  const { lastAttempt: _, lastSyncTime: __, ...facts } = next
  const { lastAttempt, lastSyncTime, ...known } = before
  const same = JSON.stringify(Object.entries(facts).sort()) === JSON.stringify(Object.entries(known).sort())
  return same ? { ...next, ...(lastAttempt !== undefined && { lastAttempt }), ...(lastSyncTime !== undefined && { lastSyncTime }) } : next
}
