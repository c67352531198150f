import { VIRTUAL_AUDIT_FIELDS } from '@thv/runconfig/audit-config'
import { authServerReader } from '@thv/runconfig/auth-server-fields'
import { type FieldTable, readFields } from '@thv/runconfig/field'
import type { ToolOverride } from '@thv/runconfig/run-config'
import { TELEMETRY_FIELDS } from '@thv/runconfig/telemetry-config'
import { addressRange, anyObject, flag, httpUrl, integer, listOf, mapOf, objectOf, oneOf, text } from '@thv/runconfig/value-readers'
import { INCOMING_AUTH, OUTGOING_AUTH } from './auth-fields.ts'
import { COMPOSITE_TOOL } from './composite-fields.ts'
import { duration } from './durations.ts'
import {
  type AggregationConfig,
  BACKEND_TRANSPORTS,
  type BackendConfig,
  type BridgeConfig,
  type CircuitBreakerConfig,
  CONFLICT_STRATEGIES,
  type ConflictResolutionConfig,
  type FailureHandlingConfig,
  type OperationalConfig,
  RETRY_REASONS,
  type RedisSentinelConfig,
  type RedisTlsConfig,
  type RemotePolicyConfig,
  type RetryConfig,
  type SessionStorageConfig,
  type TimeoutsConfig,
  type TokenCacheConfig,
  type ToolResultsConfig,
  type ToolSearchConfig,
  type VmcpConfig,
  type WorkflowsConfig,
  type WorkloadToolsConfig,
} from './vmcp-config.ts'

const strings = mapOf(text({ allowEmpty: true }))

const BACKEND: FieldTable<BackendConfig> = {
  name: { reader: text(), required: true, doc: 'Name of the backend: in prefixes, in priorityOrder, tools and outgoingAuth.' },
  url: { reader: httpUrl(), required: true, doc: 'URL of its MCP endpoint.' },
  transport: { reader: oneOf(BACKEND_TRANSPORTS), default: 'streamable-http', doc: 'Transport of the backend.' },
  type: { reader: oneOf(['entry']), doc: '`entry` for a remote server of an MCPServerEntry.' },
  caBundlePath: { reader: text(), doc: 'File with CA certificates of an entry, trusted for this backend only.' },
  allowPrivate: { reader: flag, default: false, doc: 'The exception to `remotePolicy.denyPrivate` for this backend.' },
  metadata: { reader: strings, default: {}, doc: 'Notes.' },
}

const REMOTE_POLICY: FieldTable<RemotePolicyConfig> = {
  denyPrivate: { reader: flag, default: false, doc: 'Whether private addresses are refused for backends of type `entry`.' },
  allowPrivate: { reader: flag, default: false, doc: 'The exception to `denyPrivate`.' },
  allowLoopback: { reader: flag, default: false, doc: 'Whether loopback addresses are allowed.' },
}

const OVERRIDE: FieldTable<ToolOverride> = {
  name: { reader: text(), doc: 'New name.' },
  description: { reader: text(), doc: 'New description.' },
  annotations: { reader: anyObject, doc: 'Annotations that replace those of the backend.' },
}

const WORKLOAD_TOOLS: FieldTable<WorkloadToolsConfig> = {
  workload: { reader: text(), required: true, doc: 'Name of the backend.' },
  filter: { reader: listOf(text()), default: [], doc: 'Tools that clients see, after overrides; all when empty.' },
  exclude: { reader: listOf(text()), default: [], doc: 'Tools that clients do not see, after overrides.' },
  excludeAll: { reader: flag, default: false, doc: 'Whether clients see none of them.' },
  overrides: { reader: mapOf(objectOf(OVERRIDE)), default: {}, doc: 'New names and descriptions, by the real name of the tool.' },
}

const CONFLICTS: FieldTable<ConflictResolutionConfig> = {
  prefixFormat: { reader: text(), default: '{workload}_', doc: 'Prefix of a name; `{workload}` is the name of the backend.' },
  priorityOrder: { reader: listOf(text()), default: [], doc: 'Backends, the most important first.' },
  winners: { reader: mapOf(text()), default: {}, doc: 'For `manual`: the backend that gets a name, by name.' },
  selectorArgument: { reader: text(), default: 'backend', doc: 'For `selector`: the argument that names the backend.' },
}

const AGGREGATION: FieldTable<AggregationConfig> = {
  conflictResolution: { reader: oneOf(CONFLICT_STRATEGIES), required: true, doc: 'What happens to names that several backends have.' },
  conflictResolutionConfig: { reader: objectOf(CONFLICTS), default: defaultsOf(CONFLICTS), doc: 'Settings of the strategy.' },
  excludeAllTools: { reader: flag, default: false, doc: 'Whether clients see composite tools only.' },
  defaultToolVisibility: {
    reader: oneOf(['allow', 'deny']),
    default: 'allow',
    doc: 'Whether clients see the tools of backends without an entry in `tools`.',
  },
  tools: { reader: listOf(objectOf(WORKLOAD_TOOLS)), default: [], doc: 'Tools of single backends.' },
}

const TIMEOUTS: FieldTable<TimeoutsConfig> = {
  default: { reader: duration, default: '30s', doc: 'Silence after which a call is given up.' },
  perWorkload: { reader: mapOf(duration), default: {}, doc: 'For single backends, by name.' },
  perTool: { reader: mapOf(duration), default: {}, doc: 'For single tools, by the name that clients see.' },
}

const CIRCUIT_BREAKER: FieldTable<CircuitBreakerConfig> = {
  enabled: { reader: flag, default: false, doc: 'Whether calls to a failing backend are stopped.' },
  failureThreshold: { reader: integer({ min: 1 }), default: 5, doc: 'Consecutive failures until the circuit opens.' },
  timeout: { reader: duration, default: '60s', doc: 'Time until one call is tried again.' },
}

const FAILURE_HANDLING: FieldTable<FailureHandlingConfig> = {
  healthCheckInterval: { reader: duration, default: '30s', doc: 'Interval of health checks.' },
  healthCheckTimeout: {
    reader: duration,
    defaultText: '`10s`, or half the interval if that is less',
    doc: 'Timeout of a health check.',
  },
  unhealthyThreshold: { reader: integer({ min: 1 }), default: 3, doc: 'Failures in a row until a backend counts as unhealthy.' },
  statusReportingInterval: { reader: duration, doc: 'Interval of status updates of a VirtualMCPServer.' },
  partialFailureMode: {
    reader: oneOf(['fail', 'best_effort']),
    default: 'best_effort',
    doc: '`best_effort` serves the healthy backends; `fail` refuses new sessions while one is unhealthy.',
  },
  circuitBreaker: { reader: objectOf(CIRCUIT_BREAKER), default: defaultsOf(CIRCUIT_BREAKER), doc: 'Circuit breaker.' },
}

const RETRY: FieldTable<RetryConfig> = {
  attempts: { reader: integer({ min: 1, max: 10 }), default: 3, doc: 'Attempts of a call in all.' },
  backoff: { reader: duration, default: '250ms', doc: 'Delay before the second attempt, doubled each time.' },
  on: {
    reader: listOf(oneOf(RETRY_REASONS)),
    default: ['connect'],
    doc: 'Failures to retry. `connect`: never sent. `unavailable`: 502, 503 or 504 to an idempotent call.',
  },
}

const TOOL_RESULTS: FieldTable<ToolResultsConfig> = {
  maxBytes: { reader: integer({ min: 1_024 }), required: true, doc: 'Bytes of the JSON of a result.' },
  onExceed: { reader: oneOf(['error', 'truncate']), default: 'error', doc: 'Answer with an error, or cut texts.' },
}

const OPERATIONAL: FieldTable<OperationalConfig> = {
  logLevel: { reader: oneOf(['debug']), doc: 'More log lines.' },
  timeouts: { reader: objectOf(TIMEOUTS), default: defaultsOf(TIMEOUTS), doc: 'Limits of calls.' },
  failureHandling: { reader: objectOf(FAILURE_HANDLING), default: defaultsOf(FAILURE_HANDLING), doc: 'Health checks.' },
  retry: { reader: objectOf(RETRY), doc: 'Retries of failed calls.' },
  toolResults: { reader: objectOf(TOOL_RESULTS), doc: 'Limits of results.' },
}

const SENTINEL: FieldTable<RedisSentinelConfig> = {
  masterName: { reader: text(), required: true, doc: 'Name under which the Sentinels watch the primary.' },
  addresses: { reader: listOf(text()), required: true, doc: 'Hosts and ports of the Sentinels.' },
}

const REDIS_TLS: FieldTable<RedisTlsConfig> = {
  enabled: { reader: flag, default: false, doc: 'Whether Redis and its Sentinels are reached by TLS.' },
  caPath: { reader: text(), doc: 'File with further certificate authorities.' },
}

const SESSION_STORAGE: FieldTable<SessionStorageConfig> = {
  provider: {
    reader: oneOf(['memory', 'redis']),
    default: 'memory',
    doc: 'Where client sessions are kept. With `redis` every replica serves every session.',
  },
  address: { reader: text(), doc: 'Host and port of Redis. Set this or `sentinel`.' },
  sentinel: { reader: objectOf(SENTINEL), doc: 'Finds the primary of a Redis with failover.' },
  db: { reader: integer({ min: 0 }), default: 0, doc: 'Its database.' },
  keyPrefix: { reader: text(), defaultText: '`thv:vmcp:`, namespace and name', doc: 'Prefix of its keys.' },
  username: { reader: text(), doc: 'ACL user. The variable `THV_SESSION_REDIS_PASSWORD` holds the password.' },
  tls: { reader: objectOf(REDIS_TLS), doc: 'TLS to Redis.' },
}

const TOKEN_CACHE: FieldTable<TokenCacheConfig> = {
  enabled: { reader: flag, default: true, doc: 'Whether tokens for backends are kept.' },
  maxEntries: { reader: integer({ min: 1, max: 1_000_000 }), default: 10_000, doc: 'Tokens that are kept at most, per backend.' },
  ttlOffset: { reader: duration, default: '60s', doc: 'Time before its end at which a token is replaced.' },
}

const TOOL_SEARCH: FieldTable<ToolSearchConfig> = {
  maxToolsToReturn: { reader: integer({ min: 1, max: 50 }), default: 8, doc: 'Tools that a search returns at most.' },
  alwaysListed: { reader: listOf(text()), default: [], doc: 'Tools that stay in the list, by the name that clients see.' },
  description: { reader: text(), defaultText: 'a text with the names of the backends', doc: 'Description of `find_tool`.' },
  embeddingService: { reader: httpUrl(), doc: 'URL of a service that turns text into vectors.' },
  embeddingServiceTimeout: { reader: duration, doc: 'Timeout of the service.' },
  embeddingProvider: { reader: oneOf(['tei', 'openai']), doc: 'API of the service.' },
  embeddingModel: { reader: text(), doc: 'Model of the service.' },
  embeddingHeaders: { reader: strings, doc: 'Headers for the service.' },
  hybridSearchSemanticRatio: { reader: text(), doc: 'Weight of the service in results.' },
  semanticDistanceThreshold: { reader: text(), doc: 'Maximum distance of a result.' },
}

const WORKFLOWS: FieldTable<WorkflowsConfig> = {
  authorizeSteps: { reader: flag, default: false, doc: 'Whether policies judge every step, not the composite tool alone.' },
  maxParallelSteps: { reader: integer({ min: 1, max: 100 }), default: 10, doc: 'Steps of one call that run at the same time.' },
}

const BRIDGE: FieldTable<BridgeConfig> = {
  parkedCalls: {
    reader: flag,
    default: true,
    doc: 'Whether a call to a legacy backend stays open while a modern client answers what the backend asks. Without it such a call fails.',
  },
}

export const VMCP_CONFIG_FIELDS: FieldTable<VmcpConfig> = {
  name: { reader: text(), required: true, doc: 'Name of the virtual server.' },
  groupRef: { reader: text(), required: true, doc: 'MCPGroup whose members are joined.' },
  backends: { reader: listOf(objectOf(BACKEND)), default: [], doc: 'Backends of static mode.' },
  incomingAuth: { reader: objectOf(INCOMING_AUTH), required: true, doc: 'Authentication of clients.' },
  authServer: {
    reader: authServerReader,
    doc: 'Authorization server in the program, with the members of `embedded_auth_server_config`. `incomingAuth.oidc` has its issuer.',
  },
  outgoingAuth: { reader: objectOf(OUTGOING_AUTH), required: true, doc: 'Authentication to backends.' },
  aggregation: { reader: objectOf(AGGREGATION), required: true, doc: 'How the tools of all backends become one list.' },
  compositeTools: { reader: listOf(objectOf(COMPOSITE_TOOL)), default: [], doc: 'Tools composed of calls to other tools.' },
  compositeToolRefs: { reader: listOf(anyObject), default: [], doc: 'Read by the operator only.' },
  operational: { reader: objectOf(OPERATIONAL), default: defaultsOf(OPERATIONAL), doc: 'Timeouts, health checks and failure handling.' },
  metadata: { reader: strings, default: {}, doc: 'Notes.' },
  telemetry: { reader: objectOf(TELEMETRY_FIELDS, { anySpelling: true }), doc: 'Traces and metrics.' },
  audit: { reader: objectOf(VIRTUAL_AUDIT_FIELDS, { anySpelling: true }), doc: 'Audit events.' },
  optimizer: { reader: objectOf(TOOL_SEARCH), doc: 'Tool search: clients see `find_tool` and `call_tool` in place of all tools.' },
  codeMode: { reader: anyObject, doc: 'Scripts that call tools.' },
  sessionStorage: { reader: objectOf(SESSION_STORAGE), default: defaultsOf(SESSION_STORAGE), doc: 'Storage of client sessions.' },
  rateLimiting: { reader: anyObject, doc: 'Rate limits.' },
  passthroughHeaders: { reader: listOf(text()), default: [], doc: 'Headers of the client that are passed on to all backends.' },
  tokenCache: { reader: objectOf(TOKEN_CACHE), default: defaultsOf(TOKEN_CACHE), doc: 'Cache of tokens for backends.' },
  workflows: { reader: objectOf(WORKFLOWS), default: defaultsOf(WORKFLOWS), doc: 'Settings of composite tools.' },
  bridge: { reader: objectOf(BRIDGE), default: defaultsOf(BRIDGE), doc: 'Clients and backends of different eras.' },
  remotePolicy: {
    reader: objectOf(REMOTE_POLICY),
    doc: 'Addresses that backends may have. Without it all but link-local and metadata addresses, unless the server runs in a cluster.',
  },
  trustProxyHeaders: { reader: flag, default: false, doc: 'Whether `X-Forwarded-*` of requests is believed.' },
  trustedProxies: {
    reader: listOf(addressRange),
    default: [],
    doc: 'Proxies in front of the server. With `trustProxyHeaders` the client address is the last entry of `X-Forwarded-For` that is none of them.',
  },
  allowedHosts: {
    reader: listOf(text()),
    default: [],
    doc: 'Host names that clients may use; with any, no others but those of the server itself.',
  },
  serviceHosts: { reader: listOf(text()), default: [], doc: 'Full names of the Services that lead to the server.' },
}

/** The value of a block that the file leaves out. */
function defaultsOf<T>(table: FieldTable<T>): T {
  const read = readFields(table, { value: {}, path: '', findings: { problems: [], warnings: [] } })
  if (read === undefined) throw new TypeError('a block with required members has no defaults')
  return read
}
