import { describe, expect, it } from 'vitest'
import { readRunConfig } from './read-run-config.ts'

const problems = (entry: Record<string, unknown>, more: Record<string, unknown> = {}, list = 'middleware_configs'): string[] => {
  const result = readRunConfig({ name: 'demo', image: 'x:1', transport: 'streamable-http', ...more, [list]: [entry] })
  return result.ok ? [] : result.problems.map(({ path, message }) => `${path} ${message}`)
}

describe('middleware_configs', () => {
  it.each([
    [{ type: 'bodylimit' }],
    [{ type: 'bodylimit', parameters: { max_bytes: 8_388_608 } }],
    [{ type: 'auth', parameters: { oidc_config: null } }],
    [{ type: 'mcp-parser', parameters: {} }],
    [{ type: 'usagemetrics' }],
    [{ type: 'recovery', parameters: null }],
    [{ type: 'origin', parameters: { allowed_origins: [] } }],
  ])('accepts what is always there: %j', (entry) => {
    expect(problems(entry)).toEqual([])
  })

  it.each<[Record<string, unknown>, string]>([
    [{ type: 'bodylimit', parameters: { max_bytes: 1024 } }, 'the limit is always 8388608 bytes'],
    [{ type: 'auth', parameters: { oidc_config: { Issuer: 'https://idp.example.com' } } }, 'use oidc_config'],
    [{ type: 'origin', parameters: { allowed_origins: ['https://a.example.com'] } }, 'use allowed_origins'],
    [{ type: 'audit', parameters: { component: 'x' } }, 'use audit_config, audit_config_path'],
    [{ type: 'authorization' }, 'use authz_config, authz_config_path'],
    [{ type: 'tokenexchange', parameters: { token_exchange_config: { token_url: 'https://t.example.com' } } }, 'use token_exchange_config'],
    [{ type: 'upstreamswap' }, 'use upstream_swap_config'],
    [{ type: 'strip-auth' }, 'use embedded_auth_server_config.disable_upstream_token_injection'],
    [{ type: 'tool-filter', parameters: { filter_tools: ['a'] } }, 'use tools_filter, tools_override'],
    [{ type: 'tool-call-filter', parameters: { filter_tools: ['a'] } }, 'use tools_filter, tools_override'],
    [{ type: 'telemetry' }, 'use telemetry_config'],
    [{ type: 'ratelimit' }, 'use rate_limit_config, rate_limit_namespace'],
    [{ type: 'mutating-webhook' }, 'use mutating_webhooks'],
    [{ type: 'validating-webhook' }, 'use validating_webhooks'],
    [{ type: 'awssts' }, 'use aws_sts_config'],
    [{ type: 'header-forward', parameters: { add_headers: { A: 'b' } } }, 'use header_forward'],
  ])('refuses %j, naming what to use', (entry, instead) => {
    expect(problems(entry)).toEqual([expect.stringContaining(instead)])
    expect(problems(entry, {}, 'additional_middleware_configs')).toEqual([expect.stringMatching(/^additional_middleware_configs\[0\] /)])
  })

  it('rejects an unknown middleware, also one named like a member of every object', () => {
    expect(problems({ type: 'obo' })).toEqual([expect.stringContaining('asks for an unknown middleware')])
    expect(problems({ type: 'constructor' })).toEqual([expect.stringContaining('asks for an unknown middleware')])
  })

  it('accepts what the typed fields ask for too, in whatever spelling', () => {
    const tools = { tools_filter: ['new'], tools_override: { old: { name: 'new' } } }
    expect(
      problems({ type: 'tool-filter', parameters: { filter_tools: ['new'], tools_override: { old: { name: 'new' } } } }, tools),
    ).toEqual([])
    expect(problems({ type: 'tool-filter', parameters: { filter_tools: ['old'] } }, tools)).toHaveLength(1)
    const oidc = { oidc_config: { issuer: 'https://idp.example.com', allow_private_ip: false } }
    expect(problems({ type: 'auth', parameters: { oidc_config: { Issuer: 'https://idp.example.com' } } }, oidc)).toEqual([])
    expect(
      problems({ type: 'auth', parameters: { oidc_config: { Issuer: 'https://idp.example.com', Audience: 'a' } } }, oidc),
    ).toHaveLength(1)
    expect(problems({ type: 'auth', parameters: { oidc_config: { Issuer: 'https://idp.example.com', Extra: 'a' } } }, oidc)).toHaveLength(1)
    const audit = { audit_config: { max_data_size: 1024 } }
    expect(problems({ type: 'audit', parameters: { config_data: { detectApplicationErrors: true, maxDataSize: 1024 } } }, audit)).toEqual(
      [],
    )
  })
})
