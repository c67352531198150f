import { isControlledBy, type KubeObject } from '@thv/kube'
import { MCPRegistryReason } from '@thv/resources/kinds/mcp-registry/constants'
import { normaliseMcpRegistry } from '@thv/resources/kinds/mcp-registry/normalise'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { deploymentCache } from '../../../caches/built-in-caches.ts'
import type { Serving } from '../../../deployment/status/refused-write.ts'
import type { Env } from '../../../environment.ts'
import { registryNames } from '../objects/names.ts'

/** The API pods that run, made of an earlier spec, if they serve data. */
export function servingMcpRegistry(object: KubeObject, env: Env): Serving | undefined {
  const registry = object as MCPRegistry
  const { namespace = '', name } = registry.metadata
  const deployment = env.caches.of(deploymentCache).get({ namespace, name: registryNames(name).deployment })
  const { replicas = 0, readyReplicas = 0 } = deployment?.status ?? {}
  if (deployment === undefined || !isControlledBy(deployment, registry) || readyReplicas === 0 || !hasData(registry)) return undefined
  return {
    phase: 'Ready',
    isReady: true,
    reason: MCPRegistryReason.Ready,
    message: 'Registry is ready and API is serving requests',
    counts: { replicas, readyReplicas },
  }
}

/** By the last sync: one that failed makes a registry with one source fail, and others if none has ever succeeded. */
function hasData(registry: MCPRegistry): boolean {
  const { syncStatus } = registry.status ?? {}
  if ('source' in normaliseMcpRegistry(registry).spec) return syncStatus?.phase === 'Complete'
  return syncStatus?.phase !== 'Failed' || syncStatus.lastSyncTime !== undefined
}
