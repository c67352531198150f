import { describe, expect, it } from 'vitest'
import { BUILT_MIDDLEWARE, MIDDLEWARE, type MiddlewareRow, unsupportedFields } from './middleware-table.ts'
import { readRunConfig } from './read-run-config.ts'
import { isRunConfigError, RUN_CONFIG_EXIT_CODE, unsupportedMiddleware } from './run-config-errors.ts'
import { RUN_CONFIG_FIELDS } from './run-config-fields.ts'

const fieldsOf = (more: Record<string, unknown>): string[] => {
  const result = readRunConfig({ name: 'demo', image: 'x:1', transport: 'streamable-http', ...more })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  return unsupportedFields(result.config).map(({ field }) => field)
}

const remote = { remote_url: 'https://mcp.example.com/mcp' }

const UPSTREAM = { name: 'corp', type: 'oidc', oidc_config: { issuer_url: 'https://idp.example.com', client_id: 'x' } }
const REGISTERED = {
  name: 'chat',
  type: 'oauth2',
  oauth2_config: {
    authorization_endpoint: 'https://chat.example.com/authorize',
    token_endpoint: 'https://chat.example.com/token',
    dcr_config: { registration_endpoint: 'https://chat.example.com/register' },
  },
}
const login = (more: object) => ({
  oidc_config: { issuer: 'https://mcp.example.com', audience: 'https://mcp.example.com/mcp' },
  embedded_auth_server_config: {
    issuer: 'https://mcp.example.com',
    allowed_audiences: ['https://mcp.example.com/mcp'],
    upstreams: [UPSTREAM],
    disable_upstream_token_injection: true,
    ...more,
  },
})

describe('unsupportedFields', () => {
  it.each<[string, Record<string, unknown>]>([
    ['authz_config.type', { authz_config: { type: 'httpv1' } }],
    ['aws_sts_config', { ...remote, aws_sts_config: { region: 'eu-central-1' } }],
    ['mutating_webhooks', { mutating_webhooks: [{ name: 'a', url: 'https://w.example.com' }] }],
    ['validating_webhooks', { validating_webhooks: [{ name: 'a', url: 'https://w.example.com' }] }],
    ['isolate_network', { isolate_network: true }],
  ])('names %s', (field, more) => {
    expect(fieldsOf(more)).toEqual([field])
  })

  it('lets pass what asks for nothing, or for what is there', () => {
    expect(fieldsOf(login({}))).toEqual([])
    expect(fieldsOf({ ...login({ disable_upstream_token_injection: false }), upstream_swap_config: {} })).toEqual([])
    expect(fieldsOf(login({ trusted_issuers: [{ issuer_url: 'https://other.example.com' }] }))).toEqual([])
    expect(fieldsOf(login({ upstreams: [REGISTERED] }))).toEqual([])
    const exchange = { token_url: 'https://t.example.com', subject_provider_name: UPSTREAM.name }
    expect(fieldsOf({ ...login({ disable_upstream_token_injection: false }), token_exchange_config: exchange })).toEqual([])
    expect(fieldsOf(login({ storage: { type: 'redis', redis_config: { addr: 'redis:6379' } } }))).toEqual([])
    expect(
      fieldsOf({
        ...remote,
        remote_auth_config: { bearer_token: 'x,target=bearer_token', use_pkce: false, scopes: [], oauth_params: {} },
        rate_limit_config: { shared: { maxTokens: 1, refillPeriod: '1m' } },
        token_exchange_config: { token_url: 'https://t.example.com' },
        header_injection_config: { header_name: 'X-Key', header_value_env: 'KEY' },
        audit_config: { enabled: false },
        telemetry_config: { enablePrometheusMetricsPath: true, prometheusPort: 9100, metricsOnTransportPort: false },
        mutating_webhooks: [],
        scaling_config: { backend_replicas: 2, session_redis: { address: 'redis:6379' } },
        header_forward: { add_plaintext_headers: { A: 'b' } },
        tools_filter: ['a'],
        allowed_origins: ['https://a.example.com'],
      }),
    ).toEqual([])
  })

  it('asks the table: middleware that is built is no longer named', () => {
    const result = readRunConfig({ name: 'demo', image: 'x:1', transport: 'sse', isolate_network: true })
    if (!result.ok) throw new Error('unreadable')
    const built = MIDDLEWARE.map((row) => (row.name === 'network-isolation' ? { ...row, built: true } : row))
    expect(unsupportedFields(result.config).map(({ middleware }) => middleware)).toEqual(['network-isolation'])
    expect(unsupportedFields(result.config, built)).toEqual([])
  })

  it('knows only fields that exist, and each name and entry type once', () => {
    const rows: readonly MiddlewareRow[] = MIDDLEWARE
    for (const { fields } of rows) {
      for (const field of fields) expect(Object.keys(RUN_CONFIG_FIELDS)).toContain(field.split('.')[0])
    }
    const types = rows.flatMap(({ entry }) => entry?.types ?? [])
    for (const names of [rows.map(({ name }) => name), types]) expect(new Set(names).size).toBe(names.length)
  })

  it('lists the middleware of the pipeline in its order', () => {
    const order = ['audit', 'auth', 'tool-filter', 'authorization', 'ratelimit', 'tokenexchange', 'header-forward']
    const names: readonly string[] = MIDDLEWARE.map(({ name }) => name)
    expect(order.toSorted((a, b) => names.indexOf(a) - names.indexOf(b))).toEqual(order)
    expect(BUILT_MIDDLEWARE).toEqual([
      'audit',
      'auth',
      'telemetry-export',
      'tool-filter',
      'authorization',
      'ratelimit',
      'tokenexchange',
      'upstreamswap',
      'header-injection',
      'remote-auth',
      'header-forward',
    ])
  })

  it('becomes an error that names field and middleware', () => {
    const error = unsupportedMiddleware([{ field: 'oidc_config', middleware: 'auth' }])
    expect(error.message).toContain('oidc_config (middleware auth)')
    expect(isRunConfigError(error, 'middleware_unsupported')).toBe(true)
    expect(RUN_CONFIG_EXIT_CODE).toBe(78)
  })
})
