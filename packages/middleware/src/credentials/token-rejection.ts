import { bearerChallenge } from '@thv/auth/incoming/challenge'
import type { TokenRequestFailed } from '@thv/auth/outgoing/token-request-failed'
import { type Rejection, reject } from '@thv/mcp/wire-errors'

const REALM = 'toolhive'

/** The request carries no token that could be exchanged. */
export const TOKEN_MISSING: Rejection = reject('unauthenticated', {
  headers: { 'www-authenticate': bearerChallenge({ realm: REALM }) },
})

const SUBJECT_REFUSED: Rejection = reject('unauthenticated', {
  headers: { 'www-authenticate': bearerChallenge({ realm: REALM, error: 'invalid_token', description: 'the token was not accepted' }) },
})

const REFUSED: Rejection = reject('credentials_refused')
const DEFAULT_RETRY_MS = 1_000

/** The answer to a request without a token for the backend. The log has the reason. */
export function tokenRejection({ kind, retryAfterMs = DEFAULT_RETRY_MS }: TokenRequestFailed): Rejection {
  if (kind === 'subject') return SUBJECT_REFUSED
  if (kind === 'refused') return REFUSED
  return reject('credentials_unavailable', { headers: { 'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1_000))) } })
}
