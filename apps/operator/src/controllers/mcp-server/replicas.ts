import type { ConditionUpdate } from '@thv/kube'
import { MCPServerCondition, MCPServerReason } from '@thv/resources/kinds/mcp-server/constants'
import type { CanonicalMCPServerSpec } from '@thv/resources/kinds/mcp-server/normalise'

export interface Replicas {
  /** Requested proxy pods, as far as they can run. */
  readonly wanted: number | undefined
  /** That goes into the Deployment; undefined leaves its number alone. */
  readonly applied: number | undefined
  /** Server pods; undefined leaves their number alone. */
  readonly backendReplicas: number | undefined
  /** Of several proxies of a stdio server: the server pods that each of them attaches to at most. */
  readonly podsPerRunner?: number
  readonly condition: ConditionUpdate
}

export interface ReplicaFacts {
  /** Of the current Deployment. */
  readonly scale: number | undefined
  readonly hasSharedStore: boolean
}

/**
 * How many proxies and servers run. Two proxies of a stdio server must not write to the same process. Without a shared store there is one
 * proxy; with one each proxy has server pods of its own, which it holds by a lock in that store, so there are as many servers as proxies unless
 * the spec says otherwise.
 */
export function planReplicas(spec: CanonicalMCPServerSpec, { scale, hasSharedStore }: ReplicaFacts): Replicas {
  const { replicas, transport, backendReplicas } = spec
  const wanted = replicas ?? scale
  const proxies = wanted ?? 1
  if (transport !== 'stdio' || proxies <= 1) return { wanted, applied: replicas, backendReplicas, condition: uncapped() }
  if (!hasSharedStore) {
    const message = `${wanted} proxy pods requested, 1 running: without a shared store a stdio server has one proxy, because two would write to the same process. Set spec.replicas to 1, or set spec.sessionStorage with provider redis`
    return { wanted: 1, applied: 1, backendReplicas, condition: capped(MCPServerReason.StdioTransportCapAt1, message) }
  }
  const servers = Math.max(1, backendReplicas ?? proxies)
  const shares = { backendReplicas: backendReplicas ?? proxies, podsPerRunner: Math.max(1, Math.floor(servers / proxies)) }
  if (proxies <= servers) return { wanted, applied: replicas, ...shares, condition: uncapped() }
  const message = `${proxies} proxy pods requested, ${servers} running: each proxy of a stdio server needs a server pod of its own. Set spec.backendReplicas to ${proxies}, or spec.replicas to ${servers}`
  return { wanted: servers, applied: servers, ...shares, condition: capped(MCPServerReason.StdioCappedAtServerPods, message) }
}

function capped(reason: string, message: string): ConditionUpdate {
  return { type: MCPServerCondition.StdioReplicaCapped, status: 'True', reason, message }
}

function uncapped(): ConditionUpdate {
  const message = 'the number of proxy pods is not capped'
  return { type: MCPServerCondition.StdioReplicaCapped, status: 'False', reason: MCPServerReason.StdioReplicaCapNotActive, message }
}
