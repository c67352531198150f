import type { Clock } from '@thv/kernel/clock'
import { parseDuration } from '@thv/kernel/duration'
import type { RateLimitBucket } from '@thv/runconfig/policy-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { Middleware } from '../pipeline/middleware.ts'
import type { Limit, LimitScope } from './limit.ts'
import { MemoryBuckets } from './memory-buckets.ts'
import { createRateLimit } from './rate-limit.ts'

export function makeRateLimit({ rate_limit_config: config }: RunConfig, { clock }: { readonly clock: Clock }): Middleware | undefined {
  if (config === undefined) return undefined
  const limits = [
    ...limitOf('server', config.shared),
    ...limitOf('user', config.per_user),
    ...config.tools.flatMap(({ name, shared, per_user: perUser }) => [
      ...limitOf('tool', shared, name),
      ...limitOf('user-tool', perUser, name),
    ]),
  ]
  return createRateLimit({ limits, methods: config.methods }, { buckets: new MemoryBuckets({ clock }) })
}

function limitOf(scope: LimitScope, bucket: RateLimitBucket | undefined, tool?: string): Limit[] {
  return bucket === undefined ? [] : [{ scope, tool, maxTokens: bucket.max_tokens, periodMs: parseDuration(bucket.refill_period) }]
}
