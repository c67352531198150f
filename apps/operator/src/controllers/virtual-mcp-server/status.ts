import type { Conditions, ConditionUpdate } from '@thv/kube'
import {
  VirtualMCPServerCondition as Condition,
  VirtualMCPServerPhase as Phase,
  VirtualMCPServerReason as Reason,
} from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import type { WorkloadPlan } from '../../deployment/deployment-plan.ts'
import type { Executed } from '../../deployment/execute-plan.ts'
import { nextConditions } from '../../deployment/status/conditions.ts'
import { blockerConditions, conflictMessage } from '../../deployment/status/deployment-status.ts'
import type { PodsHealth } from '../../deployment/status/pods-health.ts'
import { selectorText, workloadLabels } from '../../proxy/labels.ts'
import type { VirtualPhase } from './health.ts'
import { aliasTaken } from './objects/children.ts'

type Status = NonNullable<VirtualMCPServer['status']>

export interface VirtualStatusInput {
  /** Of the spec that the plan was made of. */
  readonly generation: number | undefined
  readonly plan: WorkloadPlan
  readonly executed: Executed
  /** By the backends and conflicts that the status reports. */
  readonly health: (reported: Status | undefined) => PodsHealth<VirtualPhase>
  readonly now: number
}

/** Written by the virtual server itself. */
const REPORTED = ['discoveredBackends', 'backendCount'] as const
/** Conditions of single backends. */
const OF_BACKENDS = /^(BackendAuthConfig|DiscoveredAuthConfig)-/
const HEALS: ReadonlySet<string> = new Set([Reason.GroupRefNotReady, Reason.BackendDiscoveryFailed])

/** The operator's part of the status; what the virtual server reports stays. Pure. */
export function virtualServerStatus(current: VirtualMCPServer, input: VirtualStatusInput): Status {
  const { plan, executed, generation, now } = input
  const health = input.health(current.status)
  const trouble = troubleOf(input)
  const phase = trouble?.phase ?? health.phase
  const message = trouble?.message ?? health.message
  const ready: ConditionUpdate = {
    type: Condition.Ready,
    status: phase === Phase.Ready ? 'True' : 'False',
    reason: trouble === undefined ? health.reason : Reason.DeploymentNotReady,
    message,
  }
  const blocked = blockerConditions(plan.blockers)
  const [conflict] = executed.conflicts
  const all: ConditionUpdate[] = [
    ready,
    ...(blocked.some(({ type }) => type === Condition.Valid) ? [] : [VALID]),
    ...plan.conditions,
    ...blocked,
    ...(conflict === undefined ? [] : [warning(Condition.NameConflict, Reason.NameTakenByOtherWorkload, conflictMessage(conflict))]),
    ...(plan.unsupported.length === 0
      ? []
      : [warning(Condition.MiddlewareUnsupported, Reason.MiddlewareUnsupported, unsupportedMessage(plan))]),
    ...(executed.aliasTaken === undefined ? [] : [aliasTaken(executed.aliasTaken.name)]),
  ]
  const set = [...new Map(all.map((update) => [update.type, update])).values()]
  const known = new Set(set.map(({ type }) => type))
  const before = current.status?.conditions as Conditions | undefined
  const gone = (before ?? []).map(({ type }) => type).filter((type) => !known.has(type) && isOurs(type))
  const reported = REPORTED.flatMap((member) => (current.status?.[member] === undefined ? [] : [[member, current.status[member]] as const]))
  return {
    ...(Object.fromEntries(reported) as Pick<Status, (typeof REPORTED)[number]>),
    phase,
    message,
    ...(plan.url !== undefined && { url: plan.url }),
    ...plan.status,
    ...(generation !== undefined && { observedGeneration: generation }),
    replicas: health.replicas,
    selector: selectorText(workloadLabels('VirtualMCPServer', current.metadata.name)),
    conditions: [...nextConditions(before, { set, remove: gone }, { generation, now })],
  }
}

const OWN: ReadonlySet<string> = new Set<string>(Object.values(Condition))

/** Conditions that the virtual server writes itself, the first one where it discovers its backends. */
const REPORTED_CONDITIONS: ReadonlySet<string> = new Set([Condition.BackendsDiscovered, Condition.ToolConflicts])

function isOurs(type: string): boolean {
  return !REPORTED_CONDITIONS.has(type) && (OWN.has(type) || OF_BACKENDS.test(type))
}

const VALID: ConditionUpdate = {
  type: Condition.Valid,
  status: 'True',
  reason: Reason.ValidationSucceeded,
  message: 'the spec and what it references can be used',
}

/** Why the server does not run as it is written; undefined when only its pods can tell. */
function troubleOf({ plan, executed }: VirtualStatusInput): { phase: VirtualPhase; message: string } | undefined {
  const worst = plan.blockers.find(({ reason }) => !HEALS.has(reason)) ?? plan.blockers[0]
  if (worst !== undefined) return { phase: HEALS.has(worst.reason) ? Phase.Pending : Phase.Failed, message: worst.message }
  const [conflict] = executed.conflicts
  if (conflict !== undefined) return { phase: Phase.Failed, message: conflictMessage(conflict) }
  return plan.unsupported.length > 0 ? { phase: Phase.Failed, message: unsupportedMessage(plan) } : undefined
}

function unsupportedMessage({ unsupported }: WorkloadPlan): string {
  const fields = unsupported.map(({ field, middleware }) => `${field} (${middleware})`).join(', ')
  return `No pod runs, because this version cannot do what the spec asks for, and it must not run without: ${fields}. Remove that from the spec, or wait for a version that has it.`
}

function warning(type: string, reason: string, message: string): ConditionUpdate {
  return { type, status: 'True', reason, message }
}
