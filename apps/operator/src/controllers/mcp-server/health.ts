import type { Pod, StatefulSet } from '@thv/kube'
import { MCPServerPhase, MCPServerReason } from '@thv/resources/kinds/mcp-server/constants'
import { RunnerReason } from '@thv/runconfig/runner-events'
import { isLive, isReady, type PodRole, worstProblem } from '../../deployment/status/pod-problem.ts'
import { type HealthWords, type InnerHealth, type PodsHealth, podsHealth } from '../../deployment/status/pods-health.ts'
import { type Observed, PROXY_PODS } from '../../proxy/reconcile-proxy.ts'

type Phase = (typeof MCPServerPhase)[keyof typeof MCPServerPhase]
type ObservedServer = Omit<Observed, 'report'> & Partial<Pick<Observed, 'report'>>

const SERVER_PODS: PodRole = {
  name: 'MCP',
  imageAdvice: 'Check the image and resourceOverrides.proxyDeployment.imagePullSecrets.',
}

const WORDS: HealthWords<Phase> = {
  role: PROXY_PODS,
  pending: MCPServerPhase.Pending,
  ready: MCPServerPhase.Running,
  failed: MCPServerPhase.Failed,
  stopped: MCPServerPhase.Stopped,
  readyReason: MCPServerReason.Ready,
  notReadyReason: MCPServerReason.NotReady,
}

/** Health of an MCPServer: of its proxy, and of the server behind it. Pure. */
export function mcpServerHealth({ deployment, proxyPods, statefulSet, serverPods, report }: ObservedServer): PodsHealth<Phase> {
  const server: InnerHealth = {
    problem: worstProblem(serverPods, SERVER_PODS),
    wait: waitForServer(statefulSet, serverPods),
    readyPods: serverPods.filter(isReady).length,
    report: report && { ...report, healsItself: HEALS_ITSELF.has(report.reason) },
    endsInOrder: report?.reason === RunnerReason.ServerEnded && serverPods.some(hasEndedInOrder),
  }
  return podsHealth({ deployment, pods: proxyPods }, WORDS, server)
}

/** A server that takes long to start looks like this for a while. */
const HEALS_ITSELF: ReadonlySet<string> = new Set([
  RunnerReason.BackendPortClosed,
  RunnerReason.HandshakeTimedOut,
  RunnerReason.ServerEnded,
])

function hasEndedInOrder({ status }: Pod): boolean {
  return status?.containerStatuses?.some(({ state, lastState }) => (state?.terminated ?? lastState?.terminated)?.exitCode === 0) === true
}

/** Why the StatefulSet that the runner makes is not ready yet. A StatefulSet has no condition for pods that were refused. */
function waitForServer(statefulSet: StatefulSet | undefined, pods: readonly Pod[]): string | undefined {
  if (statefulSet === undefined) return 'Waiting for the proxy to make the StatefulSet of the MCP server.'
  const name = statefulSet.metadata.name
  const wanted = statefulSet.spec?.replicas ?? 1
  if (wanted === 0) return `The StatefulSet ${name} is scaled to 0 pods: set spec.backendReplicas to at least 1, or scale it up.`
  const ready = pods.filter(isReady).length
  if (pods.every((pod) => !isLive(pod))) {
    return `Waiting for the pods of StatefulSet ${name}. If none appears, kubectl describe statefulset ${name} says why.`
  }
  return ready < wanted ? `Waiting: ${ready} of ${wanted} MCP server pods ready.` : undefined
}
