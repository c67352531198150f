import type { ConditionUpdate } from '@thv/kube'
import { VirtualMCPServerCondition as Condition, VirtualMCPServerReason as Reason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { CanonicalVirtualMCPServerSpec } from '@thv/resources/kinds/virtual-mcp-server/normalise'
import { compact } from '@thv/resources/schema/normalize'
import { WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { SessionRedis } from '@thv/runconfig/run-config'
import type { SessionStorageConfig } from '@thv/vmcpconfig/vmcp-config'
import type { Blocker, Contribution } from '../../../deployment/contribution.ts'
import type { DefaultRedis } from '../../../operator-settings.ts'
import { resolveSessionStorage } from '../../../proxy/resolve/session-storage.ts'
import type { Lookup } from '../../../references/lookup.ts'

export interface Storage {
  /** Undefined: sessions stay in memory. */
  readonly document: Partial<SessionStorageConfig> | undefined
  readonly contribution: Contribution
  readonly blockers: readonly Blocker[]
}

interface Deps {
  readonly name: string
  readonly namespace: string
  readonly lookup: Pick<Lookup, 'secret' | 'configMap'>
  readonly now: number
  readonly defaultRedis: DefaultRedis | undefined
  /** Requested pods: by the spec, else by the current Deployment. */
  readonly replicas: number
}

/** Where sessions are kept, by the same resolver as for proxies, and a warning when several pods do not share them. Pure. */
export function sessionStorageOf({ sessionStorage }: CanonicalVirtualMCPServerSpec, deps: Deps): Storage {
  const resolved = resolveSessionStorage({ ...deps, sessionStorage })
  if (!resolved.ok) return { document: undefined, contribution: {}, blockers: resolved.blockers.map(inOwnWords) }
  const { runConfig, conditions = [], ...contribution } = resolved.contribution
  const redis = runConfig?.scaling_config?.session_redis
  const told = redis === undefined ? conditions.map((each) => inMemory(each, deps.replicas)) : conditions
  const ownPrefix = sessionStorage?.provider === 'redis' ? sessionStorage.keyPrefix || undefined : undefined
  return { document: redis && documentOf(redis, ownPrefix), contribution: { ...contribution, conditions: told }, blockers: [] }
}

/** The program makes a prefix of its namespace and name unless the spec has one. */
function documentOf({ address, sentinel, db, username, tls }: SessionRedis, keyPrefix: string | undefined): Partial<SessionStorageConfig> {
  return compact({
    provider: 'redis' as const,
    address,
    sentinel: sentinel && { masterName: sentinel.master_name, addresses: sentinel.addresses },
    db,
    keyPrefix,
    username,
    tls: tls && compact({ enabled: tls.enabled, caPath: tls.ca_path }),
  })
}

function inMemory(condition: ConditionUpdate, replicas: number): ConditionUpdate {
  if (condition.reason !== WorkloadReason.SessionStorageMissingForReplicas) return condition
  const message = `${replicas} pods do not share sessions: a client that reaches another pod must begin a new one. Set spec.sessionStorage to Redis, or replicas to 1.`
  return { ...condition, message }
}

function inOwnWords({ reason, message }: Blocker): Blocker {
  return { condition: Condition.Valid, reason: reason === WorkloadReason.InvalidSpec ? Reason.ValidationFailed : reason, message }
}
