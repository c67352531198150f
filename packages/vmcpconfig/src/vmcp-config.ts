import type { CompositeTool } from '@thv/resources/shared/composite/composite-tool'
import type { AuditConfig } from '@thv/runconfig/audit-config'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { ToolOverride } from '@thv/runconfig/run-config'
import type { TelemetryConfig } from '@thv/runconfig/telemetry-config'
import type { JsonObject } from '@thv/runconfig/value-readers'

export type { CompositeTool }

/**
 * The configuration file of a virtual MCP server, with defaults filled in. Members have the names of the file, so that messages,
 * documentation and code speak of the same things. `vmcp-config-fields.ts` says what each one means.
 */
export interface VmcpConfig {
  readonly name: string
  readonly groupRef: string
  readonly backends: readonly BackendConfig[]
  readonly incomingAuth: IncomingAuthConfig
  /** The authorization server in the program, whose tokens `incomingAuth` accepts. */
  readonly authServer?: AuthServerConfig
  readonly outgoingAuth: OutgoingAuthConfig
  readonly aggregation: AggregationConfig
  readonly compositeTools: readonly CompositeTool[]
  readonly compositeToolRefs: readonly JsonObject[]
  readonly operational: OperationalConfig
  readonly metadata: Texts
  readonly telemetry?: TelemetryConfig
  readonly audit?: AuditConfig
  readonly optimizer?: ToolSearchConfig
  readonly codeMode?: JsonObject
  readonly sessionStorage: SessionStorageConfig
  readonly rateLimiting?: JsonObject
  readonly passthroughHeaders: readonly string[]
  readonly tokenCache: TokenCacheConfig
  readonly workflows: WorkflowsConfig
  readonly bridge: BridgeConfig
  readonly remotePolicy?: RemotePolicyConfig
  /** Whether `X-Forwarded-*` of requests is believed. */
  readonly trustProxyHeaders: boolean
  readonly trustedProxies: readonly string[]
  readonly allowedHosts: readonly string[]
  readonly serviceHosts: readonly string[]
}

/** Tool search: clients see `find_tool` and `call_tool` in place of all tools. */
export interface ToolSearchConfig {
  readonly maxToolsToReturn: number
  /** Tools that stay in the list, by the name that clients see. */
  readonly alwaysListed: readonly string[]
  /** Of `find_tool`, in place of one that names the backends. */
  readonly description?: string
  readonly embeddingService?: string
  readonly embeddingServiceTimeout?: string
  readonly embeddingProvider?: 'tei' | 'openai'
  readonly embeddingModel?: string
  readonly embeddingHeaders?: Texts
  readonly hybridSearchSemanticRatio?: string
  readonly semanticDistanceThreshold?: string
}

/** Names of the tools that tool search adds. */
export const SEARCH_TOOLS = { find: 'find_tool', call: 'call_tool' } as const

/** Settings of all composite tools. */
export interface WorkflowsConfig {
  readonly authorizeSteps: boolean
  readonly maxParallelSteps: number
}

/** Clients and backends of different eras. */
export interface BridgeConfig {
  /** A call to a legacy backend stays open while a modern client answers what the backend asks. */
  readonly parkedCalls: boolean
}

export type Texts = Readonly<Record<string, string>>

export const BACKEND_TRANSPORTS = ['streamable-http', 'sse'] as const

export interface BackendConfig {
  readonly name: string
  readonly url: string
  readonly transport: (typeof BACKEND_TRANSPORTS)[number]
  readonly type?: 'entry'
  readonly caBundlePath?: string
  /** The exception to `remotePolicy.denyPrivate` for this backend. */
  readonly allowPrivate: boolean
  readonly metadata: Texts
}

/** Addresses of entries. Proxies of the cluster have private addresses, so `denyPrivate` is not about them. */
export interface RemotePolicyConfig {
  readonly denyPrivate: boolean
  readonly allowPrivate: boolean
  readonly allowLoopback: boolean
}

export interface IncomingAuthConfig {
  readonly type: 'oidc' | 'local' | 'anonymous'
  readonly oidc?: OidcClientConfig
  readonly authz?: AuthzFileConfig
}

export interface OidcClientConfig {
  readonly issuer: string
  readonly audience: string
  readonly clientId?: string
  readonly clientSecretEnv?: string
  readonly resource?: string
  readonly jwksUrl?: string
  readonly introspectionUrl?: string
  readonly scopes: readonly string[]
  readonly protectedResourceAllowPrivateIp: boolean
  readonly jwksAllowPrivateIp: boolean
  readonly insecureAllowHttp: boolean
  readonly caBundlePath?: string
}

export interface AuthzFileConfig {
  readonly type: 'cedar' | 'none'
  readonly policies: readonly string[]
  readonly entitiesJson: string
  readonly primaryUpstreamProvider?: string
  readonly groupClaimName?: string
  readonly roleClaimName?: string
  readonly groupEntityType?: string
}

export interface OutgoingAuthConfig {
  readonly source: 'inline' | 'discovered'
  readonly default?: BackendAuthConfig
  readonly backends: Readonly<Record<string, BackendAuthConfig>>
}

export const BACKEND_AUTH_TYPES = [
  'unauthenticated',
  'header_injection',
  'bearer_token',
  'client_credentials',
  'token_exchange',
  'caller_token',
  'upstream_inject',
  'aws_sts',
  'obo',
  'xaa',
] as const

export type BackendAuthType = (typeof BACKEND_AUTH_TYPES)[number]

/**
 * Each type has a block of its own but `unauthenticated` and `caller_token`. The latter passes the token of the caller on, to a proxy that accepts
 * tokens of the same issuer and audience.
 */
export interface BackendAuthConfig {
  readonly type: BackendAuthType
  readonly headerInjection?: HeaderInjectionFileConfig
  readonly bearerToken?: BearerTokenFileConfig
  readonly clientCredentials?: ClientCredentialsFileConfig
  readonly tokenExchange?: TokenExchangeFileConfig
  readonly upstreamInject?: UpstreamInjectFileConfig
  readonly awsSts?: JsonObject
  readonly obo?: JsonObject
  readonly xaa?: JsonObject
}

/** The token that the caller has at a provider of `authServer`. */
export interface UpstreamInjectFileConfig {
  readonly providerName?: string
}

export interface HeaderInjectionFileConfig {
  readonly headerName: string
  readonly headerValue?: string
  readonly headerValueEnv?: string
}

/** Exactly one member. */
export interface BearerTokenFileConfig {
  readonly tokenEnv?: string
  readonly tokenFile?: string
}

export interface ClientCredentialsFileConfig {
  readonly clientId: string
  readonly clientSecretEnv: string
  readonly tokenUrl?: string
  readonly issuer?: string
  readonly scopes: readonly string[]
  readonly resource?: string
}

export interface TokenExchangeFileConfig {
  readonly tokenUrl: string
  readonly clientId?: string
  readonly clientSecret?: string
  readonly clientSecretEnv?: string
  readonly audience?: string
  readonly scopes: readonly string[]
  readonly subjectTokenType?: string
  readonly subjectProviderName?: string
  /** Carries the new token instead of Authorization. */
  readonly headerName?: string
}

/** Tokens that were obtained for backends. */
export interface TokenCacheConfig {
  readonly enabled: boolean
  readonly maxEntries: number
  readonly ttlOffset: string
}

export const CONFLICT_STRATEGIES = ['prefix', 'priority', 'manual', 'prefixOnConflict', 'selector'] as const

export type ConflictStrategy = (typeof CONFLICT_STRATEGIES)[number]

export interface AggregationConfig {
  readonly conflictResolution: ConflictStrategy
  readonly conflictResolutionConfig: ConflictResolutionConfig
  readonly excludeAllTools: boolean
  readonly defaultToolVisibility: 'allow' | 'deny'
  readonly tools: readonly WorkloadToolsConfig[]
}

export interface ConflictResolutionConfig {
  readonly prefixFormat: string
  readonly priorityOrder: readonly string[]
  /** For `manual`: the backend that gets a name. */
  readonly winners: Texts
  /** For `selector`: the argument that names the backend. */
  readonly selectorArgument: string
}

export interface WorkloadToolsConfig {
  readonly workload: string
  readonly filter: readonly string[]
  readonly exclude: readonly string[]
  readonly excludeAll: boolean
  /** By the real name of the tool. */
  readonly overrides: Readonly<Record<string, ToolOverride>>
}

export interface OperationalConfig {
  readonly logLevel?: 'debug'
  readonly timeouts: TimeoutsConfig
  readonly failureHandling: FailureHandlingConfig
  readonly retry?: RetryConfig
  readonly toolResults?: ToolResultsConfig
}

export const RETRY_REASONS = ['connect', 'unavailable', 'timeout'] as const

export interface RetryConfig {
  readonly attempts: number
  readonly backoff: string
  readonly on: readonly (typeof RETRY_REASONS)[number][]
}

export interface ToolResultsConfig {
  readonly maxBytes: number
  readonly onExceed: 'error' | 'truncate'
}

/** Durations as in the file, such as `30s`. */
export interface TimeoutsConfig {
  readonly default: string
  readonly perWorkload: Texts
  /** By the name that clients see. */
  readonly perTool: Texts
}

export interface FailureHandlingConfig {
  readonly healthCheckInterval: string
  readonly healthCheckTimeout?: string
  readonly unhealthyThreshold: number
  readonly statusReportingInterval?: string
  readonly partialFailureMode: 'fail' | 'best_effort'
  readonly circuitBreaker: CircuitBreakerConfig
}

export interface CircuitBreakerConfig {
  readonly enabled: boolean
  readonly failureThreshold: number
  readonly timeout: string
}

export interface SessionStorageConfig {
  readonly provider: 'memory' | 'redis'
  readonly address?: string
  readonly sentinel?: RedisSentinelConfig
  readonly db: number
  readonly keyPrefix?: string
  readonly username?: string
  readonly tls?: RedisTlsConfig
}

export interface RedisSentinelConfig {
  readonly masterName: string
  readonly addresses: readonly string[]
}

export interface RedisTlsConfig {
  readonly enabled: boolean
  readonly caPath?: string
}
