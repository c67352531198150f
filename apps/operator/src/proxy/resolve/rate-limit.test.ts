import { METERED_METHODS } from '@thv/resources/shared/rate-limiting'
import { METERED_METHODS as METHODS_OF_RUN_CONFIGS } from '@thv/runconfig/policy-config'
import { describe, expect, it } from 'vitest'
import { type RateLimitArgs, resolveRateLimit } from './rate-limit.ts'
import { blockersOf, contributionOf } from './testing/snapshot.ts'

const oidc_config = {
  issuer: 'https://idp.example.com',
  allow_private_ip: false,
  jwks_allow_private_ip: false,
  insecure_allow_http: false,
  this_cluster: false,
  forward_token: false,
  scopes: [],
}
const bucket = (maxTokens: number, refillPeriod = '1m') => ({ maxTokens, refillPeriod })
const resolve = (limits: Partial<RateLimitArgs['rateLimiting']>, more: Partial<RateLimitArgs> = {}) =>
  resolveRateLimit({
    rateLimiting: limits && { tools: [], methods: [], ...limits },
    namespace: 'team',
    replicas: 1,
    hasSharedStore: false,
    isAuthenticated: true,
    ...more,
  })

describe('resolveRateLimit', () => {
  it('says that nothing is asked for', () => {
    expect(contributionOf(resolve(undefined))).toEqual({
      conditions: [{ type: 'RateLimitConfigValid', status: 'True', reason: 'RateLimitNotApplicable', message: 'no rate limits are set' }],
    })
  })

  it('writes all limits down', () => {
    const limits = {
      shared: bucket(100),
      perUser: bucket(10, '30s'),
      tools: [
        { name: 't', shared: bucket(1, '1h') },
        { name: 'u', perUser: bucket(2) },
      ],
      methods: ['tools/list' as const],
    }
    const { runConfig, conditions } = contributionOf(resolve(limits, { hasSharedStore: true, replicas: 3 }), { oidc_config })
    expect(runConfig).toEqual({
      rate_limit_config: {
        shared: { max_tokens: 100, refill_period: '1m' },
        per_user: { max_tokens: 10, refill_period: '30s' },
        tools: [
          { name: 't', shared: { max_tokens: 1, refill_period: '1h' } },
          { name: 'u', per_user: { max_tokens: 2, refill_period: '1m' } },
        ],
        methods: ['tools/list'],
      },
      rate_limit_namespace: 'team',
    })
    expect(conditions).toMatchObject([{ status: 'True', reason: 'RateLimitConfigValid', message: expect.stringContaining('Redis') }])
  })

  it.each([
    [1, false, undefined],
    [0, false, undefined],
    [undefined, false, undefined],
    [2, false, 'SharedStoreRequired'],
    [2, true, undefined],
  ])('with %s replicas and shared store %s: %s', (replicas, hasSharedStore, reason) => {
    const resolved = resolve({ shared: bucket(1), tools: [] }, { replicas, hasSharedStore })
    if (reason === undefined) expect(contributionOf(resolved).runConfig).toHaveProperty('rate_limit_config')
    else
      expect(blockersOf(resolved)).toMatchObject([
        { condition: 'RateLimitConfigValid', reason, message: expect.stringContaining('2 proxy pods') },
      ])
  })

  it.each([
    ['of the server', { perUser: bucket(1), tools: [] }],
    ['of a tool', { tools: [{ name: 't', perUser: bucket(1) }] }],
  ])('needs to know the user for a limit per user %s', (_, limits) => {
    expect(blockersOf(resolve(limits, { isAuthenticated: false }))).toMatchObject([{ reason: 'PerUserRequiresAuth' }])
    contributionOf(resolve({ shared: bucket(1), tools: [] }, { isAuthenticated: false }))
  })

  it('tells all that is wrong at once', () => {
    const limits = { perUser: bucket(1, '0s'), tools: [{ name: 't', shared: bucket(1, 'soon') }] }
    expect(
      blockersOf(resolve(limits, { isAuthenticated: false, replicas: 2 })).map(({ reason, message }) => `${reason} ${message}`),
    ).toEqual([
      expect.stringMatching(/^PerUserRequiresAuth /),
      expect.stringMatching(/^SharedStoreRequired /),
      'InvalidSpec spec.rateLimiting.perUser.refillPeriod must be a duration above zero, such as 1m',
      'InvalidSpec spec.rateLimiting.tools[t].shared.refillPeriod must be a duration above zero, such as 1m',
    ])
  })
})

it('resources and run configs know the same methods', () => {
  expect(METERED_METHODS).toEqual(METHODS_OF_RUN_CONFIGS)
})
