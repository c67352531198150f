import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { CLIENT } from '@thv/auth/outgoing/testing/token-server'
import type { UpstreamTokens } from '@thv/authserver/upstream-tokens'
import { createOutbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { pipelineFromRunConfig } from '@thv/middleware/from-run-config'
import { MIDDLEWARE, unsupportedFields } from '@thv/runconfig/middleware-table'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import { createMetrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Observation, openSurroundings, type Surroundings } from './testing/every-field/observed-runner.ts'
import { leavesBelow, RUN_CONFIG_MEMBERS, withLeaf } from './testing/every-field/run-config-leaves.ts'

/*
 * No field of the pipeline is accepted and ignored: for each leaf of its part of a RunConfig there is a document in which changing only
 * that leaf changes what clients, the server, the identity provider, the collector, Redis or the files show of the runner.
 */

/** The members that ask for middleware, and those that change what it does. */
const OF_THE_PIPELINE = [
  ...['audit_config', 'audit_config_path', 'allowed_origins', 'oidc_config', 'thv_ca_bundle', 'jwks_auth_token_file', 'telemetry_config'],
  ...[
    'tools_filter',
    'tools_override',
    'authz_config',
    'authz_config_path',
    'authz_primary_upstream_provider',
    'rate_limit_config',
    'rate_limit_namespace',
  ],
  ...['token_exchange_config', 'upstream_swap_config', 'header_injection_config', 'remote_auth_config', 'header_forward'],
  ...['trust_proxy_headers', 'trusted_proxies', 'middleware_configs', 'additional_middleware_configs'],
]
/** Of `scaling_config` only this; the rest is about pods. */
const REDIS = 'scaling_config.session_redis.'
/** Asked for, they stop the start. */
const NOT_BUILT = ['mutating_webhooks', 'validating_webhooks', 'aws_sts_config', 'isolate_network']
/** About the server, its pods, the listener and sessions; and the authorization server, which is a program of its own behind one path. */
const OTHERS = [
  ...['schema_version', 'mcpserver_generation', 'owner', 'name', 'container_name', 'base_name', 'group', 'debug', 'image', 'cmd_args'],
  ...['env_vars', 'env_file_dir', 'secrets', 'remote_url', 'remote_ca_bundle_path', 'remote_policy', 'transport', 'proxy_mode', 'host'],
  ...['port', 'target_host', 'target_port', 'era', 'stdio_isolation', 'stdio_max_processes', 'allowed_hosts', 'service_hosts'],
  ...['endpoint_prefix', 'strict_protocol_validation', 'stateless', 'session_ttl', 'container_labels', 'volumes', 'publish'],
  ...['permission_profile', 'permission_profile_name_or_path', 'k8s_pod_template_patch', 'scaling_config', 'embedded_auth_server_config'],
]

type Documents = (around: Surroundings) => object

interface Change {
  /** In which the leaf has a value, or none. */
  readonly document: Documents
  /** Undefined removes it. */
  readonly value: (around: Surroundings) => unknown
  /** Why another value can only be refused. */
  readonly onlyRefused?: string
}

function to(value: unknown, document: Documents, onlyRefused?: string): Change {
  return { document, value: () => value, ...(onlyRefused !== undefined && { onlyRefused }) }
}

function toPart(value: (around: Surroundings) => unknown, document: Documents): Change {
  return { document, value }
}

const oidc = ({ idp }: Surroundings) => ({ issuer: idp.issuer, audience: 'tests', allow_private_ip: true })
const guarded: Documents = (around) => ({ oidc_config: oidc(around) })
/** Keys at an address of their own, by TLS and with a bearer. */
const byTls = (around: Surroundings, more: object = {}): object => ({
  ...{ issuer: around.idp.issuer, audience: 'tests', jwks_url: `${around.tls.url}/keys`, jwks_allow_private_ip: true },
  ...more,
})
const overHttp: Documents = () => ({ oidc_config: { issuer: 'http://idp.invalid', audience: 'tests', insecure_allow_http: true } })
const introspecting: Documents = (around) => {
  const { introspectionUrl, clientId, clientSecret } = around.idp
  const client = { introspection_url: introspectionUrl, client_id: clientId, client_secret: clientSecret }
  return { oidc_config: { ...oidc(around), ...client } }
}

/** Echo is for whom these policies say, the rest for everyone. */
const cedar = (condition: string, more: object = {}) => ({
  policies: [
    'permit(principal, action, resource) unless { resource == Tool::"echo" };',
    `permit(principal, action, resource == Tool::"echo") when { ${condition} };`,
  ],
  ...more,
})
const judged =
  (condition: string, more: object = {}): Documents =>
  (around) => ({ ...guarded(around), authz_config: { version: '1.0', type: 'cedarv1', cedar: cedar(condition, more) } })
const tried =
  (condition: string, more: object = {}): Documents =>
  (around) => {
    const policies = ['permit(principal, action, resource);']
    return { ...guarded(around), authz_config: { type: 'cedarv1', cedar: { policies }, candidate: cedar(condition, more) } }
  }
const NEVER = 'false'
const OF_DEVS = 'principal in THVGroup::"devs"'
const OF_ADMINS = 'principal in THVGroup::"admin"'
const OF_RED = 'principal has claimset_areas && principal.claimset_areas.contains("red")'
const ENTITIES = JSON.stringify([{ uid: { type: 'THVGroup', id: 'devs' }, attrs: {}, parents: [{ type: 'THVGroup', id: 'admin' }] }])

function policyLeaves(prefix: string, of: typeof judged): readonly (readonly [string, Change])[] {
  return [
    [`${prefix}.policies`, to(cedar(NEVER).policies, of('true'))],
    [`${prefix}.entities_json`, to(ENTITIES, of(OF_ADMINS, { group_claim_name: 'groups' }))],
    [`${prefix}.group_claim_name`, to('teams', of(OF_DEVS, { group_claim_name: 'groups' }))],
    [`${prefix}.role_claim_name`, to('roles', of(OF_ADMINS))],
    [`${prefix}.group_entity_type`, to('Team', of(OF_DEVS, { group_claim_name: 'groups' }))],
    [`${prefix}.multi_valued_claims`, to(['areas'], of(OF_RED))],
  ]
}

const audited =
  (more: object = {}): Documents =>
  (around) => ({ ...guarded(around), audit_config: { log_file: around.file('audit.log'), ...more } })
const sent =
  (more: object = {}): Documents =>
  ({ collector }) => ({
    telemetry_config: {
      ...{ endpoint: collector.endpoint, insecure: true, tracing_enabled: true, metrics_enabled: true, sampling_rate: '1' },
      ...more,
    },
  })
const limited =
  (limits: object): Documents =>
  (around) => ({ ...guarded(around), rate_limit_config: limits })
const bucket = { max_tokens: 1, refill_period: '24h' }
const exchanged =
  (more: object = {}): Documents =>
  ({ tokens }) => ({
    token_exchange_config: { token_url: tokens.url, client_id: CLIENT.id, client_secret: CLIENT.secret, audience: 'backend', ...more },
  })
const asClient =
  (more: object = {}): Documents =>
  ({ tokens }) => ({ remote_auth_config: { client_id: CLIENT.id, client_secret: CLIENT.secret, token_url: tokens.url, ...more } })
const injected: Documents = () => ({ header_injection_config: { header_name: 'X-Api-Key', header_value_env: 'API_KEY' } })
const shared =
  (more: object = {}): Documents =>
  ({ redis }) => ({ scaling_config: { session_redis: { address: redis.address, ...more } } })
const watched: Documents = ({ redis }) => ({
  scaling_config: { session_redis: { sentinel: { master_name: 'main', addresses: [redis.address] } } },
})
const sealedRedis: Documents = ({ tlsRedis, file }) => ({
  scaling_config: { session_redis: { address: tlsRedis.address, tls: { enabled: true, ca_path: file('ca.crt') } } },
})
const INTERACTIVE = 'for logins in a browser, which a proxy cannot do'
const OWN_SERVER = 'needs an authorization server in the runner'

const CHANGES: readonly (readonly [string, Change])[] = [
  ['oidc_config.issuer', toPart(({ otherIdp }) => otherIdp.issuer, guarded)],
  ['oidc_config.this_cluster', to(true, guarded, 'takes the place of issuer')],
  ['oidc_config.audience', to('others', guarded)],
  ['oidc_config.required_subject', to('bob*', guarded)],
  ['oidc_config.jwks_url', toPart(({ idp }) => `${idp.issuer}/nowhere`, guarded)],
  [
    'oidc_config.introspection_url',
    toPart(
      ({ idp }) => idp.introspectionUrl,
      (around) => withLeaf(introspecting(around), 'oidc_config.introspection_url', undefined),
    ),
  ],
  ['oidc_config.client_id', to('another-client', introspecting)],
  ['oidc_config.client_secret', to('another-secret', introspecting)],
  [
    'oidc_config.ca_cert_path',
    toPart(
      ({ file }) => file('ca.crt'),
      (around) => ({ oidc_config: byTls(around) }),
    ),
  ],
  [
    'oidc_config.auth_token_file',
    toPart(
      ({ file }) => file('bearer'),
      (around) => ({ oidc_config: byTls(around, { ca_cert_path: around.file('ca.crt') }) }),
    ),
  ],
  ['oidc_config.allow_private_ip', to(false, guarded)],
  ['oidc_config.jwks_allow_private_ip', to(false, (around) => ({ oidc_config: byTls(around, { ca_cert_path: around.file('ca.crt') }) }))],
  ['oidc_config.insecure_allow_http', to(false, overHttp)],
  ['oidc_config.resource_url', to('https://mcp.example.com/x', guarded)],
  ['oidc_config.scopes', to(['mcp'], guarded)],
  ['oidc_config.forward_token', to(true, guarded)],
  [
    'thv_ca_bundle',
    toPart(
      ({ file }) => file('ca.crt'),
      (around) => ({ oidc_config: byTls(around) }),
    ),
  ],
  [
    'jwks_auth_token_file',
    toPart(
      ({ file }) => file('bearer'),
      (around) => ({ oidc_config: byTls(around, { ca_cert_path: around.file('ca.crt') }) }),
    ),
  ],

  ['authz_config.version', to('9.9', judged('true'), 'there is one version')],
  ['authz_config.type', to('other', judged('true'), 'there is one type that is built')],
  ...policyLeaves('authz_config.cedar', judged),
  ['authz_config.cedar.primary_upstream_provider', to('github', judged('true'), OWN_SERVER)],
  ['authz_primary_upstream_provider', to('github', judged('true'), OWN_SERVER)],
  ...policyLeaves('authz_config.candidate', tried),
  ['authz_config.candidate.primary_upstream_provider', to('github', tried('true'))],
  [
    'authz_config_path',
    toPart(
      ({ file }) => file('forbid.json'),
      (around) => ({ ...guarded(around), authz_config_path: around.file('permit.json') }),
    ),
  ],

  ['audit_config.enabled', to(false, audited())],
  ['audit_config.component', to('another', audited())],
  ['audit_config.event_types', to(['mcp_tool_call'], audited())],
  ['audit_config.exclude_event_types', to(['mcp_tool_call'], audited())],
  ['audit_config.include_request_data', to(true, audited())],
  ['audit_config.include_response_data', to(true, audited())],
  ['audit_config.detect_application_errors', to(false, audited())],
  ['audit_config.max_data_size', to(10, audited({ include_request_data: true }))],
  ['audit_config.max_delegation_depth', to(1, audited())],
  ['audit_config.log_file', toPart(({ file }) => file('audit-other.log'), audited())],
  ['audit_config.max_file_size', to(1024, audited())],
  ['audit_config.max_files', to(2, audited({ max_file_size: 1024 }))],
  ['audit_config.otlp', to(true, (around) => ({ ...audited()(around), ...sent()(around) }))],
  [
    'audit_config_path',
    toPart(
      ({ file }) => file('config-b.json'),
      (around) => ({ audit_config_path: around.file('config-a.json') }),
    ),
  ],
  ['trust_proxy_headers', to(true, audited())],
  ['trusted_proxies', to(['10.0.0.0/8'], (around) => ({ ...audited()(around), trust_proxy_headers: true }))],
  ['allowed_origins', to(['https://app.example.com'], guarded)],

  ['telemetry_config.endpoint', toPart(({ collector }) => `${collector.endpoint}/elsewhere`, sent())],
  ['telemetry_config.service_name', to('another', sent())],
  ['telemetry_config.service_version', to('9.9.9', sent())],
  ['telemetry_config.tracing_enabled', to(false, sent())],
  ['telemetry_config.metrics_enabled', to(false, sent())],
  ['telemetry_config.sampling_rate', to('0', sent())],
  ['telemetry_config.headers', to({ 'X-Team': 'a' }, sent())],
  ['telemetry_config.sensitive_headers', to(['X-Other'], sent({ sensitive_headers: ['X-Api-Key'] }))],
  ['telemetry_config.insecure', to(false, sent())],
  ['telemetry_config.enable_prometheus_metrics_path', to(true, sent())],
  ['telemetry_config.metrics_on_transport_port', to(false, sent({ enable_prometheus_metrics_path: true }))],
  ['telemetry_config.environment_variables', to(['ZONE', 'TEAM'], sent({ environment_variables: ['ZONE'] }))],
  ['telemetry_config.custom_attributes', to({ zone: 'b' }, sent({ custom_attributes: { zone: 'a' } }))],
  ['telemetry_config.use_legacy_attributes', to(false, sent())],
  [
    'telemetry_config.ca_cert_path',
    toPart(
      ({ file }) => file('ca.crt'),
      ({ tls }) => sent({ endpoint: new URL(tls.url).host, insecure: false })({ collector: { endpoint: '' } } as Surroundings),
    ),
  ],

  ['rate_limit_config.shared.max_tokens', to(2, limited({ shared: bucket }))],
  ['rate_limit_config.shared.refill_period', to('1000h', limited({ shared: bucket }))],
  ['rate_limit_config.per_user.max_tokens', to(2, limited({ per_user: bucket }))],
  ['rate_limit_config.per_user.refill_period', to('1000h', limited({ per_user: bucket }))],
  ['rate_limit_config.tools[].name', to('fail', limited({ tools: [{ name: 'echo', shared: bucket }] }))],
  ['rate_limit_config.tools[].shared.max_tokens', to(2, limited({ tools: [{ name: 'echo', shared: bucket }] }))],
  ['rate_limit_config.tools[].shared.refill_period', to('1000h', limited({ tools: [{ name: 'echo', shared: bucket }] }))],
  ['rate_limit_config.tools[].per_user.max_tokens', to(2, limited({ tools: [{ name: 'echo', per_user: bucket }] }))],
  ['rate_limit_config.tools[].per_user.refill_period', to('1000h', limited({ tools: [{ name: 'echo', per_user: bucket }] }))],
  ['rate_limit_config.methods', to(['tools/list'], limited({ shared: bucket }))],
  ['rate_limit_namespace', to('team', (around) => ({ ...limited({ shared: bucket })(around), ...shared()(around) }))],

  ['tools_filter', to(['report_request'], () => ({}))],
  ['tools_override.NAME.name', to('renamed', () => ({ tools_override: { echo: { description: 'x' } } }))],
  ['tools_override.NAME.description', to('another', () => ({ tools_override: { echo: { description: 'x' } } }))],
  ['tools_override.NAME.annotations', to({ title: 'Echo!' }, () => ({ tools_override: { echo: { description: 'x' } } }))],

  ['token_exchange_config.token_url', toPart(({ tokens }) => `${tokens.url}&b=1`, exchanged())],
  ['token_exchange_config.client_id', to('another', exchanged())],
  ['token_exchange_config.client_secret', to('another', exchanged())],
  ['token_exchange_config.audience', to('another', exchanged())],
  ['token_exchange_config.scopes', to(['a', 'b'], exchanged())],
  ['token_exchange_config.subject_token_type', to('urn:ietf:params:oauth:token-type:jwt', exchanged())],
  ['token_exchange_config.subject_provider_name', to('github', exchanged(), OWN_SERVER)],
  ['token_exchange_config.header_strategy', to('custom', exchanged({ external_token_header_name: 'X-Token' }))],
  [
    'token_exchange_config.external_token_header_name',
    to('X-Other', exchanged({ header_strategy: 'custom', external_token_header_name: 'X-Token' })),
  ],
  ['header_injection_config.header_name', to('X-Other', injected)],
  ['header_injection_config.header_value_env', to('OTHER_KEY', injected)],
  ['header_forward.add_plaintext_headers', to({ 'X-Team': 'b' }, () => ({ header_forward: { add_plaintext_headers: { 'X-Team': 'a' } } }))],
  [
    'header_forward.add_headers_from_secret',
    to({ 'X-Team': 'second' }, () => ({ header_forward: { add_headers_from_secret: { 'X-Team': 'first' } } })),
  ],
  ['remote_auth_config.client_id', to('another', asClient())],
  ['remote_auth_config.client_secret', to('another', asClient())],
  [
    'remote_auth_config.client_secret_file',
    toPart(
      ({ file }) => file('bearer'),
      (around) => withLeaf(asClient({ client_secret_file: around.file('secret') })(around), 'remote_auth_config.client_secret', undefined),
    ),
  ],
  ['remote_auth_config.scopes', to(['a'], asClient())],
  [
    'remote_auth_config.issuer',
    toPart(
      ({ otherIdp }) => otherIdp.issuer,
      ({ idp }) => ({
        remote_auth_config: { client_id: idp.clientId, client_secret: idp.clientSecret, issuer: idp.issuer, resource: 'urn:thv:tests' },
      }),
    ),
  ],
  ['remote_auth_config.token_url', toPart(({ tokens }) => `${tokens.url}&b=1`, asClient())],
  ['remote_auth_config.resource', to('urn:other', asClient())],
  ['remote_auth_config.bearer_token', to('b', () => ({ remote_auth_config: { bearer_token: 'a' } }))],
  [
    'remote_auth_config.bearer_token_file',
    toPart(
      ({ file }) => file('secret'),
      ({ file }) => ({ remote_auth_config: { bearer_token_file: file('bearer') } }),
    ),
  ],
  ['remote_auth_config.authorize_url', to('https://idp.example.com/auth', asClient(), INTERACTIVE)],
  ['remote_auth_config.use_pkce', to(true, asClient(), INTERACTIVE)],
  ['remote_auth_config.oauth_params', to({ a: 'b' }, asClient(), INTERACTIVE)],
  ['remote_auth_config.scope_param_name', to('scp', asClient(), INTERACTIVE)],

  [`${REDIS}address`, toPart(({ tlsRedis }) => tlsRedis.address, shared())],
  [`${REDIS}sentinel.master_name`, to('another', watched)],
  [`${REDIS}sentinel.addresses`, toPart(({ tlsRedis }) => [tlsRedis.address], watched)],
  [`${REDIS}db`, to(3, shared())],
  [`${REDIS}key_prefix`, to('team', shared())],
  [`${REDIS}username`, to('runner', shared())],
  [`${REDIS}tls.enabled`, to(true, shared({ tls: { enabled: false } }))],
  [`${REDIS}tls.ca_path`, to(undefined, sealedRedis)],

  [
    'middleware_configs[].type',
    to('audit', () => ({ middleware_configs: [{ type: 'recovery' }] }), 'an entry must say the same as the fields'),
  ],
  [
    'middleware_configs[].parameters',
    to(
      { filter_tools: ['echo'] },
      () => ({
        tools_filter: ['report_request'],
        middleware_configs: [{ type: 'tool-filter', parameters: { filter_tools: ['report_request'] } }],
      }),
      'an entry must say the same as the fields',
    ),
  ],
  ['additional_middleware_configs[].type', to('audit', () => ({ additional_middleware_configs: [{ type: 'recovery' }] }), 'as above')],
  [
    'additional_middleware_configs[].parameters',
    to(
      { filter_tools: ['echo'] },
      () => ({
        tools_filter: ['report_request'],
        additional_middleware_configs: [{ type: 'tool-filter', parameters: { filter_tools: ['report_request'] } }],
      }),
      'as above',
    ),
  ],
]

/** Seen in other ways, by the tests below. */
const SEEN_OTHERWISE = [
  'telemetry_config.prometheus_port',
  ...['provider_name', 'header_strategy', 'custom_header_name'].map((name) => `upstream_swap_config.${name}`),
]

let around: Surroundings
const observed = new Map<string, Promise<Observation>>()
beforeAll(async () => {
  around = await openSurroundings()
  const { file } = around
  mkdirSync(dirname(file('x')), { recursive: true })
  writeFileSync(file('bearer'), 'of-a-file')
  writeFileSync(file('secret'), CLIENT.secret)
  for (const [name, policy] of [
    ['permit.json', 'permit(principal, action, resource);'],
    ['forbid.json', 'forbid(principal, action, resource);'],
  ] as const)
    writeFileSync(file(name), JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies: [policy] } }))
  for (const name of ['a', 'b'])
    writeFileSync(file(`config-${name}.json`), JSON.stringify({ log_file: file('audit.log'), component: name }))
})
afterAll(() => around?.[Symbol.asyncDispose]())

const once = async (document: object): Promise<Observation> => {
  const key = JSON.stringify(document)
  const known = observed.get(key) ?? around.observe(document)
  observed.set(key, known)
  return await known
}

describe('the walk over a RunConfig', () => {
  it('knows every member, and which of them the pipeline reads', () => {
    expect([...OF_THE_PIPELINE, ...NOT_BUILT, ...OTHERS].sort()).toEqual([...RUN_CONFIG_MEMBERS].sort())
    const asking = MIDDLEWARE.filter(({ part }) => part === 'pipeline').flatMap(({ fields }) => fields.map((field) => field.split('.')[0]))
    expect([...new Set(asking)].filter((member = '') => ![...OF_THE_PIPELINE, ...NOT_BUILT].includes(member))).toEqual([])
  })

  it('changes every leaf of them', () => {
    const redis = leavesBelow(['scaling_config']).filter((leaf) => leaf.startsWith(REDIS))
    expect(redis.length).toBeGreaterThan(5)
    expect([...CHANGES.map(([leaf]) => leaf), ...SEEN_OTHERWISE].sort()).toEqual([...leavesBelow(OF_THE_PIPELINE), ...redis].sort())
  })
})

describe('a change of this leaf alone is seen', () => {
  it.each(CHANGES)('%s', async (leaf, { document, value, onlyRefused }) => {
    const before = document(around)
    const changed = withLeaf(before, leaf, value(around))
    expect(JSON.stringify(changed)).not.toBe(JSON.stringify(before))
    const [was, is] = [await once(before), await around.observe(changed)]
    expect([was.works, is.works]).toEqual([true, onlyRefused === undefined])
    expect(is.seen).not.toBe(was.seen)
  })

  it('telemetry_config.prometheus_port', async () => {
    const port = await freePort()
    const is = await around.observe({ telemetry_config: { prometheus_port: port } })
    expect(is.seen).toContain('["port",true]')
  })

  it.each([
    [{}, { provider: 'first', header: 'authorization' }],
    [{ provider_name: 'second' }, { provider: 'second', header: 'authorization' }],
    [
      { header_strategy: 'custom', custom_header_name: 'X-A' },
      { provider: 'first', header: 'x-a' },
    ],
    [
      { header_strategy: 'custom', custom_header_name: 'X-B' },
      { provider: 'first', header: 'x-b' },
    ],
    [
      { header_strategy: 'replace', custom_header_name: 'X-B' },
      { provider: 'first', header: 'authorization' },
    ],
  ])('upstream_swap_config %j', async (swap, wanted) => {
    expect(await upstreamOf(swap)).toEqual(wanted)
  })

  it.each(NOT_BUILT)('%s stops the start', (member) => {
    const value =
      member === 'isolate_network' ? true : member === 'aws_sts_config' ? { region: 'eu-1' } : [{ name: 'a', url: 'https://a.b' }]
    expect(unsupportedFields(configOf({ [member]: value })).map(({ field }) => field)).toEqual([member])
  })
})

it('the same document shows the same', async () => {
  expect(observed.size).toBeGreaterThan(20)
  // Those with policies take longer, and one of them is enough.
  const [judged, others] = [[...observed.keys()].filter(hasPolicies), [...observed.keys()].filter((key) => !hasPolicies(key))]
  for (const document of [...others, judged[0] ?? '']) expect([document, await isRepeatable(document)]).toEqual([document, true])
})

/** Two of a few are the same: a request may fail on a busy machine, but an id that is chance would be another one each time. */
async function isRepeatable(document: string): Promise<boolean> {
  const seen = new Set([(await observed.get(document))?.seen])
  for (let left = 4; left > 0; left--) {
    const { seen: next } = await around.observe(JSON.parse(document) as object)
    if (seen.has(next)) return true
    seen.add(next)
  }
  return false
}

function hasPolicies(document: string): boolean {
  return document.includes('authz_config')
}

function configOf(document: object): RunConfig {
  const read = readRunConfig({ name: 'x', transport: 'streamable-http', remote_url: 'https://mcp.example.com', ...document })
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  return read.config
}

/** Which provider the vault is asked for, and the header that its token goes in. */
async function upstreamOf(swap: object): Promise<{ provider: string | undefined; header: string | undefined }> {
  const issuer = 'https://mcp.example.com'
  const upstreams = ['first', 'second'].map((name) => ({ name }))
  const config = {
    ...configOf({}),
    embedded_auth_server_config: { issuer, upstreams },
    upstream_swap_config: { header_strategy: 'replace', ...swap },
  }
  let provider: string | undefined
  const use = (asked: { provider: string }) => {
    provider = asked.provider
    return { kind: 'usable', accessToken: 'x' }
  }
  const outbound = createOutbound()
  const deps = { env: {}, log: new CollectingLog(), metrics: createMetrics(), clock: systemClock, outbound }
  const ownIssuer = { issuer, keys: () => ({ keys: [] }) }
  const upstreamTokens = { use, rejected: () => {} } as unknown as UpstreamTokens
  const pipeline = pipelineFromRunConfig(config as unknown as RunConfig, { ...deps, upstreamTokens, ownIssuer: ownIssuer as never })
  const identity = { subject: 'ada', issuer, provider: 'own', claims: { scope: 'openid' } }
  const hop = {
    ...{ caller: { principal: 'p', identity, token: 't' }, backend: { name: 'b', transport: 'http' }, trace: undefined },
    ...{ exchange: { path: '/mcp', headers: { host: 'mcp.example.com' } }, outgoing: undefined, credentials: undefined },
  }
  await pipeline.prepare(hop as never)
  await outbound.close()
  return { provider, header: Object.keys(hop.credentials ?? {})[0] }
}
