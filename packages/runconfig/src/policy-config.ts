import type { FieldTable } from './field.ts'
import { anyObject, durationText, flag, httpUrl, integer, listOf, mapOf, objectOf, oneOf, text } from './value-readers.ts'

/** The parts of a RunConfig that ask for identity and policy. Secrets may stand in some of them: never log one of these objects. */
export interface OidcConfig {
  readonly issuer?: string
  readonly this_cluster: boolean
  readonly audience?: string
  readonly required_subject?: string
  readonly jwks_url?: string
  readonly introspection_url?: string
  readonly client_id?: string
  readonly client_secret?: string
  readonly ca_cert_path?: string
  readonly auth_token_file?: string
  readonly allow_private_ip: boolean
  readonly jwks_allow_private_ip: boolean
  readonly insecure_allow_http: boolean
  readonly resource_url?: string
  readonly scopes: readonly string[]
  readonly forward_token: boolean
}

export const OIDC_FIELDS: FieldTable<OidcConfig> = {
  issuer: { reader: text(), doc: 'Issuer that tokens must name, and where its metadata is found.' },
  this_cluster: {
    reader: flag,
    default: false,
    doc: 'Instead of `issuer`: issuer and keys are those of the API server of the cluster that the proxy runs in.',
  },
  audience: {
    reader: text(),
    doc: 'Audience that tokens must carry. Without it `resource_url`, and without both any audience is accepted.',
  },
  required_subject: {
    reader: text({
      like: { test: (value) => /^[^*]+\*?$/.test(value), words: 'a subject, or the beginning of subjects and `*`' },
    }),
    doc: 'Subject that tokens must have. With `*` at its end: what it must begin with.',
  },
  jwks_url: { reader: httpUrl(), doc: 'Where the keys are, when not found through the issuer.' },
  introspection_url: { reader: httpUrl(), doc: 'Where opaque tokens are looked up.' },
  client_id: { reader: text(), doc: 'Who asks at the introspection endpoint.' },
  client_secret: { reader: text(), doc: 'Its secret. Better given by the variable `TOOLHIVE_OIDC_CLIENT_SECRET`.' },
  ca_cert_path: { reader: text(), doc: 'File with further certificate authorities for calls to the issuer.' },
  auth_token_file: { reader: text(), doc: 'File with the bearer token for calls to the issuer.' },
  allow_private_ip: { reader: flag, default: false, doc: 'Whether the issuer may have a private address.' },
  jwks_allow_private_ip: {
    reader: flag,
    default: false,
    doc: 'Whether the keys may be at a private address, whatever holds for the rest.',
  },
  insecure_allow_http: { reader: flag, default: false, doc: 'Whether the issuer may be called without TLS.' },
  resource_url: {
    reader: httpUrl(),
    doc: 'Our own address in the protected resource metadata. Without it, the address that each request came to.',
  },
  scopes: { reader: listOf(text()), default: [], doc: 'Scopes that the metadata and the challenges list.' },
  forward_token: {
    reader: flag,
    default: false,
    doc: 'Whether the server behind the proxy gets the `Authorization` header of the client, which it does not otherwise.',
  },
}

export interface AuthzConfig {
  readonly version: string
  readonly type: string
  readonly cedar?: CedarConfig
  readonly candidate?: CedarConfig
}

export interface CedarConfig {
  readonly policies: readonly string[]
  readonly entities_json: string
  readonly group_claim_name?: string
  readonly role_claim_name?: string
  readonly group_entity_type?: string
  readonly primary_upstream_provider?: string
  readonly multi_valued_claims?: readonly string[]
}

const CEDAR_FIELDS: FieldTable<CedarConfig> = {
  policies: { reader: listOf(text()), required: true, doc: 'Cedar policies.' },
  entities_json: { reader: text(), default: '[]', doc: 'Cedar entities, as JSON inside a text.' },
  group_claim_name: { reader: text(), doc: 'Claim that holds the groups of the caller.' },
  role_claim_name: { reader: text(), doc: 'Claim that holds the roles of the caller.' },
  group_entity_type: { reader: text(), doc: 'Cedar type that groups become.' },
  primary_upstream_provider: { reader: text(), doc: 'Provider whose token the claims are taken from.' },
  multi_valued_claims: { reader: listOf(text()), doc: 'Claims that are also given as a set, `claimset_NAME`, of their words.' },
}

export const AUTHZ_FIELDS: FieldTable<AuthzConfig> = {
  version: { reader: text(), default: '1.0', doc: 'Version of this part.' },
  type: { reader: text(), required: true, doc: 'Kind of policy engine, such as `cedarv1`.' },
  cedar: { reader: objectOf(CEDAR_FIELDS), doc: 'For `cedarv1`.' },
  candidate: {
    reader: objectOf(CEDAR_FIELDS),
    doc: 'Policies that are evaluated beside those of `cedar` and never enforced. Audit events and a metric tell where they decide otherwise.',
  },
}

export interface RateLimitConfig {
  readonly shared?: RateLimitBucket
  readonly per_user?: RateLimitBucket
  readonly tools: readonly ToolRateLimit[]
  readonly methods: readonly MeteredMethod[]
}

/** Methods that limits can meter besides `tools/call`. */
export const METERED_METHODS = [
  'tools/list',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'completion/complete',
] as const
export type MeteredMethod = (typeof METERED_METHODS)[number]

export interface RateLimitBucket {
  readonly max_tokens: number
  readonly refill_period: string
}

export interface ToolRateLimit {
  readonly name: string
  readonly shared?: RateLimitBucket
  readonly per_user?: RateLimitBucket
}

const BUCKET_FIELDS: FieldTable<RateLimitBucket> = {
  max_tokens: { reader: integer({ min: 1 }), required: true, doc: 'Calls that a full bucket allows.' },
  refill_period: { reader: durationText('0s'), required: true, doc: 'Time in which an empty bucket becomes full.' },
}
const bucket = objectOf(BUCKET_FIELDS, { anySpelling: true })

const TOOL_RATE_LIMIT_FIELDS: FieldTable<ToolRateLimit> = {
  name: { reader: text(), required: true, doc: 'Name of the tool, as clients see it or as the server has it.' },
  shared: { reader: bucket, doc: 'For all callers together.' },
  per_user: { reader: bucket, doc: 'For each caller.' },
}

export const RATE_LIMIT_FIELDS: FieldTable<RateLimitConfig> = {
  shared: { reader: bucket, doc: 'For all callers together.' },
  per_user: { reader: bucket, doc: 'For each caller.' },
  tools: { reader: listOf(objectOf(TOOL_RATE_LIMIT_FIELDS, { anySpelling: true })), default: [], doc: 'Limits of single tools.' },
  methods: {
    reader: listOf(oneOf(METERED_METHODS)),
    default: [],
    doc: 'Methods that `shared` and `perUser` count besides `tools/call`.',
  },
}

export interface TokenExchangeConfig {
  readonly token_url: string
  readonly client_id?: string
  readonly client_secret?: string
  readonly audience?: string
  readonly scopes: readonly string[]
  readonly subject_token_type?: string
  readonly subject_provider_name?: string
  readonly header_strategy: 'replace' | 'custom'
  readonly external_token_header_name?: string
}

export const TOKEN_EXCHANGE_FIELDS: FieldTable<TokenExchangeConfig> = {
  token_url: { reader: httpUrl(), required: true, doc: 'Token endpoint (RFC 8693).' },
  client_id: { reader: text(), doc: 'Who asks there.' },
  client_secret: { reader: text(), doc: 'Its secret. Better given by the variable `TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET`.' },
  audience: { reader: text(), doc: 'Audience of the new token.' },
  scopes: { reader: listOf(text()), default: [], doc: 'Scopes of the new token.' },
  subject_token_type: { reader: text(), doc: 'Type of the token that is exchanged.' },
  subject_provider_name: {
    reader: text(),
    doc: "Upstream provider of the embedded authorization server whose token is exchanged; without it, the caller's own.",
  },
  header_strategy: { reader: oneOf(['replace', 'custom']), default: 'replace', doc: 'Whether the new token replaces `Authorization`.' },
  external_token_header_name: { reader: text(), doc: 'Header of the new token, for `custom`.' },
}

export interface UpstreamSwapConfig {
  readonly provider_name?: string
  readonly header_strategy: 'replace' | 'custom'
  readonly custom_header_name?: string
}

export const UPSTREAM_SWAP_FIELDS: FieldTable<UpstreamSwapConfig> = {
  provider_name: { reader: text(), doc: 'Provider whose token is sent on.' },
  header_strategy: { reader: oneOf(['replace', 'custom']), default: 'replace', doc: 'Whether it replaces `Authorization`.' },
  custom_header_name: { reader: text(), doc: 'Its header, for `custom`.' },
}

export interface HeaderInjectionConfig {
  readonly header_name: string
  readonly header_value_env: string
}

export const HEADER_INJECTION_FIELDS: FieldTable<HeaderInjectionConfig> = {
  header_name: { reader: text(), required: true, doc: 'Header to set on each request to the server.' },
  header_value_env: {
    reader: text(),
    required: true,
    doc: 'Variable that holds its value: the value itself never stands in this document.',
  },
}

export interface AwsStsConfig {
  readonly region: string
  readonly service: string
  readonly fallback_role_arn?: string
  readonly role_mappings: readonly Readonly<Record<string, unknown>>[]
  readonly role_claim: string
  readonly session_duration: number
  readonly session_name_claim: string
  readonly subject_provider_name?: string
}

export const AWS_STS_FIELDS: FieldTable<AwsStsConfig> = {
  region: { reader: text(), required: true, doc: 'AWS region.' },
  service: { reader: text(), default: 'aws-mcp', doc: 'Service that requests are signed for.' },
  fallback_role_arn: { reader: text(), doc: 'Role when no mapping fits.' },
  role_mappings: { reader: listOf(anyObject), default: [], doc: 'Which callers get which role.' },
  role_claim: { reader: text(), default: 'groups', doc: 'Claim that the mappings look at.' },
  session_duration: { reader: integer({ min: 900, max: 43_200 }), default: 3_600, doc: 'Seconds that credentials live.' },
  session_name_claim: { reader: text(), default: 'sub', doc: 'Claim that names the session.' },
  subject_provider_name: {
    reader: text(),
    doc: "Upstream provider of the embedded authorization server whose token is shown to AWS; without it, the caller's own.",
  },
}

export interface RemoteAuthConfig {
  readonly client_id?: string
  readonly client_secret?: string
  readonly client_secret_file?: string
  readonly scopes: readonly string[]
  readonly issuer?: string
  readonly authorize_url?: string
  readonly token_url?: string
  readonly use_pkce: boolean
  readonly resource?: string
  readonly oauth_params: Readonly<Record<string, string>>
  readonly scope_param_name?: string
  readonly bearer_token?: string
  readonly bearer_token_file?: string
}

export const REMOTE_AUTH_FIELDS: FieldTable<RemoteAuthConfig> = {
  client_id: { reader: text(), doc: 'OAuth client: the proxy gets tokens with its own credentials (RFC 6749 §4.4).' },
  client_secret: { reader: text(), doc: 'Its secret, or `NAME,target=client_secret` for the secret of that name.' },
  client_secret_file: { reader: text(), doc: 'File that holds it; read for every token.' },
  scopes: { reader: listOf(text()), default: [], doc: 'Scopes to ask for.' },
  issuer: { reader: text(), doc: 'Issuer whose metadata names the token endpoint.' },
  authorize_url: { reader: httpUrl(), doc: 'Not supported: needs a browser.' },
  token_url: { reader: httpUrl(), doc: 'Token endpoint; wins over `issuer`.' },
  use_pkce: { reader: flag, default: false, doc: 'Not supported: needs a browser.' },
  resource: { reader: text(), doc: 'Resource indicator (RFC 8707).' },
  oauth_params: { reader: mapOf(text({ allowEmpty: true })), default: {}, doc: 'Not supported: needs a browser.' },
  scope_param_name: { reader: text(), doc: 'Not supported: needs a browser.' },
  bearer_token: { reader: text(), doc: 'A token, or `NAME,target=bearer_token` for the secret of that name.' },
  bearer_token_file: { reader: text(), doc: 'File that holds a token; read again when it changes.' },
}

export interface WebhookConfig {
  readonly name: string
  readonly url: string
  /** Go durations; ToolHive (Go) also writes nanoseconds. */
  readonly timeout?: string | number
  readonly failure_policy: 'fail' | 'ignore'
  readonly tls_config?: Readonly<Record<string, unknown>>
  readonly hmac_secret_ref?: string
}

export const WEBHOOK_FIELDS: FieldTable<WebhookConfig> = {
  name: { reader: text(), required: true, doc: 'Name in messages.' },
  url: { reader: httpUrl(), required: true, doc: 'Where it is called.' },
  timeout: { reader: durationOrNanoseconds(), doc: 'A duration, or a number of nanoseconds.' },
  failure_policy: { reader: oneOf(['fail', 'ignore']), default: 'fail', doc: 'What follows when it cannot be asked.' },
  tls_config: { reader: anyObject, doc: 'Certificate authority and client certificate, as file paths.' },
  hmac_secret_ref: { reader: text(), doc: 'File with the key that requests are signed with.' },
}

function durationOrNanoseconds() {
  const duration = durationText('10s')
  const nanoseconds = integer({ min: 0 })
  return {
    expects: `${duration.expects}, or nanoseconds`,
    read: (value: unknown, path: string, findings: Parameters<typeof duration.read>[2]) =>
      typeof value === 'number' ? nanoseconds.read(value, path, findings) : duration.read(value, path, findings),
  }
}
