import { join } from 'node:path'
import { authzConfig } from './policies.ts'
import type { BenchProvider } from './provider.ts'

/** A runner with some middleware, and how much a call through it may cost. */
export interface Variant {
  readonly name: string
  readonly config: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string>>
  /** Times the CPU per call of the runner without middleware. */
  readonly limit: number
  /** Megabytes over the runner without middleware. */
  readonly moreMemory?: number
}

export interface VariantOptions {
  readonly provider: BenchProvider
  /** Address and password; absent where there is no Redis. */
  readonly redis: { readonly address: string; readonly password: string } | undefined
  /** For audit files. */
  readonly folder: string
}

export const EVERYTHING = 'everything without Redis'
export const EVERYTHING_SHARED = 'everything with Redis'
export const TOKEN_KNOWN = 'token known'

export function variantsOf({ provider, redis, folder }: VariantOptions): Variant[] {
  const { issuer, audience, tokenUrl, collector } = provider
  const token = { oidc_config: { issuer, audience, allow_private_ip: true } }
  const exchange = { token_exchange_config: { token_url: tokenUrl, client_id: 'bench', audience: 'backend' } }
  const audit = (name: string) => ({ audit_config: { enabled: true, log_file: join(folder, `${name}.log`) } })
  const traces = (rate: string) => ({
    telemetry_config: { endpoint: collector, insecure: true, tracing_enabled: true, metrics_enabled: true, sampling_rate: rate },
  })
  const bucket = { max_tokens: 1_000_000_000, refill_period: '1s' }
  const limits = { rate_limit_config: { shared: bucket, per_user: bucket, tools: [{ name: 'echo', per_user: bucket }] } }
  const everything = { ...token, ...exchange, ...limits, ...traces('0.05'), authz_config: authzConfig(10) }
  const shared: Variant[] =
    redis === undefined
      ? []
      : [
          {
            name: EVERYTHING_SHARED,
            config: { ...everything, ...audit('shared'), scaling_config: { session_redis: { address: redis.address } } },
            env: { THV_SESSION_REDIS_PASSWORD: redis.password },
            limit: 2,
            moreMemory: 30,
          },
        ]
  return [
    { name: TOKEN_KNOWN, config: token, limit: 1.1 },
    { name: 'token and 10 policies', config: { ...token, authz_config: authzConfig(10) }, limit: 1.15 },
    { name: 'token and 1,000 policies', config: { ...token, authz_config: authzConfig(1_000) }, limit: 1.25 },
    { name: 'token and exchange', config: { ...token, ...exchange }, limit: 1.2 },
    { name: 'audit alone', config: audit('alone'), limit: 1.15 },
    { name: 'traces at 5 %', config: traces('0.05'), limit: 1.1 },
    { name: 'traces at 100 %', config: traces('1'), limit: 1.25 },
    { name: EVERYTHING, config: { ...everything, ...audit('everything') }, limit: 1.4, moreMemory: 12 },
    ...shared,
  ]
}
