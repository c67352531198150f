import type { Clock } from '@thv/kernel/clock'
import { parseDuration } from '@thv/kernel/duration'
import type { RateLimitBucket } from '@thv/runconfig/policy-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { RedisClient } from '@thv/store/redis/redis-client'
import type { Metrics } from '@thv/telemetry/metrics'
import type { Middleware } from '../pipeline/middleware.ts'
import type { Limit, LimitScope } from './limit.ts'
import { MemoryBuckets } from './memory-buckets.ts'
import { type Buckets, createRateLimit } from './rate-limit.ts'
import { RedisBuckets } from './redis-buckets.ts'

export interface RateLimitParts {
  readonly clock: Clock
  readonly metrics: Metrics
  /** Shared by all replicas; absent: limits are counted in memory. */
  readonly redis?: RedisClient | undefined
}

export function makeRateLimit(run: RunConfig, parts: RateLimitParts): Middleware | undefined {
  const config = run.rate_limit_config
  if (config === undefined) return undefined
  const limits = [
    ...limitOf('server', config.shared),
    ...limitOf('user', config.per_user),
    ...config.tools.flatMap(({ name, shared, per_user: perUser }) => [
      ...limitOf('tool', shared, name),
      ...limitOf('user-tool', perUser, name),
    ]),
  ]
  return createRateLimit({ limits, methods: config.methods }, { buckets: bucketsOf(run, parts) })
}

function bucketsOf({ rate_limit_namespace: namespace = '', name }: RunConfig, { clock, metrics, redis }: RateLimitParts): Buckets {
  const local = new MemoryBuckets({ clock })
  if (redis === undefined) return local
  const counted = metrics
    .counter({ name: 'toolhive_rate_limit_local_total', help: 'Calls whose limits were counted by this replica alone: Redis was away.' })
    .with()
  return new RedisBuckets({ redis, prefix: `thv:rl:{${namespace}:${name}}:`, local, onLocal: () => counted.inc() })
}

function limitOf(scope: LimitScope, bucket: RateLimitBucket | undefined, tool?: string): Limit[] {
  return bucket === undefined ? [] : [{ scope, tool, maxTokens: bucket.max_tokens, periodMs: parseDuration(bucket.refill_period) }]
}
