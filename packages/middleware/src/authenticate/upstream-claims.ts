import type { Identity } from '@thv/auth/incoming/authenticator'
import { isObject } from '@thv/mcp/json-rpc'
import { isRejection, type Rejection } from '@thv/mcp/wire-errors'
import type { UpstreamToken, UsableToken } from '../credentials/upstream-token.ts'
import type { Awaitable } from '../pipeline/middleware.ts'
import type { Caller, RequestContext } from '../pipeline/request-context.ts'

/** Settles the claims that policies see. A promise only where something has to be looked up. */
export type SeenClaims = (context: RequestContext, caller: Caller) => Awaitable<Caller | Rejection>

/** Claims that are about the token of the client, whatever the provider says. */
const OWN = ['scope', 'scp', 'tsid', 'client_id', 'act', 'exp', 'iat', 'jti', 'aud'] as const

/**
 * Policies see the claims that an upstream provider makes of the caller: those of its access token, or of its ID token where that cannot be read.
 * Both came from the provider itself. Without a usable token of the provider nothing passes: the caller is led to its login. A provider
 * with neither leaves the claims of the client's own token.
 */
export function createUpstreamClaims(token: UpstreamToken): SeenClaims {
  const made = new WeakMap<Caller, { readonly of: UsableToken; readonly caller: Caller }>()

  function seen(caller: Caller, found: UsableToken | Rejection): Caller | Rejection {
    if (isRejection(found)) return found
    const known = made.get(caller)
    if (known?.of === found) return known.caller
    const claims = claimsOf(found)
    const { identity } = caller
    const changed = claims === undefined || identity === undefined ? caller : { ...caller, identity: withClaims(identity, claims) }
    made.set(caller, { of: found, caller: changed })
    return changed
  }

  return (context, caller) => {
    context.caller = caller
    const found = token.of(context)
    return 'then' in found ? found.then((ready) => seen(caller, ready)) : seen(caller, found)
  }
}

function withClaims(identity: Identity, claims: Readonly<Record<string, unknown>>): Identity {
  const own = OWN.map((name) => [name, identity.claims[name]] as const).filter(([, value]) => value !== undefined)
  const others = Object.entries(claims).filter(([name]) => !(OWN as readonly string[]).includes(name))
  return { ...identity, claims: Object.fromEntries([...others, ...own]) }
}

function claimsOf({ accessToken, idToken }: UsableToken): Readonly<Record<string, unknown>> | undefined {
  return payloadOf(accessToken) ?? (idToken === undefined ? undefined : payloadOf(idToken))
}

/** Undefined: the token is not a JWT. */
function payloadOf(token: string): Readonly<Record<string, unknown>> | undefined {
  const parts = token.split('.')
  if (parts.length !== 3) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    return undefined // opaque, with two dots
  }
}
