import type { AuthenticationProblem, AuthenticationResult, Authenticator, Identity } from '@thv/auth/incoming/authenticator'
import { bearerChallenge } from '@thv/auth/incoming/challenge'
import type { IncomingProvider } from '@thv/auth/incoming/incoming-provider'
import { createPublicPaths } from '@thv/auth/incoming/public-paths'
import { type AuthenticatorStats, createAuthenticator } from '@thv/auth/incoming/token-authenticator'
import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import type { Exchange } from '@thv/http/server/exchange'
import { sendJson } from '@thv/http/server/respond'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'
import { type Access, type Caller, openAccess } from '../api/http/access-port.ts'
import { sendApiError } from '../api/http/api-error.ts'
import type { AuthConfig, OAuthConfig, ProviderConfig } from './auth-config.ts'
import { callerOf, publicCaller } from './caller.ts'
import { covers, coversAll } from './claim-gates.ts'
import { writeTokenAccess } from './write-token.ts'

export interface AccessDeps {
  readonly clock: Clock
  readonly log: Logger
  /** Without a policy. One is made, and closed at the end, unless given. */
  readonly outbound?: Outbound
  readonly env?: Readonly<Record<string, string | undefined>>
}

export interface RegistryAccess extends Access, AsyncDisposable {
  /** For metrics; undefined in anonymous mode. */
  readonly stats: AuthenticatorStats | undefined
}

const builtInPublicPaths: readonly string[] = ['/openapi.json', '/openapi.yaml', '/.well-known']

const METADATA_PATH = '/.well-known/oauth-protected-resource'

/** Never waits for a provider: one that is down costs its callers a 503, not the server its start. */
export function createAccess(auth: AuthConfig, deps: AccessDeps): RegistryAccess {
  if (auth.mode === 'anonymous') {
    const access = auth.writeTokenFile === undefined ? openAccess : writeTokenAccess(auth.writeTokenFile, deps.log)
    return { ...access, stats: undefined, [Symbol.asyncDispose]: async () => {} }
  }
  const { oauth } = auth
  if (oauth === undefined) throw new ThvError('registry_config_invalid', 'auth.oauth is needed in mode oauth')
  const { clock, log } = deps
  const outbound = deps.outbound ?? createOutbound({ clock, maxConnections: 64, maxWaiting: 256 })
  const allowHttp = (deps.env ?? process.env)['THV_REGISTRY_INSECURE_URL']?.trim().toLowerCase() === 'true'
  const authenticator = createAuthenticator({
    providers: oauth.providers.map((provider) => incomingProvider(provider, allowHttp)),
    outbound,
    clock,
    onProblem: (provider, error) => log.warn('identity provider cannot be asked', { provider, problem: errorMessage(error) }),
    onRejected: (provider, reason) => log.debug('token rejected', { provider, reason }),
  })
  void authenticator.warm()
  return {
    ...accessBy(authenticator, auth, oauth),
    get stats() {
      return authenticator.stats
    },
    async [Symbol.asyncDispose]() {
      await authenticator[Symbol.asyncDispose]()
      if (deps.outbound === undefined) await outbound.close()
    },
  }
}

/** The part that only decides and answers. */
function accessBy(authenticator: Authenticator, { publicPaths, authz }: AuthConfig, oauth: OAuthConfig): Access {
  const isPublic = createPublicPaths([...builtInPublicPaths, ...publicPaths])
  const callers = new WeakMap<Identity, Caller>()

  function settle(exchange: Exchange, result: AuthenticationResult): Caller | undefined {
    if (!result.ok) {
      refuse(exchange, result.problem, oauth)
      return undefined
    }
    const { identity } = result
    const known = callers.get(identity)
    if (known) return known
    const caller = callerOf(identity, authz)
    callers.set(identity, caller)
    return caller
  }

  return {
    anonymous: false,
    writesNeedToken: false,
    authenticate(exchange, needed) {
      if (needed === undefined && isPublic(exchange.path)) return publicCaller
      const result = authenticator.authenticate(exchange.headers['authorization'] as string | undefined)
      return result instanceof Promise ? result.then((late) => settle(exchange, late)) : settle(exchange, result)
    },
    handle(exchange) {
      const { path, method } = exchange
      if (oauth.resourceUrl === undefined || !(path === METADATA_PATH || path.startsWith(`${METADATA_PATH}/`))) return false
      if (method === 'GET' || method === 'HEAD') sendJson(exchange, resourceMetadata(oauth))
      else sendApiError(exchange, 405, { error: 'method not allowed', headers: ['Allow', 'GET, HEAD'] })
      return true
    },
    hasRole: (caller, role) => caller.roles.has(role),
    maySee: (caller, claims) => !caller.gated || covers(caller.claims, claims),
    maySet: (caller, claims) => !caller.gated || coversAll(caller.claims, claims),
  }
}

/** RFC 9728: whom to ask for a token. */
export function resourceMetadata({ resourceUrl, providers, scopesSupported }: OAuthConfig): object {
  const issuers = [...new Set(providers.map(({ issuerUrl }) => issuerUrl))]
  return {
    resource: resourceUrl,
    authorization_servers: issuers,
    ...(scopesSupported && { scopes_supported: scopesSupported }),
    bearer_methods_supported: ['header'],
  }
}

function refuse(exchange: Exchange, problem: AuthenticationProblem, { realm, resourceUrl }: OAuthConfig): void {
  const { code, text } = problem
  if (problem.kind === 'unavailable') {
    sendApiError(exchange, 503, { error: text, code, headers: ['Retry-After', String(problem.retryAfterSeconds)] })
    return
  }
  const metadata = resourceUrl === undefined ? undefined : `${resourceUrl.replace(/\/+$/, '')}${METADATA_PATH}`
  const challenge = bearerChallenge({ realm, error: code, description: text, resourceMetadata: metadata })
  sendApiError(exchange, 401, { error: text, code, headers: ['WWW-Authenticate', challenge] })
}

function incomingProvider(config: ProviderConfig, allowHttp: boolean): IncomingProvider {
  const { name, issuerUrl, audience, jwksUrl, introspectionUrl, clientId, clientSecretFile, caCertPath, authTokenFile, allowPrivateIP } =
    config
  return {
    name,
    issuer: issuerUrl,
    audience,
    jwksUrl,
    introspection: introspectionUrl === undefined ? undefined : { url: introspectionUrl, clientId, clientSecretFile },
    caCertPath,
    authTokenFile,
    allowPrivateIP,
    allowHttp,
  }
}
