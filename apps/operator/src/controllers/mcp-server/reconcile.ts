import {
  done,
  dropFinalizer,
  isNotFound,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type Outcome,
  pods,
  type ReconcileContext,
} from '@thv/kube'
import { MCP_SERVER_FINALIZER, MCPServerAnnotation, MCPServerCondition, MCPServerPhase } from '@thv/resources/kinds/mcp-server/constants'
import { type MCPServer, mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { deploymentCache } from '../../caches/built-in-caches.ts'
import type { Serving } from '../../deployment/status/refused-write.ts'
import { tellTermination } from '../../deployment/status/terminating.ts'
import { registriesOf } from '../../enforcement/enforcing-registries.ts'
import type { RegistryOfNamespace } from '../../enforcement/judge-image.ts'
import type { Env } from '../../environment.ts'
import { podsOf, reconcileWorkload, servingWorkload, type WorkloadKind } from '../../proxy/reconcile-proxy.ts'
import { referencesOfServer } from '../../references/references.ts'
import { cache as registryCache } from '../mcp-registry/cache.ts'
import { cache } from './cache.ts'
import { mcpServerHealth } from './health.ts'
import { planMcpServer } from './plan.ts'
import { podsToRestartNow, restartTime } from './restart.ts'

const POD_FACTS = { kind: 'MCPServer', health: mcpServerHealth, readyPhase: MCPServerPhase.Running } as const

const kindWith = (registries: readonly RegistryOfNamespace[]): WorkloadKind<MCPServer> => ({
  ...POD_FACTS,
  type: mcpServerType,
  references: referencesOfServer,
  plan: (server, facts) => planMcpServer({ ...facts, server, registries }),
  conditionTypes: Object.values(MCPServerCondition),
})

export function servingMcpServer(server: KubeObject, env: Env): Serving | undefined {
  return servingWorkload(server, POD_FACTS, env)
}

/** Converges one MCPServer. What it owns goes by owner reference, so deletion needs no finalizer. */
export async function reconcileMcpServer(key: ObjectKey, env: Env, { signal }: ReconcileContext): Promise<Outcome> {
  const server = env.caches.of(cache).get(key)
  if (server === undefined) return done
  if (server.metadata.deletionTimestamp !== undefined) {
    const left = await dropFinalizer(env.client, { type: mcpServerType, object: server, name: MCP_SERVER_FINALIZER }, { signal })
    if (left !== undefined) await tellTermination(left, { type: mcpServerType, env, signal })
    return done
  }
  const kind = kindWith(registriesOf(env.caches, registryCache, key.namespace ?? ''))
  const outcome = await reconcileWorkload(server, { kind, env, signal })
  await restartNow(server, key, env, signal)
  return outcome
}

async function restartNow(server: MCPServer, key: ObjectKey, env: Env, signal: AbortSignal): Promise<void> {
  const old = podsToRestartNow(server, env.caches.of(deploymentCache).get(key), podsOf(key, 'MCPServer', env).proxyPods)
  if (old.length === 0) return
  // Noted first, so that the pods which come instead are never taken for those to go. Should the rest fail they go one by one.
  const annotations = { [MCPServerAnnotation.lastProcessedRestart]: restartTime(server) }
  await env.client.patch(mcpServerType, key, { kind: 'merge', body: { metadata: { annotations } } }, { signal })
  for (const pod of old) {
    try {
      await env.client.delete(pods, keyOf(pod), { preconditions: { uid: pod.metadata.uid }, signal })
    } catch (error) {
      if (!isNotFound(error)) throw error
    }
  }
}
