import { done, type KubeObject, type ObjectKey, type Outcome, type ReconcileContext } from '@thv/kube'
import { MCPRemoteProxyCondition, MCPRemoteProxyPhase } from '@thv/resources/kinds/mcp-remote-proxy/constants'
import { type MCPRemoteProxy, mcpRemoteProxyType } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import type { Serving } from '../../deployment/status/refused-write.ts'
import { tellTermination } from '../../deployment/status/terminating.ts'
import type { Env } from '../../environment.ts'
import { reconcileWorkload, servingWorkload, type WorkloadKind } from '../../proxy/reconcile-proxy.ts'
import { referencesOfRemoteProxy } from '../../references/references.ts'
import { cache } from './cache.ts'
import { mcpRemoteProxyHealth } from './health.ts'
import { planMcpRemoteProxy } from './plan.ts'

const kind: WorkloadKind<MCPRemoteProxy> = {
  kind: 'MCPRemoteProxy',
  type: mcpRemoteProxyType,
  references: referencesOfRemoteProxy,
  plan: (proxy, facts) => planMcpRemoteProxy({ ...facts, proxy }),
  health: mcpRemoteProxyHealth,
  conditionTypes: Object.values(MCPRemoteProxyCondition),
  readyPhase: MCPRemoteProxyPhase.Ready,
}

export function servingMcpRemoteProxy(proxy: KubeObject, env: Env): Serving | undefined {
  return servingWorkload(proxy, kind, env)
}

/** Converges one MCPRemoteProxy. The remote server is never dialled from here. */
export async function reconcileMcpRemoteProxy(key: ObjectKey, env: Env, { signal }: ReconcileContext): Promise<Outcome> {
  const proxy = env.caches.of(cache).get(key)
  if (proxy === undefined) return done
  if (proxy.metadata.deletionTimestamp !== undefined) {
    await tellTermination(proxy, { type: mcpRemoteProxyType, env, signal })
    return done
  }
  return await reconcileWorkload(proxy, { kind, env, signal })
}
