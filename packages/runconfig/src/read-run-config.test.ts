import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AnyFieldTable } from './field.ts'
import { readRunConfig } from './read-run-config.ts'
import { RUN_CONFIG_FIELDS } from './run-config-fields.ts'

const MINIMAL = { name: 'demo', image: 'example/server:1', transport: 'stdio' }

const good = (more: Record<string, unknown> = {}) => {
  const result = readRunConfig({ ...MINIMAL, ...more })
  if (!result.ok) throw new Error(result.problems.map(({ path, message }) => `${path} ${message}`).join('; '))
  return result
}

const problemsOf = (document: unknown): string[] => {
  const result = readRunConfig(document)
  return result.ok ? [] : result.problems.map(({ path, message }) => `${path} ${message}`)
}

const bad = (more: Record<string, unknown>): string[] => problemsOf({ ...MINIMAL, ...more })

describe('readRunConfig', () => {
  it('fills in the defaults', () => {
    const { config, warnings } = good()
    expect(warnings).toEqual([])
    expect(config).toMatchObject({
      schema_version: 'v0.1.0',
      mcpserver_generation: 0,
      container_name: 'demo',
      base_name: 'demo',
      proxy_mode: 'streamable-http',
      host: '127.0.0.1',
      port: 8080,
      target_port: 0,
      era: 'auto',
      stdio_isolation: 'auto',
      stdio_max_processes: 8,
      session_ttl: '2h',
      remote_policy: { deny_private: false, allow_private: false, allow_loopback: false },
      cmd_args: [],
      env_vars: {},
    })
    expect(config).not.toHaveProperty('oidc_config')
  })

  it('reads the minimal document of ToolHive (Go), middleware list included', () => {
    const { config, warnings } = good({
      schema_version: 'v0.1.0',
      mcpserver_generation: 1,
      host: '0.0.0.0',
      port: 8080,
      target_port: 8080,
      container_name: 'demo',
      base_name: 'demo',
      permission_profile: { name: 'network', network: { outbound: { insecure_allow_all: true }, inbound: {} } },
      container_labels: { toolhive: 'true' },
      env_vars: { LOG_LEVEL: 'info' },
      proxy_mode: 'streamable-http',
      k8s_pod_template_patch: '',
      remote_url: '',
      middleware_configs: [
        { type: 'bodylimit', parameters: { max_bytes: 8_388_608 } },
        { type: 'auth', parameters: {} },
        { type: 'mcp-parser', parameters: {} },
        { type: 'usagemetrics', parameters: {} },
        { type: 'recovery', parameters: null },
      ],
    })
    expect(warnings).toEqual([])
    expect(config.middleware_configs).toHaveLength(5)
    expect(config).not.toHaveProperty('remote_url')
  })

  it('wants an issuer or this cluster, and copies that agree', () => {
    const issuer = 'https://idp.example.com'
    expect(bad({ oidc_config: {} })).toEqual(['oidc_config.issuer is required unless this_cluster is true'])
    expect(bad({ oidc_config: { issuer, this_cluster: true } })).toEqual([
      'oidc_config.this_cluster takes the place of issuer: leave one of them out',
    ])
    expect(bad({ oidc_config: { this_cluster: true } })).toEqual([])
    expect(bad({ thv_ca_bundle: '/ca', jwks_auth_token_file: '/t' })).toEqual([
      'thv_ca_bundle needs oidc_config: it is about calls to the issuer',
      'jwks_auth_token_file needs oidc_config: it is about calls to the issuer',
    ])
    expect(bad({ thv_ca_bundle: '/a', oidc_config: { issuer, ca_cert_path: '/b' } })).toEqual([
      'thv_ca_bundle differs from oidc_config.ca_cert_path',
    ])
    expect(bad({ thv_ca_bundle: '/a', oidc_config: { issuer, ca_cert_path: '/a' } })).toEqual([])
  })

  it('accepts the spellings of ToolHive (Go) inside oidc_config and telemetry_config, in any case', () => {
    const { config } = good({
      oidc_config: {
        Issuer: 'https://idp.example.com',
        JWKSURL: 'https://idp.example.com/keys',
        allowprivateip: true,
        ResourceURL: 'https://r.example.com',
      },
      telemetry_config: { serviceName: 'x', enablePrometheusMetricsPath: true, useLegacyAttributes: false },
      audit_config: { maxDataSize: 5 },
      rate_limit_config: { perUser: { maxTokens: 3, refillPeriod: '1m' } },
    })
    expect(config.oidc_config).toMatchObject({
      issuer: 'https://idp.example.com',
      jwks_url: 'https://idp.example.com/keys',
      allow_private_ip: true,
      resource_url: 'https://r.example.com',
      scopes: [],
    })
    expect(config.telemetry_config).toMatchObject({ service_name: 'x', enable_prometheus_metrics_path: true, use_legacy_attributes: false })
    expect(config.audit_config?.max_data_size).toBe(5)
    expect(config.rate_limit_config?.per_user).toEqual({ max_tokens: 3, refill_period: '1m' })
  })

  it('reads whom tokens must be of, as a subject or as its beginning', () => {
    const subject = (required: unknown) => ({ oidc_config: { issuer: 'https://idp.example.com', RequiredSubject: required } })
    for (const required of ['system:serviceaccount:team:ci', 'system:serviceaccount:team:*'])
      expect(good(subject(required)).config.oidc_config?.required_subject).toBe(required)
    for (const required of ['*', 'a*b', 'a**', ['a']])
      expect(bad(subject(required))).toEqual([expect.stringMatching(/^oidc_config\.required_subject expects a subject, or the beginning/)])
  })

  it('refuses two spellings of one thing with different values', () => {
    expect(bad({ oidc_config: { Issuer: 'https://a.example.com', issuer: 'https://b.example.com' } })).toEqual([
      'oidc_config.issuer is given in two spellings with different values; keep issuer',
    ])
    expect(bad({ oidc_config: { Issuer: 'https://a.example.com', issuer: 'https://a.example.com' } })).toEqual([])
  })

  it('refuses a known field in another spelling, and lists unknown ones as warnings', () => {
    expect(bad({ oidcConfig: { Issuer: 'https://idp.example.com' } })).toEqual(['oidcConfig must be written as oidc_config'])
    expect(good({ some_day: 1, scaling_config: { later: true } }).warnings).toEqual([
      { path: 'some_day', message: 'is not a known field and has no effect' },
      { path: 'scaling_config.later', message: 'is not a known field and has no effect' },
    ])
  })

  it('reports all problems at once, each with its path and what is expected', () => {
    expect(
      problemsOf({ name: 'Not A Name', transport: 'http', port: 70_000, cmd_args: ['a', 1], env_vars: { 'A=B': 'x', C: 2 }, era: 'old' }),
    ).toEqual([
      'name expects a name of at most 63 lower-case letters, digits and dashes, got a text',
      'cmd_args[1] expects a text, got a number',
      'env_vars.A=B (its name) expects a name of letters, digits, _, . and -, not beginning with a digit, got a text',
      'env_vars.C expects a text, got a number',
      'transport expects one of stdio, sse, streamable-http, got a text',
      'port expects a whole number from 0 to 65535, got a number',
      'era expects one of auto, legacy, modern, got a text',
    ])
    expect(problemsOf([])).toEqual([' expects an object, got a list'])
    expect(problemsOf({})).toEqual([
      'name is required: expects a name of at most 63 lower-case letters, digits and dashes',
      'transport is required: expects one of stdio, sse, streamable-http',
    ])
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['an unknown version', { schema_version: 'v9' }, 'schema_version expects one of v0.1.0'],
    ['no image', { image: '' }, 'image is required unless remote_url'],
    ['stdio beside a remote server', { remote_url: 'https://x.example.com' }, 'transport expects sse or streamable-http beside remote_url'],
    [
      'credentials in a URL',
      { transport: 'sse', remote_url: 'https://u:p@x.example.com' },
      'remote_url expects an http or https URL without user name',
    ],
    ['another scheme', { transport: 'sse', remote_url: 'file:///etc/passwd' }, 'remote_url expects an http or https URL'],
    ['forwarded headers without a remote server', { header_forward: {} }, 'header_forward needs remote_url'],
    ['a CA bundle without a remote server', { remote_ca_bundle_path: '/ca.pem' }, 'remote_ca_bundle_path needs remote_url'],
    ['a port of a stdio server', { publish: ['80:80'] }, 'publish needs a server with a port'],
    ['a negative time', { session_ttl: '-1s' }, 'session_ttl expects a duration that is not negative'],
    ['no time', { session_ttl: 'soon' }, 'session_ttl expects a duration'],
    ['an owner without uid', { owner: { api_version: 'v1', kind: 'K', name: 'n' } }, 'owner.uid is required'],
    ['an origin with a path', { allowed_origins: ['https://a.example.com/x'] }, 'allowed_origins[0] expects an origin'],
    ['a relative mount', { volumes: ['data:/data'] }, 'volumes[0] expects HOST_PATH:MOUNT_PATH'],
    ['a mount mode', { volumes: ['/data:/data:rw'] }, 'volumes[0] expects HOST_PATH:MOUNT_PATH'],
    ['a tool name with a comma', { tools_filter: ['a,b'] }, 'tools_filter[0] expects a name without comma'],
    ['an empty override', { tools_override: { a: {} } }, 'tools_override.a expects at least one of'],
    ['one new name twice', { tools_override: { a: { name: 'c' }, b: { name: 'c' } } }, 'tools_override.b.name is also the new name of a'],
    ['an endpoint of no use', { telemetry_config: { endpoint: 'otel:4318' } }, 'telemetry_config.endpoint is of no use'],
    ['a pod patch that is no JSON', { k8s_pod_template_patch: '{' }, 'k8s_pod_template_patch expects an object, or a text that holds one'],
    [
      'a nameless container',
      { k8s_pod_template_patch: '{"spec":{"containers":[{}]}}' },
      'k8s_pod_template_patch.spec.containers[0] expects',
    ],
    [
      'containers that are no list',
      { k8s_pod_template_patch: { spec: { containers: {} } } },
      'k8s_pod_template_patch.spec.containers expects',
    ],
    ['a secret without target', { secrets: ['token'] }, 'secrets[0] expects NAME,target=VARIABLE'],
    [
      'a header of two lines',
      { transport: 'sse', remote_url: 'https://x.example.com', header_forward: { add_plaintext_headers: { A: 'b\nc' } } },
      'header_forward.add_plaintext_headers.A expects a text of one line',
    ],
    ['a text with NUL', { cmd_args: ['a\0b'] }, 'cmd_args[0] expects a text'],
  ])('refuses %s', (_, more, start) => {
    expect(bad(more)).toEqual([expect.stringContaining(start)])
  })

  it('makes proxy_mode the transport where clients speak to the server itself', () => {
    const { config, warnings } = good({ transport: 'SSE', proxy_mode: 'streamable-http' })
    expect([config.transport, config.proxy_mode]).toEqual(['sse', 'sse'])
    expect(warnings.map(({ path }) => path)).toEqual(['proxy_mode'])
    expect(bad({ transport: 'Sse' })).toHaveLength(1)
  })

  it('reads its own canonical form to the same, whatever a document held', () => {
    const arbitrary = fc.record(
      {
        name: fc.constantFrom('a', 'demo'),
        image: fc.constantFrom('x:1', ''),
        transport: fc.constantFrom('stdio', 'sse', 'STREAMABLE-HTTP'),
        proxy_mode: fc.constantFrom('sse', 'streamable-http', ''),
        session_ttl: fc.constantFrom('', '0', '5m'),
        env_vars: fc.dictionary(fc.constantFrom('A', 'B_C'), fc.string()),
        oidc_config: fc.constantFrom(null, { Issuer: 'https://i.example.com' }, {}),
        k8s_pod_template_patch: fc.constantFrom('', '{"spec":{}}', {}),
        scaling_config: fc.constantFrom(null, {}, { backend_replicas: 2 }),
        tools_override: fc.constantFrom({}, { a: { name: 'b' } }),
      },
      { requiredKeys: ['name', 'transport'] },
    )
    fc.assert(
      fc.property(arbitrary, (document) => {
        const first = readRunConfig(document)
        if (!first.ok) return
        const again = readRunConfig(JSON.parse(JSON.stringify(first.config)))
        expect(again).toEqual({ ok: true, config: first.config, warnings: [] })
      }),
    )
  })

  it('never throws, whatever a document holds, and never repeats a value', () => {
    const marker = 'S3CRET-VALUE'
    const leaf = fc.oneof(fc.constant(marker), fc.constant([marker]), fc.constant({ x: marker }), fc.jsonValue())
    const keys = Object.keys(RUN_CONFIG_FIELDS)
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...keys), leaf), (document) => {
        const result = readRunConfig(document)
        const said = result.ok ? result.warnings : [...result.problems, ...result.warnings]
        expect(said.map(({ message }) => message).join()).not.toContain(marker)
      }),
      { numRuns: 300 },
    )
  })

  it('does not take __proto__ for what it is not', () => {
    const { config } = good({ env_vars: JSON.parse('{"__proto__": "x"}') })
    expect(Object.keys(config.env_vars)).toEqual(['__proto__'])
    expect(readRunConfig(JSON.parse('{"__proto__": {"name": "a"}}')).ok).toBe(false)
  })

  it('has a default that its own reader accepts, for every field of every part', () => {
    const check = (fields: AnyFieldTable) => {
      for (const [name, field] of Object.entries(fields)) {
        if (field.default !== undefined) {
          const findings = { problems: [], warnings: [] }
          expect(field.reader.read(field.default, name, findings), name).toEqual(field.default)
        }
        expect(field.doc, name).toMatch(/\.$/)
        if (field.reader.fields) check(field.reader.fields)
      }
    }
    check(RUN_CONFIG_FIELDS as unknown as AnyFieldTable)
  })
})
