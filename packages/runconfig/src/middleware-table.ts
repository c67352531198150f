import type { RunConfig } from './run-config.ts'

export interface LinkSupport {
  /** As the original's chain calls it. */
  readonly link: string
  readonly implemented: boolean
  /** What in a RunConfig asks for it, as paths. */
  readonly fields: readonly string[]
}

/**
 * Which links of the chain this runner has. The one list: the runner refuses to start by it, and the operator reads it to say so before
 * a pod does. Whoever builds a link changes its line here.
 */
export const IMPLEMENTED_LINKS: readonly LinkSupport[] = [
  { link: 'bodylimit', implemented: true, fields: [] },
  { link: 'mcp-parser', implemented: true, fields: [] },
  { link: 'recovery', implemented: true, fields: [] },
  { link: 'origin', implemented: true, fields: ['allowed_origins'] },
  { link: 'tool-filter', implemented: true, fields: ['tools_filter', 'tools_override'] },
  { link: 'header-forward', implemented: true, fields: ['header_forward'] },
  { link: 'auth', implemented: false, fields: ['oidc_config', 'thv_ca_bundle', 'jwks_auth_token_file'] },
  { link: 'authorization', implemented: false, fields: ['authz_config', 'authz_config_path'] },
  { link: 'audit', implemented: false, fields: ['audit_config', 'audit_config_path'] },
  { link: 'tokenexchange', implemented: false, fields: ['token_exchange_config'] },
  { link: 'upstreamswap', implemented: false, fields: ['upstream_swap_config'] },
  { link: 'header-injection', implemented: false, fields: ['header_injection_config'] },
  { link: 'awssts', implemented: false, fields: ['aws_sts_config'] },
  { link: 'auth-server', implemented: false, fields: ['embedded_auth_server_config'] },
  { link: 'ratelimit', implemented: false, fields: ['rate_limit_config'] },
  { link: 'mutating-webhook', implemented: false, fields: ['mutating_webhooks'] },
  { link: 'validating-webhook', implemented: false, fields: ['validating_webhooks'] },
  { link: 'remote-auth', implemented: false, fields: ['remote_auth_config'] },
  {
    link: 'telemetry-export',
    implemented: false,
    fields: ['telemetry_config.endpoint', 'telemetry_config.tracing_enabled', 'telemetry_config.metrics_enabled'],
  },
  { link: 'session-redis', implemented: false, fields: ['scaling_config.session_redis'] },
  { link: 'network-isolation', implemented: false, fields: ['isolate_network'] },
]

export interface UnsupportedField {
  readonly field: string
  readonly link: string
}

/**
 * What the document asks for and nobody here does. A runner that started all the same would stand open where somebody wanted a guard,
 * so it must not start when this is not empty.
 */
export function unsupportedFields(config: RunConfig, links: readonly LinkSupport[] = IMPLEMENTED_LINKS): UnsupportedField[] {
  return links
    .filter(({ implemented }) => !implemented)
    .flatMap(({ link, fields }) => fields.filter((field) => asksFor(config, field)).map((field) => ({ field, link })))
}

function asksFor(config: RunConfig, path: string): boolean {
  const value = path.split('.').reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), config)
  if (path === 'audit_config' && isObject(value)) return value['enabled'] !== false
  // The original writes this part even when nothing in it is set.
  return path === 'remote_auth_config' ? hasAnyWish(value) : isPresent(value)
}

function isPresent(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return false
  return Array.isArray(value) ? value.length > 0 : true
}

function hasAnyWish(value: unknown): boolean {
  return isObject(value) ? Object.values(value).some(hasAnyWish) : isPresent(value)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
