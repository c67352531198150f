/** `embedded_auth_server_config`: secrets only as names of variables and files. */
export interface AuthServerConfig {
  readonly schema_version: string
  readonly issuer: string
  readonly authorization_endpoint_base_url?: string
  readonly signing_key_config?: SigningKeyConfig
  readonly hmac_secret_files: readonly string[]
  readonly token_lifespans: TokenLifespans
  readonly delegation_token_lifespan: string
  readonly upstreams: readonly UpstreamConfig[]
  readonly scopes_supported: readonly string[]
  readonly baseline_client_scopes: readonly string[]
  readonly allowed_audiences: readonly string[]
  readonly storage: AuthStorageConfig
  readonly disable_upstream_token_injection: boolean
  readonly insecure_allow_http: boolean
  readonly cimd: CimdConfig
  readonly allow_confidential_client_registration: boolean
  readonly insecure_allow_confidential_over_loopback_http: boolean
  readonly force_confidential_redirect_uris: readonly string[]
  readonly delegate_clients: readonly DelegateClientConfig[]
  readonly trusted_issuers: readonly TrustedIssuerConfig[]
}

export interface SigningKeyConfig {
  readonly key_dir: string
  readonly signing_key_file: string
  readonly fallback_key_files: readonly string[]
}

export interface TokenLifespans {
  readonly access_token_lifespan: string
  readonly refresh_token_lifespan: string
  readonly auth_code_lifespan: string
}

export interface UpstreamConfig {
  readonly name: string
  readonly type: 'oidc' | 'oauth2'
  readonly login_policy: 'required' | 'onDemand'
  readonly oidc_config?: OidcUpstreamConfig
  readonly oauth2_config?: OAuth2UpstreamConfig
}

/** Members that both types have. */
export interface UpstreamClientConfig {
  readonly client_secret_file?: string
  readonly client_secret_env_var?: string
  readonly redirect_uri?: string
  readonly scopes: readonly string[]
  readonly additional_authorization_params: Readonly<Record<string, string>>
  readonly allow_private_ips: boolean
  readonly insecure_allow_http: boolean
}

export interface OidcUpstreamConfig extends UpstreamClientConfig {
  readonly issuer_url: string
  readonly client_id: string
  readonly subject_claim?: string
  readonly userinfo_override?: UserInfoConfig
}

export interface OAuth2UpstreamConfig extends UpstreamClientConfig {
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  readonly client_id?: string
  readonly userinfo?: UserInfoConfig
  readonly token_response_mapping?: TokenResponseMapping
  readonly identity_from_token?: IdentityPaths
  readonly dcr_config?: UpstreamRegistrationConfig
}

export interface UserInfoConfig {
  readonly endpoint_url: string
  readonly http_method: 'GET' | 'POST'
  readonly additional_headers: Readonly<Record<string, string>>
  readonly field_mapping: UserInfoFields
}

export interface UserInfoFields {
  readonly subject_fields: readonly string[]
  readonly name_fields: readonly string[]
  readonly email_fields: readonly string[]
}

export interface TokenResponseMapping {
  readonly access_token_path: string
  readonly refresh_token_path?: string
  readonly expires_in_path?: string
  readonly scope_path?: string
}

export interface IdentityPaths {
  readonly subject_path: string
  readonly name_path?: string
  readonly email_path?: string
}

export interface UpstreamRegistrationConfig {
  readonly discovery_url?: string
  readonly registration_endpoint?: string
  readonly initial_access_token_file?: string
  readonly initial_access_token_env_var?: string
  readonly software_id?: string
  readonly software_statement?: string
}

export interface AuthStorageConfig {
  readonly type: 'memory' | 'redis'
  readonly redis_config?: AuthRedisConfig
}

export interface AuthRedisConfig {
  readonly addr?: string
  readonly cluster_mode: boolean
  readonly sentinel_config?: AuthSentinelConfig
  readonly auth_type: 'aclUser'
  readonly acl_user_config?: AclUserConfig
  readonly key_prefix?: string
  readonly dial_timeout: string
  readonly read_timeout: string
  readonly write_timeout: string
  readonly tls?: AuthRedisTls
  readonly sentinel_tls?: AuthRedisTls
}

export interface AuthSentinelConfig {
  readonly master_name: string
  readonly sentinel_addrs: readonly string[]
  readonly db: number
}

export interface AclUserConfig {
  readonly username_env_var?: string
  readonly password_env_var?: string
  readonly username_file?: string
  readonly password_file?: string
}

export interface AuthRedisTls {
  readonly ca_cert_file?: string
  readonly insecure_skip_verify: boolean
}

export interface CimdConfig {
  readonly enabled: boolean
  readonly cache_max_size: number
  readonly cache_fallback_ttl: string
}

export interface DelegateClientConfig {
  readonly client_id: string
  readonly client_secret_file?: string
  readonly client_secret_env_var?: string
  readonly scopes: readonly string[]
  readonly audiences: readonly string[]
}

export interface TrustedIssuerConfig {
  readonly issuer_url: string
  readonly jwks_url?: string
  readonly expected_audience?: string
  readonly allowed_delegate_clients: readonly string[]
  readonly allowed_actors: readonly string[]
  readonly actor_claim: string
  readonly actor_matcher?: string
  readonly allow_may_act: boolean
  readonly allow_private_ips: boolean
  readonly insecure_allow_http: boolean
  readonly jwt_bearer_grant?: JwtBearerGrantConfig
}

export interface JwtBearerGrantConfig {
  readonly max_assertion_age: string
  readonly accepted_audiences: readonly string[]
  readonly subject_bindings: readonly SubjectBindingConfig[]
}

export interface SubjectBindingConfig {
  readonly subject: string
  readonly allowed_resources: readonly string[]
}

/**
 * Where a provider sends users back. Many providers do not say that an answer is their own (RFC 9207), so each but the first has a path of
 * its own: an answer of another provider that is passed off as its own does not come there (RFC 9700 §4.4).
 */
export function callbackPath(upstreams: readonly { readonly name: string }[], name: string): string {
  const index = upstreams.findIndex((upstream) => upstream.name === name)
  return index > 0 ? `/oauth/callback/${name}` : '/oauth/callback'
}

/** The scope that leads a client through the login of a provider. */
export function upstreamScope(provider: string): string {
  return `upstream:${provider}`
}
