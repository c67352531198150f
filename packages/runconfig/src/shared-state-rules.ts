import { tryParseDuration } from '@thv/kernel/duration'
import type { RateLimitBucket } from './policy-config.ts'
import type { RunConfig } from './run-config.ts'

type Report = (path: string, message: string) => void

/** Rules for shared state: one way to find Redis. */
export function redisProblems({ scaling_config: { session_redis: redis } }: RunConfig, problem: Report): void {
  if (redis === undefined) return
  const at = 'scaling_config.session_redis'
  if ((redis.address === undefined) === (redis.sentinel === undefined)) problem(at, 'expects exactly one of address and sentinel')
  if (redis.sentinel?.addresses.length === 0) problem(`${at}.sentinel.addresses`, 'expects at least one address')
  if (redis.tls?.ca_path !== undefined && !redis.tls.enabled) problem(`${at}.tls.ca_path`, 'needs enabled')
}

/** Rules for limits: something is limited, every bucket refills, and a limit per user knows the user. */
export function rateLimitProblems(config: RunConfig, problem: Report): void {
  const limits = config.rate_limit_config
  if (limits === undefined) return
  const at = 'rate_limit_config'
  const owners = [
    { path: at, shared: limits.shared, perUser: limits.per_user },
    ...limits.tools.map((tool, index) => ({ path: `${at}.tools[${index}]`, shared: tool.shared, perUser: tool.per_user })),
  ]
  const isAuthenticated = config.oidc_config !== undefined || config.embedded_auth_server_config !== undefined
  for (const { path, shared, perUser } of owners) {
    checkBucket(`${path}.shared`, shared, problem)
    checkBucket(`${path}.per_user`, perUser, problem)
    if (perUser !== undefined && !isAuthenticated) problem(`${path}.per_user`, 'needs oidc_config: without it the user is unknown')
    if (path !== at && shared === undefined && perUser === undefined) problem(path, 'expects at least one of shared and per_user')
  }
  const limitsServer = limits.shared !== undefined || limits.per_user !== undefined
  if (!limitsServer && limits.tools.length === 0) problem(at, 'expects at least one of shared, per_user and tools')
  if (!limitsServer && limits.methods.length > 0)
    problem(`${at}.methods`, 'needs shared or per_user: limits of tools meter tools/call alone')
}

function checkBucket(path: string, bucket: RateLimitBucket | undefined, problem: Report): void {
  const period = bucket === undefined ? 1 : tryParseDuration(bucket.refill_period)
  if (period === undefined || period <= 0) problem(`${path}.refill_period`, 'expects a duration above zero')
}
