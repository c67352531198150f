import type { Identity } from '@thv/auth/incoming/authenticator'
import { bearerChallenge } from '@thv/auth/incoming/challenge'
import type { UpstreamKey, UpstreamTokenResult, UpstreamTokens } from '@thv/authserver/upstream-tokens'
import { META, metaOf } from '@thv/mcp/envelope'
import { isObject } from '@thv/mcp/json-rpc'
import { INPUT_METHODS, METHODS } from '@thv/mcp/methods'
import type { ParsedMessage, ParsedRequest } from '@thv/mcp/parse-body'
import { opensLinks } from '@thv/mcp/url-elicitation'
import { type LoginLink, type Rejection, reject } from '@thv/mcp/wire-errors'
import { upstreamScope } from '@thv/runconfig/auth-server-config'
import { metadataAddress, type ProtectedResource } from '../authenticate/protected-resource.ts'
import type { Caller, Hop } from '../pipeline/request-context.ts'
import { TOKEN_MISSING } from './token-rejection.ts'

export interface UpstreamTokenOptions {
  /** Name of the upstream provider. */
  readonly provider: string
  /** Issuer of the embedded authorization server: only subjects of its tokens are users of the vault. */
  readonly issuer: string
  /** The user logs in to the provider when a call first needs it, and only sessions in which that happened may use its token. */
  readonly isOnDemand?: boolean | undefined
  /** For the challenges. */
  readonly resource?: ProtectedResource | undefined
}

export type UsableToken = UpstreamTokenResult & { readonly kind: 'usable' }

/** The token that a caller has at an upstream provider. */
export interface UpstreamToken {
  /** Without a promise when the token is near. Not usable: the call fails, with the challenge that leads to the login of this provider. */
  of(hop: Hop): UsableToken | Rejection | Promise<UsableToken | Rejection>
  rejected(hop: Hop, accessToken: string): void
}

const REALM = 'toolhive'

export function createUpstreamToken(options: UpstreamTokenOptions, tokens: UpstreamTokens): UpstreamToken {
  const { provider, issuer, isOnDemand = false, resource } = options
  const scope = upstreamScope(provider)
  const question = `login-${provider}`
  const keysOf = createKeys(provider)

  function judged(hop: Hop, result: UpstreamTokenResult): UsableToken | Rejection {
    if (result.kind === 'usable') return result
    if (result.kind === 'unavailable')
      return reject('credentials_unavailable', { headers: { 'retry-after': String(Math.max(1, Math.ceil(result.retryAfterMs / 1_000))) } })
    return challenge(hop, result.kind)
  }

  /** Leads to this login alone, for a call whose client may show it to the user. */
  function link({ caller, era, outgoing }: Hop): LoginLink | undefined {
    const identity = caller?.identity
    const family = identity?.claims['tsid']
    const isPossible = era === 'modern' ? takesQuestion(outgoing, question) : era === 'legacy' && asksForInput(outgoing)
    if (identity === undefined || typeof family !== 'string' || !isPossible) return undefined
    const url = tokens.connectUrl(keysOf(identity), family)
    return url === undefined ? undefined : { url, message: `Log in to ${provider}, which this call needs.` }
  }

  function questionWith(found: LoginLink): Rejection {
    const params = { mode: 'url', ...found }
    const result = { resultType: 'input_required', inputRequests: { [question]: { method: METHODS.elicit, params } } }
    return reject('login_needed', { detail: provider, httpStatus: 200, inBand: true, result })
  }

  /** Names all scopes that the next token has to have: clients ask for exactly these. */
  function challenge(hop: Hop, kind: 'missing' | 'ended'): Rejection {
    const found = link(hop)
    if (found !== undefined && hop.era === 'modern') return questionWith(found)
    const isMissing = kind === 'missing'
    const { exchange } = hop
    const family = hop.caller?.identity?.claims['tsid']
    if (!isMissing && typeof family === 'string') tokens.needsLogin(family, provider)
    const detail = `the call needs a login to ${provider}`
    const text = bearerChallenge({
      realm: REALM,
      error: isMissing ? 'insufficient_scope' : 'invalid_token',
      description: detail,
      resourceMetadata: exchange && resource ? metadataAddress(resource, exchange, exchange.path) : undefined,
      scope: [...new Set([...grantedScopes(hop.caller), scope])].join(' '),
    })
    const headers = { 'www-authenticate': text }
    // Whether a client of the handshake era knows links is written in its session.
    return reject(isMissing ? 'insufficient_scope' : 'unauthenticated', { detail, headers, ...(found !== undefined && { links: [found] }) })
  }

  function used(hop: Hop, identity: Identity): UsableToken | Rejection | Promise<UsableToken | Rejection> {
    const result = tokens.use(keysOf(identity))
    return 'then' in result ? result.then((ready) => judged(hop, ready)) : judged(hop, result)
  }

  /** The session did not log in to the provider. It may have joined it since. */
  function joined(hop: Hop, identity: Identity): UsableToken | Rejection | Promise<UsableToken | Rejection> {
    const family = identity.claims['tsid']
    const hasJoined = typeof family === 'string' && tokens.hasJoined(family, provider)
    if (typeof hasJoined === 'boolean') return hasJoined ? used(hop, identity) : challenge(hop, 'missing')
    return hasJoined.then(
      (has) => (has ? used(hop, identity) : challenge(hop, 'missing')),
      () => judged(hop, STORE_AWAY),
    )
  }

  return {
    of(hop) {
      const identity = hop.caller?.identity
      if (identity === undefined || identity.issuer !== issuer) return TOKEN_MISSING
      const isOpen = !isOnDemand || grantedScopes(hop.caller).includes(scope)
      return isOpen ? used(hop, identity) : joined(hop, identity)
    },
    rejected({ caller }, accessToken) {
      if (caller?.identity !== undefined) tokens.rejected(keysOf(caller.identity), accessToken)
    },
  }
}

const STORE_AWAY: UpstreamTokenResult = { kind: 'unavailable', retryAfterMs: 1_000 }

/**
 * The call may be answered with a question (MCP 2026-07-28, multi round-trip requests), its client declared URL elicitation, and the user has not
 * declined. A call in the middle of a conversation with the backend is not interrupted: what was said in it would be lost.
 */
function takesQuestion(message: ParsedMessage | undefined, question: string): boolean {
  if (!asksForInput(message) || !opensLinks(metaOf(message.message)?.[META.clientCapabilities])) return false
  const { inputResponses, requestState } = message.message.params ?? {}
  const answer = isObject(inputResponses) ? inputResponses[question] : undefined
  return requestState === undefined && !(isObject(answer) && (answer['action'] === 'decline' || answer['action'] === 'cancel'))
}

/** A request that the user may be asked about. */
function asksForInput(message: ParsedMessage | undefined): message is ParsedRequest {
  return message?.kind === 'request' && INPUT_METHODS.has(message.method)
}

function grantedScopes(caller: Caller | undefined): readonly string[] {
  const { scope, scp } = caller?.identity?.claims ?? {}
  if (typeof scope === 'string') return scope.split(' ').filter((each) => each !== '')
  return Array.isArray(scp) ? scp.filter((each) => typeof each === 'string') : []
}

/** One key per identity: a verified token has the same one for all its calls. */
function createKeys(provider: string): (identity: { readonly subject: string }) => UpstreamKey {
  const made = new WeakMap<object, UpstreamKey>()
  return (identity) => {
    const known = made.get(identity)
    if (known !== undefined) return known
    const key = { account: identity.subject, provider }
    made.set(identity, key)
    return key
  }
}
