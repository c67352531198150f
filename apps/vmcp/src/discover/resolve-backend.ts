import { type AddressPolicy, vetUrl } from '@thv/http/outbound/address-policy'
import { apiServerAddresses } from '@thv/http/outbound/api-server-addresses'
import type { CaBundle } from '@thv/http/outbound/ca-bundle'
import { tryParseDuration } from '@thv/kernel/duration'
import { ThvError } from '@thv/kernel/errors'
import { InvalidOptions } from '@thv/middleware/pipeline/invalid-options'
import { checkedHeader, checkedHeaderName } from '@thv/middleware/pipeline/outgoing-header'
import { upstreamProblem, upstreamProvider } from '@thv/vmcpconfig/upstream-problem'
import type { BackendAuthConfig, BackendConfig, VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { type Env, forwardedHeaders } from './forwarded-headers.ts'
import type { ResolvedBackend } from './resolved-backend.ts'

/** A backend of the file, or a member of the group in the same shape. */
export interface BackendSource {
  readonly backend: BackendConfig
  /** Authentication that the member names itself; `outgoingAuth.backends` of the file wins over it. */
  readonly ownAuth?: BackendAuthConfig | undefined
  readonly authConfigRef?: string | undefined
  readonly ca: CaBundle | undefined
  /** Variables with the secrets that the configuration names. */
  readonly env: Env
}

const DEFAULT_TIMEOUT_MS = 30_000

/** Everything that is needed to call a backend, for files and for members of a group alike. Pure. Throws `vmcp_config_invalid`, naming the field. */
export function resolveBackend({ backend, ownAuth, authConfigRef, ca, env }: BackendSource, config: VmcpConfig): ResolvedBackend {
  const { name, url, transport } = backend
  const { timeouts } = config.operational
  const policy = policyOf(backend, config, env)
  const verdict = vetUrl(url, policy)
  if (!verdict.ok) throw invalid(`backends.${name}.url: ${verdict.message}`)
  const given = Object.hasOwn(config.outgoingAuth.backends, name) ? config.outgoingAuth.backends[name] : undefined
  const at =
    given !== undefined ? `outgoingAuth.backends.${name}` : ownAuth !== undefined ? `authentication of ${name}` : 'outgoingAuth.default'
  const auth = given ?? ownAuth ?? config.outgoingAuth.default ?? UNAUTHENTICATED
  // Also where an entry takes the place of a proxy of its name.
  if (auth.type === 'caller_token' && backend.type === 'entry') throw invalid(`${at}.type: caller_token is not for entries`)
  const timeout = Object.hasOwn(timeouts.perWorkload, name) ? timeouts.perWorkload[name] : undefined
  return {
    name,
    url,
    transport,
    authType: auth.type,
    auth: {
      config: auth,
      secret: clientSecret(auth, at, env),
      authenticates: config.incomingAuth.type === 'oidc',
      cache: config.tokenCache,
      upstream: upstreamOf(auth, at, config),
    },
    authConfigRef: auth === ownAuth ? authConfigRef : undefined,
    ca,
    policy,
    // Headers that authenticate win over forwarded ones.
    headers: { ...checkedHeaders(forwardedHeaders(name, env), `headers of ${name}`), ...fixedCredentials(auth, at, env) },
    timeoutMs: tryParseDuration(timeout ?? timeouts.default) ?? DEFAULT_TIMEOUT_MS,
  }
}

const UNAUTHENTICATED: BackendAuthConfig = { type: 'unauthenticated' }

/** Credentials that are the same for every request. */
function fixedCredentials({ headerInjection, bearerToken }: BackendAuthConfig, at: string, env: Env): Readonly<Record<string, string>> {
  if (bearerToken?.tokenEnv !== undefined) {
    const token = variableOf(bearerToken.tokenEnv, `${at}.bearerToken.tokenEnv`, env)
    return checkedHeaders({ Authorization: `Bearer ${token.trim()}` }, `${at}.bearerToken`)
  }
  if (headerInjection === undefined) return {}
  const { headerName, headerValue, headerValueEnv: variable = '' } = headerInjection
  const value = headerValue ?? variableOf(variable, `${at}.headerInjection.headerValueEnv`, env)
  return checkedHeaders({ [headerName]: value }, `${at}.headerInjection`)
}

function clientSecret({ clientCredentials, tokenExchange }: BackendAuthConfig, at: string, env: Env): string | undefined {
  if (clientCredentials !== undefined) return variableOf(clientCredentials.clientSecretEnv, `${at}.clientCredentials.clientSecretEnv`, env)
  if (tokenExchange === undefined) return undefined
  const { clientSecret: given, clientSecretEnv: variable, headerName } = tokenExchange
  if (headerName !== undefined) inField(`${at}.tokenExchange.headerName`, () => checkedHeaderName(headerName))
  return given ?? (variable === undefined ? undefined : variableOf(variable, `${at}.tokenExchange.clientSecretEnv`, env))
}

function upstreamOf(auth: BackendAuthConfig, at: string, config: VmcpConfig): ResolvedBackend['auth']['upstream'] {
  const problem = upstreamProblem(config, auth)
  if (problem !== undefined) throw invalid(`${at}.${problem}`)
  const provider = upstreamProvider(config, auth)
  return provider === undefined ? undefined : { provider }
}

function variableOf(variable: string, field: string, env: Env): string {
  const value = env[variable]
  if (value === undefined || value === '') throw invalid(`${field}: variable ${variable} is missing or empty`)
  return value
}

function checkedHeaders(headers: Readonly<Record<string, string>>, at: string): Readonly<Record<string, string>> {
  return inField(at, () => Object.fromEntries(Object.entries(headers).map(([name, value]) => checkedHeader(name, value))))
}

function inField<T>(field: string, check: () => T): T {
  try {
    return check()
  } catch (error) {
    if (error instanceof InvalidOptions) throw invalid(`${field}: ${error.message}`)
    throw error
  }
}

/**
 * Outside of a cluster the servers of this machine are what people want to join. Proxies of the cluster have private addresses: refusing those is
 * about entries.
 */
function policyOf({ type, allowPrivate }: BackendConfig, { remotePolicy }: VmcpConfig, env: Env): AddressPolicy {
  const blockedAddresses = apiServerAddresses({ env })
  const allowLoopback = remotePolicy?.allowLoopback ?? !env['VMCP_NAMESPACE']
  if (remotePolicy === undefined || type !== 'entry') return { allowLoopback, blockedAddresses }
  return { ...remotePolicy, allowPrivate: remotePolicy.allowPrivate || allowPrivate, blockedAddresses }
}

export function invalid(message: string): ThvError {
  return new ThvError('vmcp_config_invalid', message)
}
