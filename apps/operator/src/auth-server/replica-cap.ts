import type { ConditionUpdate } from '@thv/kube'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'

/** The part of `embedded_auth_server_config` that says whether replicas know each other's logins. */
interface Login {
  readonly storage?: { readonly type?: string } | undefined
}

export interface CappedReplicas {
  /** That goes into the Deployment; undefined leaves its number alone. */
  readonly replicas: number | undefined
  readonly conditions: readonly ConditionUpdate[]
}

/** One replica where logins are kept in memory: another one would know neither codes nor refresh tokens. Pure. */
export function capReplicas(
  login: Login | undefined,
  { replicas, scale }: { replicas: number | undefined; scale: number | undefined },
): CappedReplicas {
  const wanted = replicas ?? scale ?? 1
  if (login === undefined || login.storage?.type === 'redis' || wanted <= 1) return { replicas, conditions: [] }
  const message = `${wanted} replicas requested, 1 running: the authorization server keeps logins in memory, which replicas do not share. Set storage of the authorization server to redis, or spec.replicas to 1.`
  return {
    replicas: 1,
    conditions: [
      { type: WorkloadCondition.AuthServerReplicaCapped, status: 'True', reason: WorkloadReason.AuthServerStorageInMemory, message },
    ],
  }
}
