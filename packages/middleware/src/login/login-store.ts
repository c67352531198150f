import { readFile } from 'node:fs/promises'
import type { Clock, Timer } from '@thv/kernel/clock'
import { parseDuration } from '@thv/kernel/duration'
import { errorMessage } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { AuthRedisConfig, AuthRedisTls, AuthServerConfig } from '@thv/runconfig/auth-server-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { RecordCipher } from '@thv/store/redis/record-cipher'
import type { RedisAddress, RedisIdentity, RedisTls, ReplaceableRedis } from '@thv/store/redis/redis-client'
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
/** How soon replaced files count. */
const RELOAD_MS = 30_000

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
  const place = sentinel === undefined && (isCluster ? { cluster: { addresses } } : { address: addresses[0] })
  const identity = async (): Promise<RedisIdentity> => ({
    ...(sentinel !== undefined && {
      sentinel: {
        masterName: sentinel.master_name,
        addresses: sentinel.sentinel_addrs.map(addressOf),
        tls: await tlsOf(settings.sentinel_tls, 'sentinel_tls'),
      },
    }),
    username: await credentialOf(user?.username_file, 'username_file', env[user?.username_env_var ?? USERNAME]),
    password: await credentialOf(user?.password_file, 'password_file', env[user?.password_env_var ?? PASSWORD]),
    tls: await tlsOf(settings.tls, 'tls'),
  })
  const first = await identity()
  const redis = await openRedis({
    ...place,
    ...first,
    db: sentinel?.db ?? 0,
    timeoutMs: Math.max(parseDuration(settings.read_timeout), parseDuration(settings.write_timeout)),
    connectTimeoutMs: parseDuration(settings.dial_timeout),
    clock,
    onChange: (isAway, reason) =>
      isAway
        ? log.warn('redis of the authorization server does not answer', { reason })
        : log.info('redis of the authorization server answers again'),
    ...(hasReplicas && { onUnacknowledged: () => log.debug('no replica of redis has acknowledged a write in time') }),
  })
  const files = [user?.username_file, user?.password_file, settings.tls?.ca_cert_file, settings.sentinel_tls?.ca_cert_file]
  const watch = files.some((file) => file !== undefined) ? followIdentity(redis, { first, identity, log, clock }) : undefined
  return {
    open: (cipher) => new RedisAuthStore({ redis, cipher, keyPrefix, clock }),
    async [Symbol.asyncDispose]() {
      watch?.[Symbol.dispose]()
      await redis[Symbol.asyncDispose]()
    },
  }
}

interface Followed {
  readonly first: RedisIdentity
  readonly identity: () => Promise<RedisIdentity>
  readonly log: Log
  readonly clock: Clock
}

/** Reads the files again and again. What Redis does not accept is tried again, too; the connection before stays. */
function followIdentity(redis: ReplaceableRedis, { first, identity, log, clock }: Followed): Disposable {
  let known = JSON.stringify(first)
  let timer: Timer | undefined
  let isClosed = false
  async function look(): Promise<void> {
    try {
      const next = await identity()
      if (isClosed || JSON.stringify(next) === known) return
      await redis.replace(next)
      known = JSON.stringify(next)
      log.info('credentials or certificates for redis replaced')
    } catch (error) {
      if (!isClosed)
        log.warn('credentials or certificates for redis could not be replaced; those before stay', { error: errorMessage(error) })
    }
  }
  function later(): void {
    timer = clock.setTimer(RELOAD_MS, async () => {
      await look()
      if (!isClosed) later()
    })
  }
  later()
  return {
    [Symbol.dispose]() {
      isClosed = true
      timer?.cancel()
    },
  }
}

/** From the file, where there is one. */
async function credentialOf(path: string | undefined, member: string, value: string | undefined): Promise<string | undefined> {
  if (path === undefined) return value || undefined
  const text = await readFile(mountedPath(path), 'utf8').catch((error: unknown) => {
    throw runConfigError('run_config_invalid', `${FIELD}.acl_user_config.${member}: ${path} cannot be read: ${errorMessage(error)}`)
  })
  return text.trim() || undefined
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
