import type { ConditionUpdate } from '@thv/kube'
import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalSessionStorage } from '@thv/resources/shared/session-storage'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import { type Blocker, secretVariable } from '../../deployment/contribution.ts'
import type { DefaultRedis } from '../../operator-settings.ts'
import type { Lookup } from '../../references/lookup.ts'
import { missingSecretKey } from '../../references/secret-key.ts'
import { contributes, type Resolved } from '../contribution.ts'

export interface SessionStorageArgs {
  readonly sessionStorage: CanonicalSessionStorage | undefined
  /** Of the operator. Used when the spec says nothing; `provider: memory` is a wish like any other. */
  readonly defaultRedis: DefaultRedis | undefined
  /** Requested proxy pods: by the spec, else by the current Deployment. */
  readonly replicas: number | undefined
  readonly lookup: Pick<Lookup, 'secret'>
}

export const SESSION_REDIS_PASSWORD_VARIABLE = 'THV_SESSION_REDIS_PASSWORD'

/** Where the proxy keeps sessions. That there is Redis can be seen by `scaling_config.session_redis` of the result. */
export function resolveSessionStorage(args: SessionStorageArgs): Resolved {
  const { sessionStorage, defaultRedis, lookup } = args
  if (sessionStorage?.provider === 'redis') return ownRedis(sessionStorage, lookup)
  if (sessionStorage !== undefined || defaultRedis === undefined) return inMemory(args)
  const { address, passwordRef } = defaultRedis
  const missing = passwordRef && missingSecretKey(lookup, passwordRef, "the operator's default Redis")
  // The spec does not require it, so it is no reason to stop.
  if (missing === undefined) return redis({ provider: 'redis', address, db: 0, ...(passwordRef && { passwordRef }) })
  const message = `${missing} in this namespace, or set spec.sessionStorage; until then sessions stay in memory`
  return contributes({ conditions: [warning('True', WorkloadReason.DefaultRedisSecretNotFound, message)] })
}

type Redis = Extract<CanonicalSessionStorage, { provider: 'redis' }>

function ownRedis(storage: Redis, lookup: Pick<Lookup, 'secret'>): Resolved {
  const { address, passwordRef } = storage
  const blockers: Blocker[] = []
  const block = (reason: string, message: string) =>
    void blockers.push({ condition: WorkloadCondition.ConfigurationValid, reason, message })
  if (/[\s@]|:\/\//.test(address))
    block(
      WorkloadReason.InvalidSpec,
      'spec.sessionStorage.address must be host and port of Redis, such as redis:6379, without scheme and password',
    )
  const missing = passwordRef && missingSecretKey(lookup, passwordRef, 'spec.sessionStorage.passwordRef')
  if (missing !== undefined) block(WorkloadReason.SecretNotFound, missing)
  return blockers.length > 0 ? { ok: false, blockers } : redis(storage)
}

function redis({ address, db, keyPrefix, passwordRef }: Redis): Resolved {
  const message = `sessions are kept in Redis at ${address}`
  return contributes({
    runConfig: { scaling_config: { session_redis: compact({ address, db, key_prefix: keyPrefix || undefined }) } },
    env: passwordRef ? [secretVariable(SESSION_REDIS_PASSWORD_VARIABLE, passwordRef)] : [],
    secrets: passwordRef ? [passwordRef.name] : [],
    conditions: [warning('False', WorkloadReason.SessionStorageConfigured, message)],
  })
}

function inMemory({ replicas }: SessionStorageArgs): Resolved {
  if ((replicas ?? 1) <= 1) {
    const message = 'sessions are kept in memory, which is enough for one replica'
    return contributes({ conditions: [warning('False', WorkloadReason.SessionStorageWarningNotApplicable, message)] })
  }
  const message = `${replicas} proxy pods do not share sessions: a client that reaches another pod loses its session; set spec.sessionStorage with provider redis`
  return contributes({ conditions: [warning('True', WorkloadReason.SessionStorageMissingForReplicas, message)] })
}

function warning(status: 'True' | 'False', reason: string, message: string): ConditionUpdate {
  return { type: WorkloadCondition.SessionStorageWarning, status, reason, message }
}
