import type { ConditionUpdate } from '@thv/kube'
import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalRedisStorage, CanonicalSessionStorage } from '@thv/resources/shared/session-storage'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import { type Blocker, secretVariable } from '../../deployment/contribution.ts'
import type { DefaultRedis } from '../../operator-settings.ts'
import type { Lookup } from '../../references/lookup.ts'
import { missingSecretKey } from '../../references/secret-key.ts'
import { contributes, type Resolved } from '../contribution.ts'
import { type MountedFile, mountCaBundle } from './ca-bundle.ts'

export interface SessionStorageArgs {
  readonly name: string
  readonly namespace: string
  readonly sessionStorage: CanonicalSessionStorage | undefined
  /** Of the operator. Used when the spec says nothing; `provider: memory` is a wish like any other. */
  readonly defaultRedis: DefaultRedis | undefined
  /** Requested proxy pods: by the spec, else by the current Deployment. */
  readonly replicas: number | undefined
  readonly lookup: Pick<Lookup, 'secret' | 'configMap'>
  readonly now?: number | undefined
}

export const SESSION_REDIS_PASSWORD_VARIABLE = 'THV_SESSION_REDIS_PASSWORD'

/** Where the proxy keeps sessions. That there is Redis can be seen by `scaling_config.session_redis` of the result. */
export function resolveSessionStorage(args: SessionStorageArgs): Resolved {
  const { sessionStorage, defaultRedis, lookup } = args
  if (sessionStorage?.provider === 'redis') return ownRedis(sessionStorage, args)
  if (sessionStorage !== undefined || defaultRedis === undefined) return inMemory(args)
  const { address, passwordRef } = defaultRedis
  const missing = passwordRef && missingSecretKey(lookup, passwordRef, "the operator's default Redis")
  // The spec does not require it, so it is no reason to stop.
  if (missing === undefined) return redis({ provider: 'redis', address, db: 0, ...(passwordRef && { passwordRef }) }, args)
  const message = `${missing} in this namespace, or set spec.sessionStorage; until then sessions stay in memory`
  return contributes({ conditions: [warning('True', WorkloadReason.DefaultRedisSecretNotFound, message)] })
}

export const SESSION_SENTINEL_PASSWORD_VARIABLE = 'THV_SESSION_SENTINEL_PASSWORD'
export const SESSION_ENCRYPTION_KEY_VARIABLE = 'THV_SESSION_ENCRYPTION_KEY'
/** Read by no program: its change replaces the pods. */
export const SESSION_REDIS_CA_VARIABLE = 'THV_SESSION_REDIS_CA_HASH'
const REDIS_CA_FOLDER = '/etc/toolhive/redis-ca'
const ADDRESS = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?):\d{1,5}$/

interface SecretUse {
  readonly field: string
  readonly variable: string
  readonly ref: { readonly name: string; readonly key: string } | undefined
}

function ownRedis(storage: CanonicalRedisStorage, args: SessionStorageArgs): Resolved {
  const { lookup, now } = args
  const blockers: Blocker[] = []
  const block = (reason: string, message: string) =>
    void blockers.push({ condition: WorkloadCondition.ConfigurationValid, reason, message })
  const field = storage.address === undefined ? 'spec.sessionStorage.sentinel.addresses' : 'spec.sessionStorage.address'
  const addresses = storage.address === undefined ? (storage.sentinel?.addresses ?? []) : [storage.address]
  if (!addresses.every((address) => ADDRESS.test(address)))
    block(WorkloadReason.InvalidSpec, `${field} must be host and port of Redis, such as redis:6379, without scheme and password`)
  for (const { field: at, ref } of secretUses(storage)) {
    const missing = ref && missingSecretKey(lookup, ref, at)
    if (missing !== undefined) block(WorkloadReason.SecretNotFound, missing)
  }
  const ref = storage.tls?.caBundleRef
  const mounted =
    ref &&
    mountCaBundle({ ref, field: 'spec.sessionStorage.tls.caBundleRef', volumeName: 'redis-ca', folder: REDIS_CA_FOLDER, lookup, now })
  if (mounted?.ok === false) blockers.push(mounted.blocker)
  return blockers.length > 0 ? { ok: false, blockers } : redis(storage, args, mounted?.ok ? mounted.file : undefined)
}

function secretUses({ passwordRef, sentinel, encryptionKeyRef }: CanonicalRedisStorage): SecretUse[] {
  const at = 'spec.sessionStorage'
  return [
    { field: `${at}.passwordRef`, variable: SESSION_REDIS_PASSWORD_VARIABLE, ref: passwordRef },
    { field: `${at}.sentinel.passwordRef`, variable: SESSION_SENTINEL_PASSWORD_VARIABLE, ref: sentinel?.passwordRef },
    { field: `${at}.encryptionKeyRef`, variable: SESSION_ENCRYPTION_KEY_VARIABLE, ref: encryptionKeyRef },
  ]
}

function redis(storage: CanonicalRedisStorage, { name, namespace }: SessionStorageArgs, ca?: MountedFile): Resolved {
  const { address, sentinel, db, keyPrefix, username, tls, passwordRef, encryptionKeyRef } = storage
  const uses = secretUses(storage).filter((use) => use.ref !== undefined)
  const isSealed = passwordRef !== undefined || encryptionKeyRef !== undefined
  const place = address ?? `the primary ${sentinel?.masterName}`
  const condition = isSealed
    ? warning('False', WorkloadReason.SessionStorageConfigured, `sessions are kept in Redis at ${place}`)
    : warning(
        'True',
        WorkloadReason.SessionStorageNotEncrypted,
        `sessions are kept in Redis at ${place} without encryption: set spec.sessionStorage.encryptionKeyRef or passwordRef`,
      )
  return contributes({
    runConfig: {
      scaling_config: {
        session_redis: compact({
          address,
          sentinel: sentinel && { master_name: sentinel.masterName, addresses: sentinel.addresses },
          db,
          // Many servers may share a Redis. None may see, count or end the sessions of another.
          key_prefix: keyPrefix || `thv:proxy:session:{${namespace}:${name}}:`,
          username,
          tls: tls?.enabled ? compact({ enabled: true, ca_path: ca?.path }) : undefined,
        }),
      },
    },
    env: [
      ...uses.flatMap(({ variable, ref }) => (ref ? [secretVariable(variable, ref)] : [])),
      ...(ca === undefined ? [] : [{ name: SESSION_REDIS_CA_VARIABLE, value: ca.id }]),
    ],
    secrets: [...new Set(uses.flatMap(({ ref }) => (ref ? [ref.name] : [])))],
    ...(ca !== undefined && { volumes: ca.volumes, volumeMounts: ca.volumeMounts }),
    conditions: [condition],
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
