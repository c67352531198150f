import { tryParseDuration } from '@thv/kernel/duration'
import { MCPServerCondition, MCPServerReason } from '@thv/resources/kinds/mcp-server/constants'
import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalRateLimiting, RateLimitBucket } from '@thv/resources/shared/rate-limiting'
import type { RateLimitConfig, RateLimitBucket as RunnerBucket } from '@thv/runconfig/policy-config'
import type { Blocker } from '../../deployment/contribution.ts'
import { contributes, type Resolved } from '../contribution.ts'

export interface RateLimitArgs {
  readonly rateLimiting: CanonicalRateLimiting | undefined
  readonly namespace: string
  /** Requested proxy pods: by the spec, else by the current Deployment. */
  readonly replicas: number | undefined
  /** Whether the proxy keeps its sessions in Redis, where limits are then counted too. */
  readonly hasSharedStore: boolean
  /** Whether the proxy learns who calls. */
  readonly isAuthenticated: boolean
}

const FIELD = 'spec.rateLimiting'

/** How many calls are let through. Limits that could not be kept block: each pod would allow the whole number. */
export function resolveRateLimit({ rateLimiting, namespace, replicas, hasSharedStore, isAuthenticated }: RateLimitArgs): Resolved {
  const type = MCPServerCondition.RateLimitConfigValid
  if (rateLimiting === undefined) {
    const message = 'no rate limits are set'
    return contributes({ conditions: [{ type, status: 'True', reason: MCPServerReason.RateLimitNotApplicable, message }] })
  }

  const blockers: Blocker[] = []
  const block = (reason: string, message: string) => void blockers.push({ condition: type, reason, message })
  const buckets = bucketsOf(rateLimiting)
  if (!isAuthenticated && buckets.some(({ isPerUser }) => isPerUser))
    block(
      MCPServerReason.PerUserRequiresAuth,
      `limits per user need to know the user: set spec.oidcConfig, or remove perUser from ${FIELD}`,
    )
  if (!hasSharedStore && (replicas ?? 1) > 1)
    block(
      MCPServerReason.SharedStoreRequired,
      `${replicas} proxy pods cannot keep limits together in memory: set spec.sessionStorage with provider redis, or use one replica`,
    )
  for (const { field, bucket } of buckets) {
    const period = tryParseDuration(bucket.refillPeriod)
    if (period === undefined || period <= 0)
      block(MCPServerReason.InvalidSpec, `${field}.refillPeriod must be a duration above zero, such as 1m`)
  }
  if (blockers.length > 0) return { ok: false, blockers }

  const message = hasSharedStore
    ? 'limits are counted in Redis, for all proxy pods together'
    : 'limits are counted in memory: before more than one replica is asked for, set spec.sessionStorage with provider redis'
  return contributes({
    runConfig: { rate_limit_config: runnerConfig(rateLimiting), rate_limit_namespace: namespace },
    conditions: [{ type, status: 'True', reason: MCPServerReason.RateLimitConfigValid, message }],
  })
}

interface NamedBucket {
  readonly field: string
  readonly bucket: RateLimitBucket
  readonly isPerUser: boolean
}

function bucketsOf({ shared, perUser, tools }: CanonicalRateLimiting): NamedBucket[] {
  const owners = [
    { field: FIELD, shared, perUser },
    ...tools.map((tool) => ({ field: `${FIELD}.tools[${tool.name}]`, shared: tool.shared, perUser: tool.perUser })),
  ]
  return owners.flatMap((owner) => [
    ...(owner.shared ? [{ field: `${owner.field}.shared`, bucket: owner.shared, isPerUser: false }] : []),
    ...(owner.perUser ? [{ field: `${owner.field}.perUser`, bucket: owner.perUser, isPerUser: true }] : []),
  ])
}

function runnerConfig({ shared, perUser, tools, methods }: CanonicalRateLimiting): RateLimitConfig {
  return compact({
    shared: runnerBucket(shared),
    per_user: runnerBucket(perUser),
    tools: tools.map((tool) => compact({ name: tool.name, shared: runnerBucket(tool.shared), per_user: runnerBucket(tool.perUser) })),
    methods,
  })
}

function runnerBucket(bucket: RateLimitBucket | undefined): RunnerBucket | undefined {
  return bucket && { max_tokens: bucket.maxTokens, refill_period: bucket.refillPeriod }
}
