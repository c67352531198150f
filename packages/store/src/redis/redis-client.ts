import { createHash } from 'node:crypto'
import { type Backoff, createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis'
import { keySlot } from './key-slot.ts'

export interface RedisAddress {
  readonly host: string
  readonly port: number
}

export interface RedisTls {
  /** PEM, beside the roots of the system. */
  readonly ca?: string | undefined
  /** Accepts any certificate. For trials. */
  readonly isInsecure?: boolean | undefined
}

export interface RedisSentinels {
  readonly masterName: string
  readonly addresses: readonly RedisAddress[]
  readonly password?: string | undefined
  /** Instead of that of Redis. */
  readonly tls?: RedisTls | undefined
}

export interface RedisClientOptions {
  /** One server. Exactly one of this, `sentinel` and `cluster`. */
  readonly address?: RedisAddress | undefined
  readonly sentinel?: RedisSentinels | undefined
  /** Some nodes of a Cluster; they name the others. It has no databases but 0. */
  readonly cluster?: { readonly addresses: readonly RedisAddress[] } | undefined
  readonly db: number
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** TLS to Redis, and to the Sentinels unless they have their own. */
  readonly tls?: RedisTls | undefined
  readonly clock?: Clock
  /** The longest that a command takes. */
  readonly timeoutMs?: number
  readonly connectTimeoutMs?: number
  /**
   * Waits a moment after a durable script until a replica has it (WAIT), so that a failover does not lose it. Called when none did in time; that
   * is no failure. Only for a Redis that has replicas.
   */
  readonly onUnacknowledged?: (() => void) | undefined
  /** Once when Redis goes away and once when it is back. */
  readonly onChange?: (isAway: boolean, reason: string) => void
}

export interface RedisScript {
  readonly sha: string
  readonly source: string
  /** Something outside relies on what it writes. */
  readonly isDurable: boolean
}

/** Lua that runs in one step on the server. */
export function redisScript(source: string, { isDurable = false }: { readonly isDurable?: boolean } = {}): RedisScript {
  return { source, sha: createHash('sha1').update(source).digest('hex'), isDurable }
}

export type RedisArgument = string | number | Buffer

/** A connection that is always there: while Redis is away, commands fail at once or after the time limit, never later. */
export interface RedisClient extends AsyncDisposable {
  /** Throws `redis_unavailable`, or the error that Redis answered (ReplyError). Texts come back as buffers. */
  run(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown>
  /** The last command failed, and the next attempt is not due. */
  readonly isAway: boolean
}

/** Settings that may change while a client is open. */
export type RedisIdentity = Pick<RedisClientOptions, 'username' | 'password' | 'tls' | 'sentinel'>

export interface ReplaceableRedis extends RedisClient {
  /** Goes on with a new connection. Rejects with `redis_unavailable` if there is none in time; the one before stays. */
  replace(identity: RedisIdentity): Promise<void>
}

/** Loads the client library, which nothing else does. Does not wait for a connection. */
export async function openRedis(options: RedisClientOptions): Promise<ReplaceableRedis> {
  // The default export is the module of CommonJS: a bundle has no other.
  const { default: library } = await import('ioredis')
  const { cluster } = options
  return new ResilientRedis((identity) => {
    const settings = settingsOf({ ...options, ...identity })
    if (cluster === undefined) return new library.Redis(settings)
    const nodes = cluster.addresses.map(({ host, port }) => ({ host, port }))
    return new library.Cluster(nodes, clusterSettings(settings))
  }, options)
}

/** The scripts of one server have one slot, so one node is asked. Repetitions are the caller's. */
function clusterSettings(redisOptions: RedisOptions): ClusterOptions {
  return {
    redisOptions,
    enableOfflineQueue: false,
    maxRedirections: 2,
    retryDelayOnFailover: 100,
    slotsRefreshTimeout: 2_000,
    slotsRefreshInterval: 5_000,
    clusterRetryStrategy: retryMs,
    // Names stay names, as certificates have them.
    dnsLookup: (host, callback) => callback(null, host),
  }
}

function secureOf(tls: RedisTls | undefined): { tls?: { ca?: string; rejectUnauthorized?: false } } {
  if (tls === undefined) return {}
  return { tls: { ...(tls.ca !== undefined && { ca: tls.ca }), ...(tls.isInsecure && { rejectUnauthorized: false }) } }
}

function settingsOf(options: RedisClientOptions): RedisOptions {
  const { address, sentinel, cluster, db, username, password, tls, timeoutMs = DEFAULT_TIMEOUT_MS, connectTimeoutMs = 2_000 } = options
  const isMoved = movedCheck({ hasSentinels: sentinel !== undefined, clock: options.clock ?? systemClock })
  const secure = secureOf(tls)
  const sentinelTls = secureOf(sentinel?.tls ?? tls).tls
  const place =
    sentinel === undefined
      ? { ...(cluster === undefined && { host: address?.host ?? '', port: address?.port ?? 0 }), ...secure }
      : {
          sentinels: sentinel.addresses.map(({ host, port }) => ({ host, port })),
          name: sentinel.masterName,
          ...(sentinel.password !== undefined && { sentinelPassword: sentinel.password }),
          ...(sentinelTls !== undefined && { enableTLSForSentinelMode: true, sentinelTLS: sentinelTls }),
          ...secure,
          sentinelCommandTimeout: 1_000,
          sentinelRetryStrategy: retryMs,
        }
  return {
    ...place,
    ...(cluster === undefined && { db }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    commandTimeout: timeoutMs,
    connectTimeout: connectTimeoutMs,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: retryMs,
    reconnectOnError: (error) => (isMoved(error) ? 1 : false),
  }
}

/**
 * Whether an answer means that there is another primary. After a failover the old one is a replica, or has lost its replicas to the new one. One
 * that has no replicas for another reason answers alike to every write: the Sentinels are asked again with back-off.
 */
export function movedCheck({ hasSentinels, clock }: { hasSentinels: boolean; clock: Clock }): (answer: Error) => boolean {
  const backoff = createBackoff({ baseMs: 500, maxMs: 5_000 })
  let nextAt = Number.NEGATIVE_INFINITY
  return ({ message }) => {
    if (message.startsWith('READONLY')) return true
    const now = clock.monotonic()
    if (!hasSentinels || !message.startsWith('NOREPLICAS') || now < nextAt) return false
    if (now - nextAt > FORGOTTEN_MS) backoff.reset()
    nextAt = now + backoff.next()
    return true
  }
}

/** An answer after so long is about something else. */
const FORGOTTEN_MS = 60_000

const DEFAULT_TIMEOUT_MS = 100
/** A connection that has not answered for so long is replaced: a peer that vanished without a word would be waited for for many minutes. */
const SILENT_MS = 1_000

const ACKNOWLEDGE_MS = 100

/** The primary of the key's slot, as the client knows it. */
function nodeOf(cluster: Cluster, key: string): Redis | undefined {
  const [address] = cluster.slots[keySlot(key)] ?? []
  return cluster.nodes('master').find(({ options }) => `${options.host}:${options.port}` === address)
}

/** WAIT counts for the connection that wrote, so it must go to the same node. */
async function waitForReplica(client: Redis | Cluster, key: string, onMissed: () => void): Promise<void> {
  const redis = 'nodes' in client ? nodeOf(client, key) : client
  // Without an answer nothing is known of the write: the caller repeats it, over whatever connection there is then.
  const count = await redis?.call('WAIT', 1, ACKNOWLEDGE_MS)
  if (Number(count ?? 0) < 1) onMissed()
}

function retryMs(times: number): number {
  return Math.min(2_000, 50 * 2 ** Math.min(times, 6)) * (0.5 + Math.random() / 2)
}

/** How long a connection with other credentials may take. */
const REPLACE_MS = 10_000

class ResilientRedis implements ReplaceableRedis {
  readonly #connect: (identity?: RedisIdentity) => Redis | Cluster
  #redis: Redis | Cluster
  /** Is being connected. */
  #next: Redis | Cluster | undefined
  readonly #onUnacknowledged: (() => void) | undefined
  readonly #clock: Clock
  readonly #onChange: NonNullable<RedisClientOptions['onChange']>
  readonly #backoff: Backoff = createBackoff({ baseMs: 250, maxMs: 2_000 })
  #nextAt = Number.NEGATIVE_INFINITY
  #wasAway = false
  /** When the first command after the last answer ran out of time. */
  #silentSince: number | undefined

  constructor(
    connect: (identity?: RedisIdentity) => Redis | Cluster,
    { clock = systemClock, onChange = () => {}, onUnacknowledged }: RedisClientOptions,
  ) {
    this.#connect = connect
    this.#onUnacknowledged = onUnacknowledged
    this.#clock = clock
    this.#onChange = onChange
    this.#redis = connect()
    this.#follow(this.#redis)
  }

  async replace(identity: RedisIdentity): Promise<void> {
    const next = this.#connect(identity)
    this.#next = next
    const { promise: ready, resolve, reject } = Promise.withResolvers<void>()
    const timer = this.#clock.setTimer(REPLACE_MS, () => reject(this.#unavailable('it does not accept the new credentials')))
    next.once('ready', () => resolve())
    next.once('end', () => reject(this.#unavailable('it is closed')))
    next.on('error', (error: Error) => {
      if (isReply(error)) reject(this.#unavailable(reasonOf(error))) // otherwise it tries again
    })
    try {
      await ready
    } catch (error) {
      next.disconnect()
      throw error
    } finally {
      timer.cancel()
      this.#next = undefined
    }
    const before = this.#redis
    this.#redis = next
    this.#follow(next)
    this.#backAgain()
    // Commands that are on their way get their answers first.
    await before.quit().catch(() => before.disconnect())
  }

  #follow(redis: Redis | Cluster): void {
    redis.on('error', (error: Error) => {
      if (redis === this.#redis) this.#failed(error)
    })
    redis.on('ready', () => {
      if (redis === this.#redis) this.#backAgain()
    })
  }

  /** A connection that is back may be used at once. */
  #backAgain(): void {
    this.#nextAt = Number.NEGATIVE_INFINITY
    this.#silentSince = undefined
  }

  get isAway(): boolean {
    return this.#clock.monotonic() < this.#nextAt
  }

  async run({ sha, source, isDurable }: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown> {
    if (this.isAway || this.#redis.status !== 'ready') throw this.#unavailable('it does not answer')
    const call = [keys.length, ...keys, ...args] as const
    // Not that which replaces it meanwhile: WAIT counts for the connection that wrote.
    const redis = this.#redis
    try {
      const answer = await redis.callBuffer('evalsha', sha, ...call).catch((error: Error) => {
        // After a restart or a failover the script is not there.
        if (error.message.startsWith('NOSCRIPT')) return redis.callBuffer('eval', source, ...call)
        throw error
      })
      if (isDurable && this.#onUnacknowledged !== undefined) await waitForReplica(redis, keys[0] ?? '', this.#onUnacknowledged)
      this.#succeeded()
      return answer
    } catch (error) {
      if (isReply(error)) this.#silentSince = undefined
      else this.#replaceSilent()
      if (isReply(error) && !LOST.test(error.message)) throw error
      this.#failed(error)
      throw this.#unavailable('it does not answer', error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#next?.disconnect()
    this.#redis.disconnect()
  }

  #replaceSilent(): void {
    const now = this.#clock.monotonic()
    this.#silentSince ??= now
    if (now - this.#silentSince < SILENT_MS || this.#redis.status !== 'ready') return
    this.#silentSince = undefined
    this.#redis.disconnect(true)
  }

  #succeeded(): void {
    this.#backoff.reset()
    this.#silentSince = undefined
    if (!this.#wasAway) return
    this.#wasAway = false
    this.#onChange(false, '')
  }

  #failed(error: unknown): void {
    if (!this.isAway) this.#nextAt = this.#clock.monotonic() + this.#backoff.next()
    if (this.#wasAway) return
    this.#wasAway = true
    this.#onChange(true, reasonOf(error))
  }

  #unavailable(message: string, cause?: unknown): ThvError {
    return new ThvError('redis_unavailable', message, cause === undefined ? {} : { cause })
  }
}

/** Redis answers, but not with what was asked for: it loads, has lost its quorum, is a replica, or wants another password. */
const LOST = /^(LOADING|MASTERDOWN|CLUSTERDOWN|READONLY|NOREPLICAS|MISCONF|NOAUTH|WRONGPASS|NOPERM|TRYAGAIN|BUSY)/

function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}

/** The code of an answer or of the system, never its text: that may quote a command. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  if ('code' in error && typeof error.code === 'string') return error.code
  const { name, message } = error
  return name === 'ReplyError' ? (message.split(' ')[0] ?? 'error') : name
}
