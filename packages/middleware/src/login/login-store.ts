import { readFile } from 'node:fs/promises'
import type { Clock } from '@thv/kernel/clock'
import { parseDuration } from '@thv/kernel/duration'
import { errorMessage } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { AuthRedisConfig, AuthRedisTls, AuthServerConfig } from '@thv/runconfig/auth-server-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { RecordCipher } from '@thv/store/redis/record-cipher'
import type { RedisAddress, RedisTls } from '@thv/store/redis/redis-client'
import type { Log } from '@thv/telemetry/log'

export interface LoginStore extends AsyncDisposable {
  open(cipher: RecordCipher): AuthStore
}

export interface LoginStoreDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly clock: Clock
  /** Of the workload, for the default of the prefix. */
  readonly name: string
}

const FIELD = 'embedded_auth_server_config.storage.redis_config'
const USERNAME = 'TOOLHIVE_AUTH_SERVER_REDIS_USERNAME'
const PASSWORD = 'TOOLHIVE_AUTH_SERVER_REDIS_PASSWORD'

/** Where the authorization server keeps its records; the code for Redis is loaded only where it is configured. */
export async function openLoginStore(config: AuthServerConfig, deps: LoginStoreDeps): Promise<LoginStore> {
  const { redis_config: settings } = config.storage
  if (settings === undefined) {
    const { createMemoryAuthStore } = await import('@thv/store/auth/memory-auth-store')
    return { open: () => createMemoryAuthStore({ clock: deps.clock }), [Symbol.asyncDispose]: async () => {} }
  }
  // Replicas read each other's records.
  if (config.hmac_secret_files.length === 0) throw runConfigError('run_config_invalid', `${FIELD} needs hmac_secret_files`)
  return await openRedisStore(settings, deps)
}

async function openRedisStore(settings: AuthRedisConfig, { env, log, clock, name }: LoginStoreDeps): Promise<LoginStore> {
  const [{ openRedis }, { RedisAuthStore }] = await Promise.all([
    import('@thv/store/redis/redis-client'),
    import('@thv/store/redis/redis-auth-store'),
  ])
  const { addr, cluster_mode: isCluster, sentinel_config: sentinel, acl_user_config: user, key_prefix: prefix } = settings
  const keyPrefix = prefix?.replace(/:?$/, ':') ?? `thv:auth:{${name}}:`
  if (!/\{[^{}]+\}/.test(keyPrefix))
    throw runConfigError('run_config_invalid', `${FIELD}.key_prefix needs a part in braces, such as thv:auth:{NAMESPACE:NAME}:`)
  const addresses = (addr ?? '')
    .split(',')
    .filter((each) => each !== '')
    .map(addressOf)
  const hasReplicas = isCluster || sentinel !== undefined
  const redis = await openRedis({
    ...(sentinel !== undefined
      ? {
          sentinel: {
            masterName: sentinel.master_name,
            addresses: sentinel.sentinel_addrs.map(addressOf),
            tls: await tlsOf(settings.sentinel_tls, 'sentinel_tls'),
          },
        }
      : isCluster
        ? { cluster: { addresses } }
        : { address: addresses[0] }),
    db: sentinel?.db ?? 0,
    username: env[user?.username_env_var ?? USERNAME] || undefined,
    password: env[user?.password_env_var ?? PASSWORD] || undefined,
    tls: await tlsOf(settings.tls, 'tls'),
    timeoutMs: Math.max(parseDuration(settings.read_timeout), parseDuration(settings.write_timeout)),
    connectTimeoutMs: parseDuration(settings.dial_timeout),
    clock,
    onChange: (isAway, reason) =>
      isAway
        ? log.warn('redis of the authorization server does not answer', { reason })
        : log.info('redis of the authorization server answers again'),
    ...(hasReplicas && { onUnacknowledged: () => log.debug('no replica of redis has acknowledged a write in time') }),
  })
  return {
    open: (cipher) => new RedisAuthStore({ redis, cipher, keyPrefix, clock }),
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  }
}

async function tlsOf(tls: AuthRedisTls | undefined, member: string): Promise<RedisTls | undefined> {
  if (tls === undefined) return undefined
  const { ca_cert_file: path, insecure_skip_verify: isInsecure } = tls
  if (path === undefined) return { isInsecure }
  const ca = await readFile(mountedPath(path), 'utf8').catch((error: unknown) => {
    throw runConfigError('run_config_invalid', `${FIELD}.${member}.ca_cert_file: ${path} cannot be read: ${errorMessage(error)}`)
  })
  return { ca, isInsecure }
}

function addressOf(text: string): RedisAddress {
  const at = text.lastIndexOf(':')
  return { host: text.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(text.slice(at + 1)) }
}
