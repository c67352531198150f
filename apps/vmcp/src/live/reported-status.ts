import { type Condition, type Conditions, getCondition, setCondition } from '@thv/kube'
import { VirtualMCPServerCondition, VirtualMCPServerReason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { ChangedHands } from '../aggregate/changed-hands.ts'
import type { Conflict } from '../aggregate/conflict.ts'
import type { LeftOut } from '../discover/discovered-backends.ts'
import type { Member } from '../members/member.ts'
import type { HealthStatus } from '../members/member-health.ts'

export interface StatusFacts {
  readonly members: readonly Member[]
  readonly leftOut: readonly LeftOut[]
  readonly conflicts: readonly Conflict[]
  /** Names that led to another backend before the last change. */
  readonly moved: readonly ChangedHands[]
  /** The virtual server finds its backends itself; otherwise the operator reports on that. */
  readonly isDiscovering: boolean
  /** Why the newest configuration is not in force. */
  readonly problem: string | undefined
}

/** Members of the status that the virtual server writes; all others are the operator's. */
export interface ReportedStatus {
  readonly discoveredBackends: readonly Readonly<Record<string, unknown>>[]
  readonly backendCount: number
  readonly conditions: readonly Condition[]
}

const STATUS: Readonly<Record<HealthStatus, string>> = {
  healthy: 'ready',
  degraded: 'degraded',
  unhealthy: 'unavailable',
  unknown: 'unknown',
}
const MAX_NAMED = 20

/** Pure. `before` are the conditions of the object, for the times of their last transitions. */
export function reportedStatus(facts: StatusFacts, before: Conditions | undefined, nowIso: string): ReportedStatus {
  const { members, leftOut, conflicts, isDiscovering, problem } = facts
  let conditions: Conditions = before ?? []
  if (isDiscovering) conditions = setCondition(conditions, discoveredCondition(members.length, leftOut, problem), nowIso)
  conditions = setCondition(conditions, conflictsCondition(conflicts), nowIso)
  const own = [VirtualMCPServerCondition.ToolConflicts, ...(isDiscovering ? [VirtualMCPServerCondition.BackendsDiscovered] : [])]
  return {
    discoveredBackends: members.map(backendOf),
    backendCount: members.filter(({ health }) => health.status === 'healthy').length,
    conditions: own.flatMap((type) => getCondition(conditions, type) ?? []),
  }
}

/** A sentence for an Event, or undefined where no name has moved. */
export function movedNote(moved: readonly ChangedHands[]): string | undefined {
  if (moved.length === 0) return undefined
  const named = moved.slice(0, MAX_NAMED).map(({ kind, name, from, to }) => `${kind} ${name} leads to ${to} instead of ${from}`)
  return [...named, ...(moved.length > MAX_NAMED ? [`and ${moved.length - MAX_NAMED} more`] : [])].join('; ')
}

function backendOf({ backend, health, shared }: Member): Readonly<Record<string, unknown>> {
  const { ConsecutiveFailures, LastCheckTime, LastErrorCategory, CircuitState, CircuitLastChanged } = health.report
  return {
    name: backend.name,
    url: backend.url,
    status: STATUS[health.status],
    authType: backend.authType,
    ...(backend.authConfigRef !== undefined && { authConfigRef: backend.authConfigRef }),
    ...(LastCheckTime !== null && { lastHealthCheck: seconds(LastCheckTime) }),
    ...(LastErrorCategory !== '' && { message: LastErrorCategory }),
    consecutiveFailures: ConsecutiveFailures,
    circuitBreakerState: CircuitState,
    ...(CircuitLastChanged !== null && { circuitLastChanged: seconds(CircuitLastChanged) }),
    ...(shared.protocolVersion !== undefined && { mcpRevision: shared.protocolVersion }),
  }
}

/** The API server keeps no parts of a second. */
function seconds(time: string): string {
  return time.replace(/\.\d+Z$/, 'Z')
}

function discoveredCondition(count: number, leftOut: readonly LeftOut[], problem: string | undefined) {
  const type = VirtualMCPServerCondition.BackendsDiscovered
  if (problem !== undefined) {
    const message = `The newest configuration is not in force: ${problem}`
    return { type, status: 'False', reason: VirtualMCPServerReason.BackendDiscoveryFailed, message } as const
  }
  const named = leftOut.slice(0, MAX_NAMED).map(({ kind, name, message }) => `${kind} ${name}: ${message}`)
  const rest = leftOut.length > MAX_NAMED ? [`and ${leftOut.length - MAX_NAMED} more`] : []
  const message = [`${count} backends`, ...(leftOut.length > 0 ? [`left out: ${[...named, ...rest].join('; ')}`] : [])].join(', ')
  return { type, status: 'True', reason: VirtualMCPServerReason.BackendsDiscoveredSuccessfully, message } as const
}

function conflictsCondition(conflicts: readonly Conflict[]) {
  const type = VirtualMCPServerCondition.ToolConflicts
  if (conflicts.length === 0) {
    return {
      type,
      status: 'False',
      reason: VirtualMCPServerReason.NoConflicts,
      message: 'Every item is offered under its own name',
    } as const
  }
  const unresolved = conflicts.filter(({ outcome }) => outcome === 'unresolved')
  const ordered = [...unresolved, ...conflicts.filter(({ outcome }) => outcome !== 'unresolved')]
  const named = ordered.slice(0, MAX_NAMED).map(({ kind, name, backend, outcome }) => `${kind} ${name} of ${backend} is ${outcome}`)
  const rest = conflicts.length > MAX_NAMED ? [`and ${conflicts.length - MAX_NAMED} more`] : []
  const reason = unresolved.length > 0 ? VirtualMCPServerReason.UnresolvedConflict : VirtualMCPServerReason.NamesConflict
  return { type, status: 'True', reason, message: [...named, ...rest].join('; ') } as const
}
