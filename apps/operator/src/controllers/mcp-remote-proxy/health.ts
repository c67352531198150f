import { MCPRemoteProxyPhase, MCPRemoteProxyReason } from '@thv/resources/kinds/mcp-remote-proxy/constants'
import { type HealthWords, type PodsHealth, podsHealth } from '../../deployment/status/pods-health.ts'
import { type Observed, PROXY_PODS } from '../../proxy/reconcile-proxy.ts'

type Phase = (typeof MCPRemoteProxyPhase)[keyof typeof MCPRemoteProxyPhase]

const WORDS: HealthWords<Phase> = {
  role: PROXY_PODS,
  pending: MCPRemoteProxyPhase.Pending,
  ready: MCPRemoteProxyPhase.Ready,
  failed: MCPRemoteProxyPhase.Failed,
  stopped: MCPRemoteProxyPhase.Pending,
  readyReason: MCPRemoteProxyReason.DeploymentReady,
  notReadyReason: MCPRemoteProxyReason.DeploymentNotReady,
}

/** Pure. */
export function mcpRemoteProxyHealth({ deployment, proxyPods }: Pick<Observed, 'deployment' | 'proxyPods'>): PodsHealth<Phase> {
  return podsHealth({ deployment, pods: proxyPods }, WORDS)
}
