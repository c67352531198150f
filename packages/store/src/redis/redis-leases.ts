import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { type RedisClient, redisScript } from './redis-client.ts'

/*
 * KEYS[1] holds `h:OWNER` (held), `p:OWNER` (on probation) or `free`. ARGV: owner, lifetime in ms.
 */

/** 2 held, 1 on probation, 0 held by another. */
const ACQUIRE = redisScript(`
local v = redis.call('GET', KEYS[1])
local state = 'h:'
if not v or v == 'p:' .. ARGV[1] then state = 'p:'
elseif v ~= 'free' and v ~= 'h:' .. ARGV[1] then return 0 end
redis.call('SET', KEYS[1], state .. ARGV[1], 'PX', ARGV[2])
return state == 'h:' and 2 or 1`)

const CONFIRM = redisScript(`
local v = redis.call('GET', KEYS[1])
if v ~= 'p:' .. ARGV[1] and v ~= 'h:' .. ARGV[1] then return 0 end
redis.call('SET', KEYS[1], 'h:' .. ARGV[1], 'PX', ARGV[2])
return 1`)

/** A holder wins over all who are on probation. */
const RENEW = redisScript(`
local v = redis.call('GET', KEYS[1])
if v and string.sub(v, 1, 2) == 'h:' and v ~= 'h:' .. ARGV[1] then return 0 end
redis.call('SET', KEYS[1], 'h:' .. ARGV[1], 'PX', ARGV[2])
return 1`)

const RELEASE = redisScript(`
local v = redis.call('GET', KEYS[1])
if v == 'h:' .. ARGV[1] then redis.call('SET', KEYS[1], 'free', 'PX', ARGV[2])
elseif v == 'p:' .. ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`)

/** So long a lease lasts without Redis, as long as a session that is known (`RedisSessionStore`). */
const LEASE_MS = 60_000
/** The holder lets go so long before Redis does. */
const MARGIN_MS = 5_000
const RENEW_MS = 2_000
/** Longer than a holder needs to find the new primary and renew. */
const PROBATION_MS = 5_000
const FREE_MS = 3_600_000

export interface RedisLeasesOptions {
  readonly redis: RedisClient
  /** Before every key. */
  readonly prefix: string
  /** Names the holder: the same for the next process in the same place, another one for everybody else. */
  readonly owner: string
  readonly clock?: Clock
}

export interface Lease {
  /** Resolves when it is held no longer, for whatever reason. */
  readonly ended: Promise<void>
  /** Never throws: without Redis the lease runs out. */
  release(): Promise<void>
}

/**
 * Leases that several processes share, one holder each. A failover may lose the newest writes of Redis, so a lease of which Redis knows nothing is
 * held only after a probation, in which the holder of before, if there is one, takes it back.
 */
export class RedisLeases {
  readonly #options: RedisLeasesOptions
  readonly #clock: Clock

  constructor(options: RedisLeasesOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  /** `held`: by another. `away`: Redis does not answer. Does not wait for another holder. */
  async acquire(name: string, signal: AbortSignal): Promise<Lease | 'held' | 'away'> {
    try {
      let askedAt = this.#clock.monotonic()
      const outcome = await this.#run(ACQUIRE, name, LEASE_MS)
      if (outcome === 0) return 'held'
      if (outcome === 1) {
        await this.#clock.sleep(PROBATION_MS, signal)
        askedAt = this.#clock.monotonic()
        if ((await this.#run(CONFIRM, name, LEASE_MS)) !== 1) return 'held'
      }
      return this.#hold(name, askedAt)
    } catch (error) {
      if (signal.aborted) await this.#free(name)
      signal.throwIfAborted()
      if (isThvError(error, 'redis_unavailable')) return 'away'
      throw error
    }
  }

  #hold(name: string, askedAt: number): Lease {
    const ended = Promise.withResolvers<void>()
    let renewedAt = askedAt
    let timer: Timer | undefined
    const end = () => {
      timer?.cancel()
      timer = undefined
      ended.resolve()
    }
    const renew = async () => {
      const at = this.#clock.monotonic()
      const outcome = await this.#run(RENEW, name, LEASE_MS).catch(() => 'away')
      if (timer === undefined) return
      if (outcome === 1) renewedAt = at
      if (outcome === 0 || this.#clock.monotonic() - renewedAt >= LEASE_MS - MARGIN_MS) return end()
      timer = this.#clock.setTimer(RENEW_MS, () => void renew())
    }
    timer = this.#clock.setTimer(RENEW_MS, () => void renew())
    return {
      ended: ended.promise,
      release: async () => {
        const isHeld = timer !== undefined
        end()
        if (isHeld) await this.#free(name)
      },
    }
  }

  async #free(name: string): Promise<void> {
    await this.#run(RELEASE, name, FREE_MS).catch(() => undefined) // it runs out by itself
  }

  #run(script: ReturnType<typeof redisScript>, name: string, ms: number): Promise<unknown> {
    const { redis, prefix, owner } = this.#options
    return redis.run(script, [prefix + name], [owner, ms])
  }
}
