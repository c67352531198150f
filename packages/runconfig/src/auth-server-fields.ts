import type {
  AclUserConfig,
  AuthRedisConfig,
  AuthRedisTls,
  AuthSentinelConfig,
  AuthServerConfig,
  AuthStorageConfig,
  CimdConfig,
  DelegateClientConfig,
  JwtBearerGrantConfig,
  SigningKeyConfig,
  SubjectBindingConfig,
  TokenLifespans,
  TrustedIssuerConfig,
} from './auth-server-config.ts'
import type { FieldTable } from './field.ts'
import { STRICT, UPSTREAM_FIELDS } from './upstream-fields.ts'
import { durationText, flag, httpUrl, integer, listOf, objectOf, oneOf, text } from './value-readers.ts'

const scope = text({ like: { test: (value) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value), words: 'a scope without spaces and quotes' } })
const issuer = text({
  like: {
    test: (value) => /^https?:\/\/[^\s?#@]+[^/\s?#@]$/.test(value) && URL.canParse(value),
    words: 'an http or https URL without query, fragment and trailing slash',
  },
})

const SIGNING_KEY_FIELDS: FieldTable<SigningKeyConfig> = {
  key_dir: { reader: text(), required: true, doc: 'Folder of the keys.' },
  signing_key_file: { reader: text(), required: true, doc: 'PEM file of the key that signs.' },
  fallback_key_files: { reader: listOf(text()), default: [], doc: 'PEM files of keys that are published and verify, and do not sign.' },
}

const LIFESPAN_FIELDS: FieldTable<TokenLifespans> = {
  access_token_lifespan: { reader: durationText('1h'), default: '1h', doc: 'Of access tokens: 1m to 24h.' },
  refresh_token_lifespan: { reader: durationText('168h'), default: '168h', doc: 'Of refresh tokens: 1h to 720h.' },
  auth_code_lifespan: { reader: durationText('10m'), default: '10m', doc: 'Of authorization codes: 30s to 10m.' },
}
const LIFESPANS: TokenLifespans = { access_token_lifespan: '1h', refresh_token_lifespan: '168h', auth_code_lifespan: '10m' }

const SENTINEL_FIELDS: FieldTable<AuthSentinelConfig> = {
  master_name: { reader: text(), required: true, doc: 'Name of the primary.' },
  sentinel_addrs: { reader: listOf(text()), required: true, doc: 'Addresses of the Sentinels, as `host:port`.' },
  db: { reader: integer({ min: 0, max: 15 }), default: 0, doc: 'Number of the database.' },
}

const ACL_USER_FIELDS: FieldTable<AclUserConfig> = {
  username_env_var: { reader: text(), doc: 'Variable with the name of the ACL user.' },
  password_env_var: { reader: text(), doc: 'Variable with its password.' },
  username_file: { reader: text(), doc: 'File with the name, instead of the variable. Read again when it changes.' },
  password_file: { reader: text(), doc: 'File with the password, instead of the variable. Read again when it changes.' },
}

const TLS_FIELDS: FieldTable<AuthRedisTls> = {
  ca_cert_file: { reader: text(), doc: 'PEM file of the certificates to trust. Read again when it changes.' },
  insecure_skip_verify: { reader: flag, default: false, doc: 'Whether to skip certificate verification. For tests only.' },
}

const REDIS_FIELDS: FieldTable<AuthRedisConfig> = {
  addr: { reader: text(), doc: 'Address, as `host:port`.' },
  cluster_mode: { reader: flag, default: false, doc: 'Whether the address is that of a Redis Cluster.' },
  sentinel_config: { reader: objectOf(SENTINEL_FIELDS, STRICT), doc: 'Instead of `addr`: Sentinels that know the primary.' },
  auth_type: { reader: oneOf(['aclUser']), default: 'aclUser', doc: 'How the server authenticates at Redis.' },
  acl_user_config: { reader: objectOf(ACL_USER_FIELDS, STRICT), doc: 'The ACL user and its password, from variables or files.' },
  key_prefix: { reader: text(), doc: 'Prefix of all keys.' },
  dial_timeout: { reader: durationText('5s'), default: '5s', doc: 'Time limit of a connection.' },
  read_timeout: { reader: durationText('3s'), default: '3s', doc: 'Time limit of an answer.' },
  write_timeout: { reader: durationText('3s'), default: '3s', doc: 'Time limit of a request.' },
  tls: { reader: objectOf(TLS_FIELDS, STRICT), doc: 'TLS to Redis.' },
  sentinel_tls: { reader: objectOf(TLS_FIELDS, STRICT), doc: 'TLS to the Sentinels.' },
}

const STORAGE_FIELDS: FieldTable<AuthStorageConfig> = {
  type: { reader: oneOf(['memory', 'redis']), default: 'memory', doc: 'Where logins and refresh tokens lie.' },
  redis_config: { reader: objectOf(REDIS_FIELDS, STRICT), doc: 'For `redis`.' },
}

const CIMD_FIELDS: FieldTable<CimdConfig> = {
  enabled: { reader: flag, default: false, doc: 'Whether the URL of a metadata document is accepted as a client id.' },
  cache_max_size: { reader: integer({ min: 1, max: 100_000 }), default: 256, doc: 'Documents to keep.' },
  cache_fallback_ttl: { reader: durationText('5m'), default: '5m', doc: 'How long to keep one that does not say.' },
}
const CIMD: CimdConfig = { enabled: false, cache_max_size: 256, cache_fallback_ttl: '5m' }

const DELEGATE_FIELDS: FieldTable<DelegateClientConfig> = {
  client_id: { reader: text(), required: true, doc: 'Id of the client.' },
  client_secret_file: { reader: text(), doc: 'File with its secret of at least 32 characters.' },
  client_secret_env_var: { reader: text(), doc: 'Variable with its secret.' },
  scopes: { reader: listOf(scope), required: true, doc: 'Scopes that it may request.' },
  audiences: { reader: listOf(text()), required: true, doc: 'Audiences that it may request.' },
}

const BINDING_FIELDS: FieldTable<SubjectBindingConfig> = {
  subject: { reader: text(), required: true, doc: 'Subject of assertions.' },
  allowed_resources: { reader: listOf(text()), required: true, doc: 'Resources that it may ask for.' },
}

const JWT_BEARER_FIELDS: FieldTable<JwtBearerGrantConfig> = {
  max_assertion_age: { reader: durationText('5m'), required: true, doc: 'Maximum age of an assertion.' },
  accepted_audiences: { reader: listOf(text()), default: [], doc: 'Audiences that an assertion may name; the issuer if there are none.' },
  subject_bindings: { reader: listOf(objectOf(BINDING_FIELDS, STRICT)), required: true, doc: 'Subjects and what each may ask for.' },
}

const TRUSTED_ISSUER_FIELDS: FieldTable<TrustedIssuerConfig> = {
  issuer_url: { reader: text(), required: true, doc: 'The `iss` of its tokens.' },
  jwks_url: { reader: httpUrl(), doc: 'Where its keys are; discovered if absent.' },
  expected_audience: { reader: text(), doc: 'The `aud` that its tokens must have.' },
  allowed_delegate_clients: { reader: listOf(text()), default: [], doc: 'Clients that may exchange its tokens; `*` alone for all.' },
  allowed_actors: { reader: listOf(text()), default: [], doc: 'Accepted values of `actor_claim`.' },
  actor_claim: { reader: text(), default: 'azp', doc: 'Claim that names the actor.' },
  actor_matcher: { reader: text(), doc: 'CEL expression over the claims that allows the actor.' },
  allow_may_act: { reader: flag, default: false, doc: 'Whether a `may_act` claim counts as consent.' },
  allow_private_ips: { reader: flag, default: false, doc: 'Whether `jwks_url` may have a private address.' },
  insecure_allow_http: { reader: flag, default: false, doc: 'Whether the URLs may be plain HTTP. For tests only.' },
  jwt_bearer_grant: { reader: objectOf(JWT_BEARER_FIELDS, STRICT), doc: 'Accepts assertions of this issuer as a grant (RFC 7523).' },
}

export const AUTH_SERVER_FIELDS: FieldTable<AuthServerConfig> = {
  schema_version: { reader: oneOf(['v0.1.0']), default: 'v0.1.0', doc: 'Version of this part.' },
  issuer: { reader: issuer, required: true, doc: 'Issuer of the tokens, as clients reach it.' },
  authorization_endpoint_base_url: { reader: issuer, doc: 'Base URL of the login pages, if it is not the issuer.' },
  signing_key_config: { reader: objectOf(SIGNING_KEY_FIELDS, STRICT), doc: 'Keys. Without them one is made at every start.' },
  hmac_secret_files: {
    reader: listOf(text()),
    default: [],
    doc: 'Files with secrets of at least 32 bytes that seal client ids, cookies and stored tokens; the first is current. Without them one is made at every start.',
  },
  token_lifespans: { reader: objectOf(LIFESPAN_FIELDS, STRICT), default: LIFESPANS, doc: 'Lifetimes of tokens.' },
  delegation_token_lifespan: { reader: durationText('15m'), default: '15m', doc: 'Longest lifetime of an exchanged token: up to 24h.' },
  upstreams: { reader: listOf(objectOf(UPSTREAM_FIELDS, STRICT)), required: true, doc: 'Providers where users log in, in order.' },
  scopes_supported: {
    reader: listOf(scope),
    default: ['openid', 'profile', 'email', 'offline_access'],
    doc: 'Scopes that clients may request.',
  },
  baseline_client_scopes: { reader: listOf(scope), default: [], doc: 'Scopes that every registered client gets.' },
  allowed_audiences: { reader: listOf(httpUrl()), required: true, doc: 'Resources that tokens may be made for.' },
  storage: { reader: objectOf(STORAGE_FIELDS, STRICT), default: { type: 'memory' }, doc: 'Where logins and refresh tokens lie.' },
  disable_upstream_token_injection: {
    reader: flag,
    default: false,
    doc: 'Whether the server behind the proxy gets no token at all, instead of the token of the upstream provider.',
  },
  insecure_allow_http: { reader: flag, default: false, doc: 'Whether the issuer may be plain HTTP beyond localhost. For tests only.' },
  cimd: { reader: objectOf(CIMD_FIELDS, STRICT), default: CIMD, doc: 'Clients whose id is the URL of their metadata document.' },
  allow_confidential_client_registration: { reader: flag, default: false, doc: 'Whether clients may register with a secret.' },
  insecure_allow_confidential_over_loopback_http: {
    reader: flag,
    default: false,
    doc: 'Whether clients with a secret may use plain HTTP on localhost. For tests only.',
  },
  force_confidential_redirect_uris: {
    reader: listOf(httpUrl()),
    default: [],
    doc: 'Clients with one of these redirect URIs must have a secret.',
  },
  delegate_clients: { reader: listOf(objectOf(DELEGATE_FIELDS, STRICT)), default: [], doc: 'Fixed clients that may exchange tokens.' },
  trusted_issuers: {
    reader: listOf(objectOf(TRUSTED_ISSUER_FIELDS, STRICT)),
    default: [],
    doc: 'Issuers whose tokens may be exchanged here.',
  },
}

export const authServerReader = objectOf(AUTH_SERVER_FIELDS, STRICT)
