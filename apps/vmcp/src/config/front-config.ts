import { isThvError, ThvError } from '@thv/kernel/errors'
import { type LoginServerDeps, openLoginServer } from '@thv/middleware/login/login-server'
import { type OpenPoliciesDeps, openPolicies } from '@thv/middleware/run-config/make-authorize'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import type { Env } from '../discover/forwarded-headers.ts'

/** The middleware in front of the virtual server, in the words that all proxies use. Throws `vmcp_config_invalid`. */
export function frontConfig(config: VmcpConfig, env: Env): RunConfig {
  const { incomingAuth, authServer, name, rateLimiting, telemetry } = config
  const { authz } = incomingAuth
  const audit = config.audit && { component: 'vmcp-server', ...config.audit }
  const read = readRunConfig({
    schema_version: 'v0.1.0',
    name,
    transport: 'streamable-http',
    // Required by the document, and never called: the backends are those of the virtual server.
    remote_url: 'https://backends.invalid/mcp',
    ...(incomingAuth.oidc !== undefined && { oidc_config: oidcConfig(incomingAuth.oidc, env) }),
    // Tokens of providers go to single backends, not to all that is behind the front.
    ...(authServer !== undefined && { embedded_auth_server_config: { ...authServer, disable_upstream_token_injection: true } }),
    ...(authz?.type === 'cedar' && {
      authz_config: {
        type: 'cedarv1',
        cedar: {
          policies: authz.policies,
          entities_json: authz.entitiesJson,
          group_claim_name: authz.groupClaimName,
          role_claim_name: authz.roleClaimName,
          group_entity_type: authz.groupEntityType,
          primary_upstream_provider: authz.primaryUpstreamProvider,
        },
      },
    }),
    // Virtual servers have types of events that other proxies do not have.
    ...(audit !== undefined && { audit_config: { ...audit, event_types: [], exclude_event_types: [] } }),
    ...(config.sessionStorage.provider === 'redis' && { scaling_config: { session_redis: redisConfig(config, env) } }),
    ...(rateLimiting !== undefined && { rate_limit_config: rateLimiting, rate_limit_namespace: namespaceOf(env) }),
    ...(telemetry !== undefined && { telemetry_config: telemetry }),
    trust_proxy_headers: config.trustProxyHeaders,
    trusted_proxies: config.trustedProxies,
  })
  if (read.ok) return { ...read.config, ...(audit !== undefined && { audit_config: audit }) }
  throw new ThvError('vmcp_config_invalid', read.problems.map(({ path, message }) => `${fieldOf(path)} ${message}`).join('; '))
}

/** The members of the file that became these. */
const FIELDS: readonly (readonly [string, string])[] = [
  ['oidc_config', 'incomingAuth.oidc'],
  ['embedded_auth_server_config', 'authServer'],
  ['authz_config', 'incomingAuth.authz'],
  ['audit_config', 'audit'],
  ['scaling_config.session_redis', 'sessionStorage'],
  ['rate_limit_config', 'rateLimiting'],
  ['telemetry_config', 'telemetry'],
  ['trusted_proxies', 'trustedProxies'],
]

function fieldOf(path: string): string {
  const found = FIELDS.find(([field]) => path.startsWith(field))
  return found === undefined ? path : found[1] + path.slice(found[0].length)
}

function namespaceOf(env: Env): string {
  return env['VMCP_NAMESPACE'] || 'local'
}

/** Virtual servers that share a Redis have keys of their own. */
function redisConfig({ name, sessionStorage }: VmcpConfig, env: Env) {
  const { address, sentinel, db, keyPrefix = `thv:vmcp:${namespaceOf(env)}:${name}:`, username, tls } = sessionStorage
  return {
    ...{ address, db, key_prefix: keyPrefix, username },
    ...(sentinel !== undefined && { sentinel: { master_name: sentinel.masterName, addresses: sentinel.addresses } }),
    ...(tls !== undefined && { tls: { enabled: tls.enabled, ca_path: tls.caPath } }),
  }
}

/** The policies of the front, which take a thread and a while to load. Throws `vmcp_config_invalid` when they do not work. */
export async function openFrontPolicies(front: RunConfig, deps: OpenPoliciesDeps): ReturnType<typeof openPolicies> {
  try {
    return await openPolicies(front, deps)
  } catch (error) {
    if (!isThvError(error, 'run_config_invalid')) throw error
    throw new ThvError('vmcp_config_invalid', `incomingAuth.authz is not usable: ${error.message}`)
  }
}

/** The authorization server of the front, with its keys and secrets. Throws `vmcp_config_invalid` when those do not work. */
export async function openFrontLogin(front: RunConfig, deps: LoginServerDeps): ReturnType<typeof openLoginServer> {
  try {
    return await openLoginServer(front, deps)
  } catch (error) {
    if (!isThvError(error, 'run_config_invalid')) throw error
    throw new ThvError('vmcp_config_invalid', error.message.replace(/^embedded_auth_server_config\b/, 'authServer'))
  }
}

function oidcConfig(oidc: NonNullable<VmcpConfig['incomingAuth']['oidc']>, env: Env) {
  const { clientSecretEnv: variable } = oidc
  const secret = variable === undefined ? undefined : env[variable]
  if (variable !== undefined && (secret === undefined || secret === ''))
    throw new ThvError('vmcp_config_invalid', `incomingAuth.oidc.clientSecretEnv: variable ${variable} is missing or empty`)
  return {
    issuer: oidc.issuer,
    audience: oidc.audience,
    client_id: oidc.clientId,
    client_secret: secret,
    resource_url: oidc.resource,
    jwks_url: oidc.jwksUrl,
    introspection_url: oidc.introspectionUrl,
    scopes: oidc.scopes,
    allow_private_ip: oidc.protectedResourceAllowPrivateIp,
    jwks_allow_private_ip: oidc.jwksAllowPrivateIp,
    insecure_allow_http: oidc.insecureAllowHttp,
    ca_cert_path: oidc.caBundlePath,
  }
}
