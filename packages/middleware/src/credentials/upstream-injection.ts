import { bearerChallenge } from '@thv/auth/incoming/challenge'
import type { UpstreamKey, UpstreamTokenResult, UpstreamTokens } from '@thv/authserver/upstream-tokens'
import { type Rejection, reject } from '@thv/mcp/wire-errors'
import { upstreamScope } from '@thv/runconfig/auth-server-config'
import { metadataAddress, type ProtectedResource } from '../authenticate/protected-resource.ts'
import type { Middleware } from '../pipeline/middleware.ts'
import { checkedHeaderName } from '../pipeline/outgoing-header.ts'
import type { Caller, Hop } from '../pipeline/request-context.ts'
import { addCredentials } from './add-credentials.ts'
import { TOKEN_MISSING } from './token-rejection.ts'

export type { UpstreamTokens }

export interface UpstreamInjectionOptions {
  /** Name of the upstream provider whose token the backend gets. */
  readonly provider: string
  /** Carries the token instead of Authorization. */
  readonly header?: string | undefined
  /** Issuer of the embedded authorization server: only subjects of its tokens are users of the vault. */
  readonly issuer: string
  /** The user logs in to the provider when a call first needs it, and only sessions in which that happened may use its token. */
  readonly isOnDemand?: boolean | undefined
  /** For the challenges. */
  readonly resource?: ProtectedResource | undefined
}

const REALM = 'toolhive'

/**
 * Sends the backend the token that the caller has at an upstream provider. The caller's own token never reaches it. A token that is near costs no promise. A
 * provider without a usable token fails this call alone, with the challenge that leads to its login. Throws InvalidOptions.
 */
export function createUpstreamInjection(options: UpstreamInjectionOptions, tokens: UpstreamTokens): Middleware {
  const { provider, header = 'authorization', issuer, isOnDemand = false, resource } = options
  const name = checkedHeaderName(header)
  const scope = upstreamScope(provider)
  const headersOf = createHeaders(name)
  const keysOf = createKeys(provider)

  function apply(hop: Hop, result: UpstreamTokenResult): Rejection | undefined {
    if (result.kind === 'usable') {
      addCredentials(hop, headersOf(result))
      return undefined
    }
    if (result.kind === 'unavailable')
      return reject('credentials_unavailable', { headers: { 'retry-after': String(Math.max(1, Math.ceil(result.retryAfterMs / 1_000))) } })
    return challenge(hop, result.kind)
  }

  /** Names all scopes that the next token has to have: clients ask for exactly these. */
  function challenge(hop: Hop, kind: 'missing' | 'ended'): Rejection {
    const isMissing = kind === 'missing'
    const { exchange } = hop
    const family = hop.caller?.identity?.claims['tsid']
    if (!isMissing && typeof family === 'string') tokens.needsLogin(family, provider)
    const text = bearerChallenge({
      realm: REALM,
      error: isMissing ? 'insufficient_scope' : 'invalid_token',
      description: `the call needs a login to ${provider}`,
      resourceMetadata: exchange && resource ? metadataAddress(resource, exchange, exchange.path) : undefined,
      scope: [...new Set([...grantedScopes(hop.caller), scope])].join(' '),
    })
    return reject(isMissing ? 'insufficient_scope' : 'unauthenticated', { headers: { 'www-authenticate': text } })
  }

  return {
    name: 'upstreamswap',
    withholds: ['authorization'],
    prepare(hop) {
      const { caller } = hop
      if (caller === undefined) return undefined // a request of our own has no user
      const { identity } = caller
      if (identity === undefined || identity.issuer !== issuer) return TOKEN_MISSING
      if (isOnDemand && !grantedScopes(caller).includes(scope)) return challenge(hop, 'missing')
      const result = tokens.use(keysOf(identity))
      return 'then' in result ? result.then((ready) => apply(hop, ready)) : apply(hop, result)
    },
    credentialsRejected({ caller, credentials }) {
      const sent = credentials?.[name]
      if (caller?.identity === undefined || typeof sent !== 'string') return false
      tokens.rejected(keysOf(caller.identity), sent.slice('Bearer '.length))
      return true
    },
  }
}

function grantedScopes(caller: Caller | undefined): readonly string[] {
  const { scope, scp } = caller?.identity?.claims ?? {}
  if (typeof scope === 'string') return scope.split(' ').filter((each) => each !== '')
  return Array.isArray(scp) ? scp.filter((each) => typeof each === 'string') : []
}

/** One header map per token, so that hops share it. */
function createHeaders(name: string): (result: UpstreamTokenResult & { kind: 'usable' }) => { [name: string]: string } {
  const made = new WeakMap<UpstreamTokenResult, { [name: string]: string }>()
  return (result) => {
    const known = made.get(result)
    if (known !== undefined) return known
    const headers = { [name]: `Bearer ${result.accessToken}` }
    made.set(result, headers)
    return headers
  }
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
