import { TokenCache } from '@thv/auth/outgoing/token-cache'
import { createTokenEndpoint } from '@thv/auth/outgoing/token-endpoint'
import { createTokenUrlDiscovery } from '@thv/auth/outgoing/token-url-discovery'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { tryParseDuration } from '@thv/kernel/duration'
import type { Headers } from '@thv/mcp/client/http/http-endpoint'
import { errorObjectOf, type Rejection } from '@thv/mcp/wire-errors'
import { addCredentials } from '@thv/middleware/credentials/add-credentials'
import { createBearerFile } from '@thv/middleware/credentials/bearer-file'
import { createClientCredentials } from '@thv/middleware/credentials/client-credentials'
import { createFailureLog } from '@thv/middleware/credentials/failure-log'
import { createTokenExchange } from '@thv/middleware/credentials/token-exchange'
import { createUpstreamInjection } from '@thv/middleware/credentials/upstream-injection'
import { createUpstreamToken } from '@thv/middleware/credentials/upstream-token'
import type { Middleware } from '@thv/middleware/pipeline/middleware'
import type { Hop } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import type { ResolvedBackend } from '../discover/resolved-backend.ts'
import { LocalRefusal } from './local-refusal.ts'
import type { LoginVault } from './login-vault.ts'
import { type OutgoingScope, outgoingScope } from './outgoing-scope.ts'

export interface CredentialsDeps {
  /** For token endpoints; without a policy of its own. */
  readonly outbound: Outbound
  readonly clock: Clock
  readonly log: Log
  /** The authorization server in this program, if there is one. */
  readonly login?: LoginVault | undefined
  /** Requests carry another token of a file from now on. */
  readonly onOtherToken?: (() => void) | undefined
}

/** Credentials of one backend that are obtained when a request goes out. They go to this backend alone. */
export class BackendCredentials {
  /** They are made from the caller's token: nothing that they obtain may be shown to another caller. */
  readonly isPerCaller: boolean
  /** Headers that the credentials are in. */
  readonly withheld: readonly string[]
  readonly #backend: ResolvedBackend
  readonly #middleware: Middleware
  readonly #closing: AbortController
  /** Forwarded headers, without those that the credentials are in. */
  readonly #forwarded: Headers

  constructor(backend: ResolvedBackend, middleware: Middleware, closing: AbortController) {
    this.#backend = backend
    this.#middleware = middleware
    this.#closing = closing
    this.isPerCaller = isPerCaller(backend)
    const { withholds = [] } = middleware
    this.withheld = withholds
    this.#forwarded = Object.fromEntries(Object.entries(backend.headers).filter(([name]) => !withholds.includes(name)))
  }

  /** All headers of the next request. A promise only while a token is obtained. Throws LocalRefusal where there are no credentials. */
  readonly headers = (): Headers | Promise<Headers> => {
    const scope = outgoingScope.getStore()
    const hop = hopOf(this.#backend, this.isPerCaller ? scope : undefined)
    const prepared = this.#middleware.prepare?.(hop)
    if (prepared instanceof Promise) return prepared.then((rejection) => this.#headersOf(hop, rejection, scope))
    return this.#headersOf(hop, prepared, scope)
  }

  /** The backend answered 401. True: the credentials are forgotten, and another attempt can have others. */
  rejected(scope: OutgoingScope | undefined): boolean {
    const hop = hopOf(this.#backend, this.isPerCaller ? scope : undefined)
    hop.credentials = scope?.credentials as Hop['credentials']
    return hop.credentials !== undefined && this.#middleware.credentialsRejected?.(hop) === true
  }

  close(): void {
    this.#closing.abort()
  }

  #headersOf({ credentials }: Hop, rejection: Rejection | undefined, scope: OutgoingScope | undefined): Headers {
    if (rejection !== undefined) throw new LocalRefusal(errorObjectOf({ ...rejection, data: { backend: this.#backend.name } }), rejection)
    if (scope !== undefined) scope.credentials = credentials
    return { ...this.#forwarded, ...(credentials as Headers | undefined) }
  }
}

/** Undefined: its headers are all known already. */
export function backendCredentials(backend: ResolvedBackend, deps: CredentialsDeps): BackendCredentials | undefined {
  const closing = new AbortController()
  const middleware = middlewareOf(backend, { ...deps, signal: closing.signal })
  return middleware && new BackendCredentials(backend, middleware, closing)
}

const PER_CALLER: ReadonlySet<string> = new Set(['token_exchange', 'caller_token', 'upstream_inject'])

/** The credentials are made from the caller's token. */
export function isPerCaller({ auth }: Pick<ResolvedBackend, 'auth'>): boolean {
  return PER_CALLER.has(auth.config.type)
}

function middlewareOf({ auth }: ResolvedBackend, deps: CredentialsDeps & { readonly signal: AbortSignal }): Middleware | undefined {
  const { config, secret, authenticates, cache: settings, upstream } = auth
  const marginMs = tryParseDuration(settings.ttlOffset)
  const cache = () =>
    new TokenCache({
      clock: deps.clock,
      maxEntries: settings.enabled ? settings.maxEntries : 0,
      ...(marginMs !== undefined && { marginMs }),
    })
  const { bearerToken, clientCredentials, tokenExchange } = config
  if (config.type === 'caller_token') return callerToken
  if (upstream !== undefined && deps.login === undefined) return withoutLogin
  const ofUpstream = upstream && deps.login && { ...upstream, ...deps.login, isOnDemand: deps.login.onDemand.has(upstream.provider) }
  if (ofUpstream !== undefined && config.upstreamInject !== undefined) return createUpstreamInjection(ofUpstream, ofUpstream.tokens)
  if (bearerToken?.tokenFile !== undefined) return createBearerFile(bearerToken.tokenFile, deps)
  if (clientCredentials !== undefined) {
    const { clientId, tokenUrl, issuer = '', scopes, resource } = clientCredentials
    const url = tokenUrl === undefined ? createTokenUrlDiscovery({ ...deps, issuer }) : (): string | Promise<string> => tokenUrl
    const endpoint = createTokenEndpoint({ ...deps, url, client: clientOf(clientId, secret) })
    const parts = { endpoint, cache: cache(), failures: createFailureLog('client credentials', deps) }
    return createClientCredentials({ source: tokenUrl ?? issuer, clientId, scopes, resource }, parts)
  }
  if (tokenExchange === undefined) return undefined
  const { tokenUrl, clientId, audience, scopes, subjectTokenType, headerName: header } = tokenExchange
  const endpoint = createTokenEndpoint({ ...deps, url: () => tokenUrl, client: clientOf(clientId, secret) })
  const upstreamToken = ofUpstream && createUpstreamToken(ofUpstream, ofUpstream.tokens)
  const parts = { endpoint, cache: cache(), failures: createFailureLog('token exchange', deps), upstreamToken }
  return createTokenExchange({ tokenUrl, clientId, audience, scopes, subjectTokenType, header, authenticates }, parts)
}

/** Only the token that proved who the caller is goes on; requests of our own carry none. */
const callerToken: Middleware = {
  name: 'caller-token',
  withholds: ['authorization'],
  prepare(hop) {
    const token = hop.caller?.token
    if (token !== undefined) addCredentials(hop, { authorization: `Bearer ${token}` })
    return undefined
  },
}

/** Without the authorization server there are only requests of our own, such as those of a preview: they have no user. */
const withoutLogin: Middleware = { name: 'upstreamswap', withholds: ['authorization'] }

const NO_CLIENT: OutgoingScope = { caller: undefined, exchange: undefined }

function clientOf(id: string | undefined, secret: string | undefined) {
  return { id, ...(secret !== undefined && { secret: () => secret }) }
}

function hopOf({ name, transport }: ResolvedBackend, scope: OutgoingScope | undefined): Hop {
  const { caller, exchange, era, received } = scope ?? NO_CLIENT
  return { caller, exchange, era, backend: { name, transport }, outgoing: received, credentials: undefined, trace: undefined }
}
