import type { AuditConfig } from './audit-config.ts'
import type { AuthServerConfig } from './auth-server-config.ts'
import type {
  AuthzConfig,
  AwsStsConfig,
  HeaderInjectionConfig,
  OidcConfig,
  RateLimitConfig,
  RemoteAuthConfig,
  TokenExchangeConfig,
  UpstreamSwapConfig,
  WebhookConfig,
} from './policy-config.ts'
import type { TelemetryConfig } from './telemetry-config.ts'
import type { JsonObject } from './value-readers.ts'

/**
 * The document that tells a runner which MCP server to run and how to stand in front of it; written by the operator, or by hand. This
 * is its canonical form: one spelling, defaults filled in. Members have the names of the document, so that messages, documentation and
 * code speak of the same things. What each one means is said in `run-config-fields.ts`, which the reference is made from.
 */
export interface RunConfig {
  readonly schema_version: string
  readonly mcpserver_generation: number
  readonly owner?: Owner

  readonly name: string
  readonly container_name: string
  readonly base_name: string
  readonly group?: string
  readonly debug: boolean

  readonly image: string
  readonly cmd_args: readonly string[]
  readonly env_vars: Texts
  readonly env_file_dir?: string
  readonly secrets: readonly string[]

  readonly remote_url?: string
  readonly remote_ca_bundle_path?: string
  readonly remote_policy: RemotePolicy
  readonly remote_auth_config?: RemoteAuthConfig
  readonly header_forward?: HeaderForward

  readonly transport: Transport
  readonly proxy_mode: ProxyMode
  readonly host: string
  readonly port: number
  readonly target_host?: string
  readonly target_port: number
  readonly era: Era
  readonly stdio_isolation: StdioIsolation
  readonly stdio_max_processes: number
  readonly allowed_origins: readonly string[]
  readonly allowed_hosts: readonly string[]
  readonly service_hosts: readonly string[]
  readonly trust_proxy_headers: boolean
  readonly trusted_proxies: readonly string[]
  readonly endpoint_prefix?: string
  readonly strict_protocol_validation: boolean
  readonly stateless: boolean
  readonly session_ttl: string

  readonly container_labels: Texts
  readonly volumes: readonly string[]
  readonly publish: readonly string[]
  readonly permission_profile?: JsonObject
  readonly permission_profile_name_or_path?: string
  readonly isolate_network: boolean
  readonly k8s_pod_template_patch?: JsonObject
  readonly scaling_config: ScalingConfig

  readonly tools_filter: readonly string[]
  readonly tools_override: Readonly<Record<string, ToolOverride>>
  readonly oidc_config?: OidcConfig
  readonly thv_ca_bundle?: string
  readonly jwks_auth_token_file?: string
  readonly authz_config?: AuthzConfig
  readonly authz_config_path?: string
  readonly authz_primary_upstream_provider?: string
  readonly audit_config?: AuditConfig
  readonly audit_config_path?: string
  readonly telemetry_config?: TelemetryConfig
  readonly rate_limit_config?: RateLimitConfig
  readonly rate_limit_namespace?: string
  readonly token_exchange_config?: TokenExchangeConfig
  readonly upstream_swap_config?: UpstreamSwapConfig
  readonly header_injection_config?: HeaderInjectionConfig
  readonly aws_sts_config?: AwsStsConfig
  readonly embedded_auth_server_config?: AuthServerConfig
  readonly validating_webhooks: readonly WebhookConfig[]
  readonly mutating_webhooks: readonly WebhookConfig[]
  readonly middleware_configs: readonly MiddlewareConfig[]
  readonly additional_middleware_configs: readonly MiddlewareConfig[]
}

export const TRANSPORTS = ['stdio', 'sse', 'streamable-http'] as const
export type Transport = (typeof TRANSPORTS)[number]

export const PROXY_MODES = ['sse', 'streamable-http'] as const
export type ProxyMode = (typeof PROXY_MODES)[number]

export const ERAS = ['auto', 'legacy', 'modern'] as const
export type Era = (typeof ERAS)[number]

export const STDIO_ISOLATIONS = ['auto', 'session', 'shared'] as const
export type StdioIsolation = (typeof STDIO_ISOLATIONS)[number]

export type Texts = Readonly<Record<string, string>>

/** The owner of the objects in the cluster: they are deleted with it. */
export interface Owner {
  readonly api_version: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

export interface RemotePolicy {
  readonly deny_private: boolean
  readonly allow_private: boolean
  readonly allow_loopback: boolean
}

export interface HeaderForward {
  readonly add_plaintext_headers: Texts
  /** Header name to the name of a secret: the variable TOOLHIVE_SECRET_NAME holds the value. */
  readonly add_headers_from_secret: Texts
}

export interface ScalingConfig {
  readonly backend_replicas?: number
  readonly pods_per_runner?: number
  readonly session_redis?: SessionRedis
}

export interface SessionRedis {
  /** Exactly one of this and `sentinel`. */
  readonly address?: string
  readonly sentinel?: RedisSentinel
  readonly db: number
  readonly key_prefix?: string
  readonly username?: string
  readonly tls?: RedisTls
}

export interface RedisSentinel {
  readonly master_name: string
  readonly addresses: readonly string[]
}

export interface RedisTls {
  readonly enabled: boolean
  readonly ca_path?: string
}

export interface ToolOverride {
  readonly name?: string
  readonly description?: string
  readonly annotations?: JsonObject
}

export interface MiddlewareConfig {
  readonly type: string
  readonly parameters?: JsonObject
}

/** Whether the server is somewhere else, so that there is nothing to run. */
export function isRemote(config: RunConfig): config is RunConfig & { readonly remote_url: string } {
  return config.remote_url !== undefined
}
