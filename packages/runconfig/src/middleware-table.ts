import { isObject } from '@thv/kernel/json'
import {
  alwaysMet,
  bodyLimitMet,
  type EntryCheck,
  headerForwardMet,
  optionalField,
  sameAsFields,
  stripAuthMet,
} from './middleware-entries.ts'
import type { RunConfig } from './run-config.ts'

export interface MiddlewareRow {
  readonly name: string
  /** False: a document that asks for it is rejected, because a proxy without it would stand unguarded. */
  readonly built: boolean
  /** `pipeline`: made by `@thv/middleware/from-run-config`. `gateway` and `runner`: always part of that program. */
  readonly part: 'pipeline' | 'gateway' | 'runner'
  /** Paths in a RunConfig that ask for it. Empty: it is always there. */
  readonly fields: readonly string[]
  /** Accepts its entries in `middleware_configs`. Absent: there are none. */
  readonly entry?: EntryCheck
}

/**
 * All middleware, in pipeline order. The runner rejects a document by it, the operator reports by it before a pod starts, the reference
 * lists it, and `@thv/middleware` must have a factory for every row that is built and part of the pipeline.
 */
export const MIDDLEWARE = [
  { name: 'recovery', built: true, part: 'gateway', fields: [], entry: alwaysMet('recovery') },
  // Nothing is counted for others or sent anywhere.
  { name: 'metrics', built: true, part: 'gateway', fields: [], entry: alwaysMet('usagemetrics') },
  {
    name: 'audit',
    built: true,
    part: 'pipeline',
    fields: ['audit_config', 'audit_config_path'],
    entry: sameAsFields(['audit'], { config_data: 'audit_config', config_path: 'audit_config_path' }),
  },
  {
    name: 'origin',
    built: true,
    part: 'gateway',
    fields: ['allowed_origins'],
    entry: optionalField('origin', 'allowed_origins'),
  },
  { name: 'bodylimit', built: true, part: 'gateway', fields: [], entry: bodyLimitMet },
  {
    name: 'auth',
    built: true,
    part: 'pipeline',
    fields: ['oidc_config', 'thv_ca_bundle', 'jwks_auth_token_file'],
    entry: optionalField('auth', 'oidc_config'),
  },
  { name: 'mcp-parser', built: true, part: 'gateway', fields: [], entry: alwaysMet('mcp-parser') },
  {
    name: 'telemetry-export',
    built: true,
    part: 'pipeline',
    fields: ['telemetry_config.endpoint', 'telemetry_config.tracing_enabled', 'telemetry_config.metrics_enabled'],
    entry: sameAsFields(['telemetry'], { config: 'telemetry_config' }),
  },
  {
    name: 'tool-filter',
    built: true,
    part: 'pipeline',
    fields: ['tools_filter', 'tools_override'],
    entry: sameAsFields(['tool-filter', 'tool-call-filter'], { filter_tools: 'tools_filter', tools_override: 'tools_override' }),
  },
  {
    name: 'mutating-webhook',
    built: false,
    part: 'pipeline',
    fields: ['mutating_webhooks'],
    entry: sameAsFields(['mutating-webhook'], { webhooks: 'mutating_webhooks' }),
  },
  {
    name: 'validating-webhook',
    built: false,
    part: 'pipeline',
    fields: ['validating_webhooks'],
    entry: sameAsFields(['validating-webhook'], { webhooks: 'validating_webhooks' }),
  },
  {
    name: 'authorization',
    built: true,
    part: 'pipeline',
    fields: ['authz_config', 'authz_config_path'],
    entry: sameAsFields(['authorization'], { config_data: 'authz_config', config_path: 'authz_config_path' }),
  },
  // Policies that an HTTP service decides.
  { name: 'authorization-httpv1', built: false, part: 'pipeline', fields: ['authz_config.type'] },
  // After authorization: a call that is not allowed takes nothing from anyone's limit.
  {
    name: 'ratelimit',
    built: true,
    part: 'pipeline',
    fields: ['rate_limit_config'],
    entry: sameAsFields(['ratelimit'], { config: 'rate_limit_config', namespace: 'rate_limit_namespace' }),
  },
  // Credentials come last: a rejected call costs the identity provider nothing.
  {
    name: 'tokenexchange',
    built: true,
    part: 'pipeline',
    fields: ['token_exchange_config'],
    entry: sameAsFields(['tokenexchange'], { token_exchange_config: 'token_exchange_config' }),
  },
  {
    name: 'upstreamswap',
    built: true,
    part: 'pipeline',
    fields: ['upstream_swap_config'],
    entry: sameAsFields(['upstreamswap'], { config: 'upstream_swap_config' }),
  },
  {
    name: 'awssts',
    built: false,
    part: 'pipeline',
    fields: ['aws_sts_config'],
    entry: sameAsFields(['awssts'], { aws_sts_config: 'aws_sts_config' }),
  },
  { name: 'header-injection', built: true, part: 'pipeline', fields: ['header_injection_config'] },
  { name: 'remote-auth', built: true, part: 'pipeline', fields: ['remote_auth_config'] },
  { name: 'header-forward', built: true, part: 'pipeline', fields: ['header_forward'], entry: headerForwardMet },
  { name: 'auth-server', built: true, part: 'runner', fields: ['embedded_auth_server_config'], entry: stripAuthMet },
  // Parts of it.
  { name: 'auth-server-injection', built: true, part: 'runner', fields: ['embedded_auth_server_config.disable_upstream_token_injection'] },
  { name: 'auth-server-redis', built: true, part: 'runner', fields: ['embedded_auth_server_config.storage.redis_config'] },
  {
    name: 'auth-server-registration',
    built: true,
    part: 'runner',
    fields: ['embedded_auth_server_config.upstreams.oauth2_config.dcr_config'],
  },
  {
    name: 'auth-server-delegation',
    built: true,
    part: 'runner',
    fields: ['embedded_auth_server_config.delegate_clients', 'embedded_auth_server_config.trusted_issuers'],
  },
  { name: 'session-redis', built: true, part: 'runner', fields: ['scaling_config.session_redis'] },
  { name: 'network-isolation', built: false, part: 'runner', fields: ['isolate_network'] },
] as const satisfies readonly MiddlewareRow[]

/** The middleware that `@thv/middleware` must be able to make. */
export type BuiltMiddleware = Extract<(typeof MIDDLEWARE)[number], { built: true; part: 'pipeline' }>['name']

/** The built middleware of the pipeline, in its order. */
export const BUILT_MIDDLEWARE: readonly BuiltMiddleware[] = MIDDLEWARE.filter(
  (row): row is Extract<(typeof MIDDLEWARE)[number], { built: true; part: 'pipeline' }> => row.built && row.part === 'pipeline',
).map(({ name }) => name)

export interface UnsupportedField {
  readonly field: string
  readonly middleware: string
}

/** The fields that ask for a middleware that is not built. A runner must not start unless this is empty. */
export function unsupportedFields(config: RunConfig, table: readonly MiddlewareRow[] = MIDDLEWARE): UnsupportedField[] {
  return table
    .filter(({ built }) => !built)
    .flatMap(({ name, fields }) => fields.filter((field) => asksFor(config, field)).map((field) => ({ field, middleware: name })))
}

function asksFor(config: RunConfig, path: string): boolean {
  const value = valueAt(config, path.split('.'))
  if (path === 'audit_config' && isObject(value)) return value['enabled'] !== false
  if (path === 'authz_config.type') return value === 'httpv1'
  // ToolHive (Go) writes this part even when nothing in it is set.
  return path === 'remote_auth_config' ? hasAnyValue(value) : isPresent(value)
}

/** In a list: of the first item that has it. */
function valueAt(value: unknown, path: readonly string[]): unknown {
  const [key, ...rest] = path
  if (key === undefined) return value
  if (Array.isArray(value)) return value.map((item) => valueAt(item, path)).find(isPresent)
  return isObject(value) ? valueAt(value[key], rest) : undefined
}

function isPresent(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return false
  return Array.isArray(value) ? value.length > 0 : true
}

function hasAnyValue(value: unknown): boolean {
  return isObject(value) ? Object.values(value).some(hasAnyValue) : isPresent(value)
}
