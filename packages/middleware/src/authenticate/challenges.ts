import type { AuthenticationProblem } from '@thv/auth/incoming/authenticator'
import { bearerChallenge } from '@thv/auth/incoming/challenge'
import { type Rejection, reject } from '@thv/mcp/wire-errors'
import type { RequestContext } from '../pipeline/request-context.ts'
import { metadataAddress, type ProtectedResource } from './protected-resource.ts'

/** Rejections that tell a client how to come back with a token that is accepted (RFC 6750 §3, RFC 9728 §5.1). */
export interface Challenges {
  /** 401, or 503 when no provider could be asked. */
  unauthenticated(context: RequestContext, problem: AuthenticationProblem): Rejection
  /** 403: the token is good, but the call needs all of these scopes. */
  insufficientScope(context: RequestContext, scopes: readonly string[]): Rejection
}

export interface ChallengeOptions {
  readonly realm: string
  readonly resource: ProtectedResource
}

export function createChallenges({ realm, resource }: ChallengeOptions): Challenges {
  const scope = resource.scopes.length > 0 ? resource.scopes.join(' ') : undefined
  // A client of HTTP+SSE knows the address of its stream; at `/` that is also where it sends messages.
  const metadataOf = ({ exchange }: RequestContext) =>
    metadataAddress(resource, exchange, exchange.path === '/messages' ? '/sse' : exchange.path)
  return {
    unauthenticated(context, problem) {
      const { kind, code, text } = problem
      if (kind === 'unavailable')
        return reject('identity_provider_unavailable', { headers: { 'retry-after': String(problem.retryAfterSeconds) } })
      // A client that sent nothing has made no mistake (RFC 6750 §3.1).
      const failure = kind === 'missing' ? {} : { error: code, description: text }
      const challenge = bearerChallenge({ realm, ...failure, resourceMetadata: metadataOf(context), scope })
      return reject('unauthenticated', { detail: text, headers: { 'www-authenticate': challenge } })
    },
    insufficientScope(context, scopes) {
      const challenge = bearerChallenge({
        ...{ realm, error: 'insufficient_scope', description: 'the call needs further scopes' },
        resourceMetadata: metadataOf(context),
        scope: scopes.join(' '),
      })
      return reject('insufficient_scope', { headers: { 'www-authenticate': challenge } })
    },
  }
}
