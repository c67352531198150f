import {
  BackendStatus,
  VirtualMCPServerCondition as Condition,
  VirtualMCPServerPhase as Phase,
  VirtualMCPServerReason as Reason,
} from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import type { PodRole } from '../../deployment/status/pod-problem.ts'
import { type HealthWords, type ObservedPods, type PodsHealth, podsHealth } from '../../deployment/status/pods-health.ts'

export type VirtualPhase = (typeof Phase)[keyof typeof Phase]

const PODS: PodRole = { name: 'virtual server', imageAdvice: 'Check TOOLHIVE_VMCP_IMAGE of the operator and the pull secrets.' }

const WORDS: HealthWords<VirtualPhase> = {
  role: PODS,
  pending: Phase.Pending,
  ready: Phase.Ready,
  failed: Phase.Failed,
  stopped: Phase.Pending,
  readyReason: Reason.DeploymentReady,
  notReadyReason: Reason.DeploymentNotReady,
}

type Status = NonNullable<VirtualMCPServer['status']>
type Reported = NonNullable<Status['discoveredBackends']>

/** Health by the pods and, once one is ready, by the backends and conflicts that it reports. Pure. */
export function virtualServerHealth(observed: ObservedPods, reported: Status = {}): PodsHealth<VirtualPhase> {
  const health = podsHealth(observed, WORDS)
  if (health.phase !== Phase.Ready) return health
  const { discoveredBackends: backends = [], conditions = [] } = reported
  const degraded = (reason: string, message: string): PodsHealth<VirtualPhase> => ({ ...health, phase: Phase.Degraded, reason, message })
  const unsettled = conditions.find(({ type, reason }) => type === Condition.ToolConflicts && reason === Reason.UnresolvedConflict)
  const down = backends.filter(({ status }) => status === BackendStatus.unavailable || status === BackendStatus.degraded)
  const unknown = backends.filter(({ status }) => status === undefined || status === BackendStatus.unknown)
  const names = (list: Reported) => list.map(({ name, message }) => (message ? `${name}: ${message}` : name)).join('; ')
  if (down.length > 0 && down.length === backends.length)
    return degraded(Reason.BackendsUnavailable, `No backend can be used. ${names(down)}`)
  if (down.length > 0)
    return degraded(Reason.BackendsDegraded, `${down.length} of ${backends.length} backends cannot be used. ${names(down)}`)
  if (unknown.length > 0) return degraded(Reason.BackendsUnknown, `The state of these backends is not known yet: ${names(unknown)}`)
  if (unsettled !== undefined)
    return degraded(
      Reason.UnresolvedConflict,
      `Names that several backends have are not offered until conflictResolutionConfig.winners settles them. ${unsettled.message}`,
    )
  return health
}
