import type { AuthenticationProblem, AuthenticationResult, Authenticator, Identity } from '@thv/auth/incoming/authenticator'
import { readBearer } from '@thv/auth/incoming/bearer'
import { LEEWAY_SECONDS } from '@thv/auth/incoming/claim-checks'
import { headerText } from '@thv/http/header-map'
import type { Clock } from '@thv/kernel/clock'
import { isRejection, type Rejection } from '@thv/mcp/wire-errors'
import type { Awaitable, Middleware } from '../pipeline/middleware.ts'
import type { Caller, RequestContext } from '../pipeline/request-context.ts'
import type { Challenges } from './challenges.ts'
import { principalOf } from './principal.ts'
import type { SeenClaims } from './upstream-claims.ts'

export interface AuthenticateOptions {
  /** The backend gets the client's `Authorization`, too. MCP forbids that unless the token was made for the backend. */
  readonly forwardToken: boolean
}

export interface AuthenticateDeps {
  readonly authenticator: Pick<Authenticator, 'authenticate'>
  readonly challenges: Challenges
  readonly clock: Clock
  /** A token that verifies and is not accepted any more. For every request, so without a promise. */
  readonly isRevoked?: ((claims: Identity['claims']) => boolean) | undefined
  /** The claims that policies see, where they are not those of the token. */
  readonly seenClaims?: SeenClaims | undefined
}

const REVOKED: AuthenticationProblem = { kind: 'rejected', code: 'invalid_token', text: 'the token was revoked' }

/** Between attempts to end a stream that carries answers. */
const CALLS_UNDER_WAY_MS = 1_000

/**
 * Requires a bearer token of every request to a guarded route, whatever its method, before the body is read, and settles the caller. A
 * token that is known takes no promise.
 */
export function createAuthenticate({ forwardToken }: AuthenticateOptions, deps: AuthenticateDeps): Middleware {
  const { authenticator, challenges, clock } = deps
  /** Each verified token has an identity object of its own, which lives as long as the cache keeps the token. */
  const callers = new WeakMap<Identity, Caller>()

  function settle(context: RequestContext, result: AuthenticationResult): Awaitable<Rejection | undefined> {
    if (!result.ok) return challenges.unauthenticated(context, result.problem)
    const { identity } = result
    if (deps.isRevoked?.(identity.claims) === true) return challenges.unauthenticated(context, REVOKED)
    let caller = callers.get(identity)
    if (caller === undefined) {
      caller = { principal: principalOf(identity), identity, token: tokenOf(context) }
      callers.set(identity, caller)
    }
    context.caller = caller
    if (deps.seenClaims === undefined) return undefined
    const seen = deps.seenClaims(context, caller)
    return 'then' in seen ? seen.then((ready) => become(context, ready)) : become(context, seen)
  }

  function become(context: RequestContext, seen: Caller | Rejection): Rejection | undefined {
    if (isRejection(seen)) return seen
    context.caller = seen
    return undefined
  }

  function endStreamAfter(ms: number, context: RequestContext): void {
    context.streamTimer = clock.setTimer(ms, () => {
      if (context.endStream?.() === false) endStreamAfter(CALLS_UNDER_WAY_MS, context)
    })
  }

  return {
    name: 'authenticate',
    open(context) {
      const result = authenticator.authenticate(authorizationOf(context))
      return result instanceof Promise ? result.then((late) => settle(context, late)) : settle(context, result)
    },
    streaming(context) {
      const expiresAt = context.caller.identity?.expiresAt
      if (expiresAt !== undefined) endStreamAfter(expiresAt + LEEWAY_SECONDS * 1_000 - clock.now(), context)
    },
    withholds: forwardToken ? ['cookie', 'proxy-authorization'] : ['authorization', 'cookie', 'proxy-authorization'],
  }
}

/** Several are no credentials at all: somebody on the way may have looked at another one. */
function authorizationOf({ exchange }: RequestContext): string | undefined {
  const value = exchange.headers['authorization']
  return typeof value === 'string' && exchange.headerCount('authorization') > 1 ? AMBIGUOUS : headerText(value)
}

/** No scheme of any kind, so that it is malformed. */
const AMBIGUOUS = ','

function tokenOf(context: RequestContext): string | undefined {
  const reading = readBearer(authorizationOf(context))
  return typeof reading === 'object' ? reading.token : undefined
}
