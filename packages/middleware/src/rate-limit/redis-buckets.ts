import { type RedisClient, redisScript } from '@thv/store/redis/redis-client'
import { isPerUser, type Limit, type LimitReached } from './limit.ts'
import type { MemoryBuckets } from './memory-buckets.ts'

/** KEYS: buckets. ARGV: tokens and period of each. 0: taken from all; otherwise the bucket that has none, and the milliseconds to wait. */
const TAKE = redisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local tokens, worst, wait = {}, 0, 0
for i = 1, #KEYS do
  local max, period = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local b = redis.call('HMGET', KEYS[i], 't', 'a')
  local t, a = tonumber(b[1] or ''), tonumber(b[2] or '')
  if t == nil or a == nil then t = max else t = math.min(max, t + math.max(0, now - a) * max / period) end
  tokens[i] = t
  if t < 0.999999999 then
    local w = (1 - t) * period / max
    if w > wait then worst, wait = i, w end
  end
end
if worst > 0 then return { worst, math.ceil(wait) } end
for i = 1, #KEYS do
  redis.call('HSET', KEYS[i], 't', string.format('%.9f', tokens[i] - 1), 'a', string.format('%.3f', now))
  redis.call('PEXPIRE', KEYS[i], 2 * math.ceil(tonumber(ARGV[2 * i])))
end
return 0`)

export interface RedisBucketsOptions {
  readonly redis: RedisClient
  /** Before every key. */
  readonly prefix: string
  /** Takes over while Redis is away. */
  readonly local: Pick<MemoryBuckets, 'take'>
  /** A call was counted locally. */
  readonly onLocal: () => void
}

/** Token buckets that all replicas share: one request per call. While Redis is away each replica counts for itself. */
export class RedisBuckets {
  readonly #options: RedisBucketsOptions

  constructor(options: RedisBucketsOptions) {
    this.#options = options
  }

  take(limits: readonly Limit[], principal: string): LimitReached | undefined | Promise<LimitReached | undefined> {
    const { redis, local, onLocal } = this.#options
    if (!redis.isAway) return this.#takeShared(limits, principal)
    onLocal()
    return local.take(limits, principal)
  }

  async #takeShared(limits: readonly Limit[], principal: string): Promise<LimitReached | undefined> {
    const { redis, prefix, local, onLocal } = this.#options
    const keys = limits.map((limit) => prefix + keyOf(limit, principal))
    const args = limits.flatMap(({ maxTokens, periodMs }) => [maxTokens, periodMs])
    const answer = await redis.run(TAKE, keys, args).catch(() => 'away') // also a key that holds something else
    if (answer === 0) return undefined
    const [index, waitMs] = Array.isArray(answer) ? answer : []
    const limit = limits[Number(index) - 1]
    if (limit !== undefined) return { limit, waitMs: Number(waitMs) }
    onLocal()
    return local.take(limits, principal)
  }
}

function keyOf(limit: Limit, principal: string): string {
  const tool = limit.tool === undefined ? '' : `:tool:${limit.tool}`
  return isPerUser(limit) ? `user${tool}:${principal}` : `shared${tool}`
}
