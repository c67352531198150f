import { readBearer } from '@thv/auth/incoming/bearer'
import { purposeOf, type TokenCache, type TokenResult, tokenKey } from '@thv/auth/outgoing/token-cache'
import type { TokenEndpoint } from '@thv/auth/outgoing/token-endpoint'
import { isRejection, type Rejection } from '@thv/mcp/wire-errors'
import type { Awaitable, Middleware } from '../pipeline/middleware.ts'
import { checkedHeaderName } from '../pipeline/outgoing-header.ts'
import type { Hop } from '../pipeline/request-context.ts'
import { addCredentials } from './add-credentials.ts'
import type { FailureLog } from './failure-log.ts'
import { TOKEN_MISSING, tokenRejection } from './token-rejection.ts'
import type { UpstreamToken, UsableToken } from './upstream-token.ts'

export interface TokenExchangeOptions {
  readonly tokenUrl: string
  readonly clientId?: string | undefined
  readonly audience?: string | undefined
  readonly scopes: readonly string[]
  /** A URN, or the last word of one. */
  readonly subjectTokenType?: string | undefined
  /** Carries the new token instead of Authorization. */
  readonly header?: string | undefined
  /** Callers are authenticated: only the token that proved who they are is exchanged. Otherwise any bearer token is. */
  readonly authenticates: boolean
}

export interface TokenExchangeDeps {
  readonly endpoint: TokenEndpoint
  readonly cache: TokenCache
  readonly failures: FailureLog
  /** The token that is exchanged instead of the caller's own. */
  readonly upstreamToken?: UpstreamToken | undefined
}

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const TYPE_URN = 'urn:ietf:params:oauth:token-type:'

/**
 * Exchanges the token of the caller for one that the backend accepts (RFC 8693). The caller's own token never reaches the backend.
 * A token that is in the cache costs no promise. Throws InvalidOptions.
 */
export function createTokenExchange(options: TokenExchangeOptions, deps: TokenExchangeDeps): Middleware {
  const { endpoint, cache, failures, upstreamToken } = deps
  const { tokenUrl, clientId, audience, scopes, header = 'authorization', authenticates } = options
  const name = checkedHeaderName(header)
  const type = urnOf(options.subjectTokenType ?? 'access_token')
  const purpose = purposeOf([tokenUrl, clientId, audience, scopes, type])
  /** One header map per token, so that hops share it. */
  const headersOf = createHeaders(name)

  function formFor(subject: string): URLSearchParams {
    const form = new URLSearchParams({ grant_type: GRANT, subject_token: subject, subject_token_type: type })
    form.set('requested_token_type', `${TYPE_URN}access_token`)
    if (audience !== undefined) form.set('audience', audience)
    if (scopes.length > 0) form.set('scope', scopes.join(' '))
    return form
  }

  function apply(hop: Hop, result: TokenResult): Rejection | undefined {
    if (!result.ok) return tokenRejection(result.failure)
    addCredentials(hop, headersOf(result))
    return undefined
  }

  async function exchange(hop: Hop, key: string, subject: string): Promise<Rejection | undefined> {
    const request = () => endpoint.request(formFor(subject), { isExchange: true })
    const subjectEnd = upstreamToken === undefined ? hop.caller?.identity?.expiresAt : undefined
    const result = await cache.fetch(key, request, { subjectEnd, onFailure: failures.report })
    // Another one may be accepted: the vault refreshes it.
    if (!result.ok && result.failure.kind === 'subject') upstreamToken?.rejected(hop, subject)
    return apply(hop, result)
  }

  function exchanged(hop: Hop, subject: string): Awaitable<Rejection | undefined> {
    const key = tokenKey(purpose, subject)
    const known = cache.get(key)
    return known === undefined ? exchange(hop, key, subject) : apply(hop, known)
  }

  function ofUpstream(hop: Hop, found: UsableToken | Rejection): Awaitable<Rejection | undefined> {
    return isRejection(found) ? found : exchanged(hop, found.accessToken)
  }

  /** Undefined: it is not near. */
  function subjectNow(hop: Hop): string | undefined {
    if (upstreamToken === undefined) return subjectOf(hop, authenticates)
    const found = upstreamToken.of(hop)
    return 'accessToken' in found ? found.accessToken : undefined
  }

  return {
    name: 'tokenexchange',
    withholds: ['authorization'],
    prepare(hop) {
      if (hop.caller === undefined) return undefined // there is no token to exchange for a request of our own
      if (upstreamToken !== undefined) {
        const found = upstreamToken.of(hop)
        return 'then' in found ? found.then((ready) => ofUpstream(hop, ready)) : ofUpstream(hop, found)
      }
      const subject = subjectOf(hop, authenticates)
      return subject === undefined ? TOKEN_MISSING : exchanged(hop, subject)
    },
    credentialsRejected(hop) {
      const subject = hop.caller === undefined ? undefined : subjectNow(hop)
      const sent = hop.credentials?.[name]
      return subject !== undefined && typeof sent === 'string' && cache.reject(tokenKey(purpose, subject), sent.slice('Bearer '.length))
    },
  }
}

function subjectOf({ caller, exchange }: Hop, authenticates: boolean): string | undefined {
  if (caller?.token !== undefined || authenticates) return caller?.token
  const authorization = exchange?.headers['authorization']
  const bearer = typeof authorization === 'string' ? readBearer(authorization) : 'malformed'
  return typeof bearer === 'object' ? bearer.token : undefined
}

function createHeaders(name: string): (result: TokenResult & { ok: true }) => { [name: string]: string } {
  const made = new WeakMap<TokenResult, { [name: string]: string }>()
  return (result) => {
    const known = made.get(result)
    if (known !== undefined) return known
    const headers = { [name]: result.value }
    made.set(result, headers)
    return headers
  }
}

function urnOf(type: string): string {
  return type.includes(':') ? type : `${TYPE_URN}${type}`
}
