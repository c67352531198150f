import { readFile } from 'node:fs/promises'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { RunConfig, SessionRedis } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import { CLEAR_RECORDS, createRecordCipher, type RecordCipher } from '@thv/store/redis/record-cipher'
import { openRedis, type RedisAddress, type RedisClient } from '@thv/store/redis/redis-client'
import { RedisLeases } from '@thv/store/redis/redis-leases'
import { DEFAULT_KEY_PREFIX, RedisSessionStore } from '@thv/store/redis/redis-session-store'
import type { JsonValue, SessionStore } from '@thv/store/session-store'
import type { Log } from '@thv/telemetry/log'
import type { Metrics } from '@thv/telemetry/metrics'
import type { Env } from '../pipeline/run-config-options.ts'

export interface SharedStateOptions {
  readonly config: RunConfig
  readonly env: Env
  readonly log: Log
  readonly metrics: Metrics
  readonly clock: Clock
}

/** State that several replicas of a server share. */
export interface SharedState extends AsyncDisposable {
  readonly redis: RedisClient
  /** Those of clients, or others under a further part of the prefix. */
  sessions<T extends JsonValue>(part?: string): SessionStore<T>
  /** On the pods of a stdio server. */
  leases(owner: string): RedisLeases
}

const PASSWORD = 'THV_SESSION_REDIS_PASSWORD'
const SENTINEL_PASSWORD = 'THV_SESSION_SENTINEL_PASSWORD'
const ENCRYPTION_KEY = 'THV_SESSION_ENCRYPTION_KEY'

/** Undefined when the document asks for none. A Redis that does not answer stops no start. */
export async function openSharedState(options: SharedStateOptions): Promise<SharedState | undefined> {
  const { config, env, log, metrics, clock } = options
  const settings = config.scaling_config.session_redis
  if (settings === undefined) return undefined
  const away = metrics
    .gauge({ name: 'toolhive_redis_away', help: '1 while Redis does not answer: limits and known sessions are local.' })
    .with()
  away.set(0)
  const redis = await openRedis({
    ...(settings.address !== undefined && { address: addressOf(settings.address) }),
    ...(settings.sentinel !== undefined && {
      sentinel: {
        masterName: settings.sentinel.master_name,
        addresses: settings.sentinel.addresses.map(addressOf),
        password: env[SENTINEL_PASSWORD] || undefined,
      },
    }),
    db: settings.db,
    username: settings.username,
    password: env[PASSWORD] || undefined,
    ...(settings.tls?.enabled && { tls: { ca: await caOf(settings) } }),
    clock,
    onChange(isAway, reason) {
      away.set(isAway ? 1 : 0)
      if (isAway) log.warn('redis does not answer', { reason })
      else log.info('redis answers again')
    },
  })
  const cipher = cipherOf(env, log)
  const keyPrefix = settings.key_prefix?.replace(/:?$/, ':') ?? DEFAULT_KEY_PREFIX
  return {
    redis,
    sessions: <T extends JsonValue>(part = '') => new RedisSessionStore<T>({ redis, cipher, keyPrefix: `${keyPrefix}${part}`, clock }),
    // No id of a session has a space, so no client can name one.
    leases: (owner) => new RedisLeases({ redis, prefix: `${keyPrefix} pod `, owner, clock }),
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  }
}

/** The first line seals, all lines open. Without a key of its own the Redis password makes one. */
function cipherOf(env: Env, log: Log): RecordCipher {
  const keys = (env[ENCRYPTION_KEY] ?? '').split('\n').map((line) => line.trim())
  const secrets = keys.filter((line) => line !== '')
  if (secrets.length > 0) return createRecordCipher(secrets)
  const password = env[PASSWORD]
  if (password) return createRecordCipher([password])
  log.warn(`sessions are not encrypted in Redis: set ${ENCRYPTION_KEY} or ${PASSWORD}`)
  return CLEAR_RECORDS
}

async function caOf({ tls }: SessionRedis): Promise<string | undefined> {
  const path = tls?.ca_path
  if (path === undefined) return undefined
  return await readFile(mountedPath(path), 'utf8').catch((error: unknown) => {
    throw runConfigError('run_config_invalid', `scaling_config.session_redis.tls.ca_path: ${path} cannot be read: ${errorMessage(error)}`)
  })
}

/** Checked when the document was read. */
function addressOf(text: string): RedisAddress {
  const at = text.lastIndexOf(':')
  return { host: text.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(text.slice(at + 1)) }
}
