import type { Conditions, ConditionUpdate, KubeObject } from '@thv/kube'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { OperatorEvent } from '../../environment.ts'
import type { ForeignChild } from '../child-applier.ts'
import type { Blocker } from '../contribution.ts'
import type { WorkloadPlan } from '../deployment-plan.ts'
import type { Executed } from '../execute-plan.ts'
import { nextConditions, transitionEvents } from './conditions.ts'
import type { PodsHealth } from './pods-health.ts'

export interface WorkloadStatusInput {
  /** Label selector of the workload's pods, as autoscalers read it. */
  readonly selector: string
  /** Kinds that also run server pods count them. */
  readonly countsReady: boolean
  /** Condition for a Service name that somebody else holds. */
  readonly aliasTaken: (name: string) => ConditionUpdate
  /** Of the spec that the plan was made of: when the status is written, somebody may have edited it already. */
  readonly generation: number | undefined
  readonly plan: WorkloadPlan
  readonly executed: Executed
  readonly health: PodsHealth<string>
  /** The types that this controller writes; others' stay. */
  readonly managed: readonly string[]
  /** Phase in which `Ready` is True. */
  readonly readyPhase: string
  readonly now: number
}

const WARNS_WHEN_TRUE: ReadonlySet<string> = new Set([
  WorkloadCondition.MiddlewareUnsupported,
  WorkloadCondition.NameConflict,
  WorkloadCondition.ServiceAliasSkipped,
  WorkloadCondition.EnvironmentShadowed,
  WorkloadCondition.SessionStorageWarning,
  WorkloadCondition.AuthzPrimaryUpstreamProviderIgnored,
  WorkloadCondition.AuthzVisibleToolNames,
  WorkloadCondition.PlaintextSecret,
  WorkloadCondition.AuthServerReplicaCapped,
  'StdioReplicaCapped',
  'PermissionProfilePartial',
])

/** Events for people: not that a new workload is not ready yet, but that one has failed. */
export function workloadEvents(before: Conditions | undefined, after: Conditions, phase: unknown): OperatorEvent[] {
  const startsBad = phase === 'Failed' ? NONE : new Set([WorkloadCondition.Ready])
  return transitionEvents(before, after, { warnsWhenTrue: WARNS_WHEN_TRUE, startsBad })
}

const NONE: ReadonlySet<string> = new Set()

type WithStatus = KubeObject & { status?: { conditions?: readonly unknown[] | undefined } | undefined }

/** The whole status after one reconcile. Pure: asked again about fresh state when somebody else wrote first. */
export function workloadStatusOf(current: WithStatus, input: WorkloadStatusInput): Record<string, unknown> {
  const { plan, health, now, generation } = input
  const trouble = troubleOf(input)
  const phase = trouble === undefined ? health.phase : 'Failed'
  const message = trouble?.message ?? health.message
  const set = conditionsOf(input, { phase, message, reason: trouble === undefined ? health.reason : WorkloadReason.NotReady })
  const known = new Set(set.map(({ type }) => type))
  const conditions = nextConditions(
    current.status?.conditions as Conditions | undefined,
    { set, remove: input.managed.filter((type) => !known.has(type)) },
    { generation, now },
  )
  return {
    phase,
    message,
    ...(plan.url !== undefined && { url: plan.url }),
    ...plan.status,
    ...(generation !== undefined && { observedGeneration: generation }),
    replicas: health.replicas,
    ...(input.countsReady && { readyReplicas: health.readyReplicas }),
    selector: input.selector,
    conditions: [...conditions],
  }
}

interface Trouble {
  readonly message: string
}

/** Why the workload does not run as it is written; undefined when only its pods can tell. */
function troubleOf({ plan, executed }: WorkloadStatusInput): Trouble | undefined {
  const [blocker] = plan.blockers
  if (blocker !== undefined) return { message: blocker.message }
  const [conflict] = executed.conflicts
  if (conflict !== undefined) return { message: conflictMessage(conflict) }
  return plan.unsupported.length > 0 ? { message: unsupportedMessage(plan) } : undefined
}

function conditionsOf(
  { plan, executed, readyPhase, aliasTaken }: WorkloadStatusInput,
  { phase, message, reason }: { phase: string; message: string; reason: string },
): ConditionUpdate[] {
  const blocked = blockerConditions(plan.blockers)
  const isValid = !blocked.some(({ type }) => type === WorkloadCondition.ConfigurationValid)
  const updates: ConditionUpdate[] = [
    { type: WorkloadCondition.Ready, status: phase === readyPhase ? 'True' : 'False', reason, message },
    ...(isValid ? [CONFIGURATION_VALID] : []),
    ...plan.conditions,
    ...blocked,
  ]
  const [conflict] = executed.conflicts
  if (conflict !== undefined)
    updates.push(warning(WorkloadCondition.NameConflict, WorkloadReason.NameTakenByOtherWorkload, conflictMessage(conflict)))
  if (plan.unsupported.length > 0)
    updates.push(warning(WorkloadCondition.MiddlewareUnsupported, WorkloadReason.MiddlewareUnsupported, unsupportedMessage(plan)))
  if (executed.aliasTaken !== undefined) updates.push(aliasTaken(executed.aliasTaken.name))
  // A blocker says more than what its resolver could tell besides.
  return [...new Map(updates.map((update) => [update.type, update])).values()]
}

const CONFIGURATION_VALID: ConditionUpdate = {
  type: WorkloadCondition.ConfigurationValid,
  status: 'True',
  reason: WorkloadReason.ConfigurationValid,
  message: 'the spec and what it references can be used',
}

/** One condition per type; the messages of several problems of one type are joined. */
export function blockerConditions(blockers: readonly Blocker[]): ConditionUpdate[] {
  const byType = new Map<string, ConditionUpdate>()
  for (const { condition: type, status = 'False', reason, message } of blockers) {
    const before = byType.get(type)
    byType.set(type, before === undefined ? { type, status, reason, message } : { ...before, message: `${before.message}; ${message}` })
  }
  return [...byType.values()]
}

function warning(type: string, reason: string, message: string): ConditionUpdate {
  return { type, status: 'True', reason, message }
}

export function conflictMessage({ childKind, name, controller }: ForeignChild): string {
  const whose = controller === undefined ? 'which this workload did not make' : `which belongs to ${controller}`
  return `There is a ${childKind} ${name} already, ${whose}: delete it, or give this workload another name.`
}

function unsupportedMessage({ unsupported }: WorkloadPlan): string {
  const fields = unsupported.map(({ field, middleware }) => `${field} (${middleware})`).join(', ')
  return `No proxy runs, because this version cannot do what the spec asks for, and it must not run without: ${fields}. Remove that from the spec, or wait for a version that has it.`
}
