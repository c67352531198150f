import type { Identity } from './authenticator.ts'
import type { TokenClaims } from './claim-checks.ts'
import type { IncomingProvider } from './incoming-provider.ts'

/** The subject has been checked (`subjectProblem`). */
export function identityOf(claims: TokenClaims, provider: IncomingProvider, subject: string): Identity {
  const displayName = ['name', 'preferred_username', 'email'].map((name) => claims[name]).find(isText)
  const { exp } = claims
  return {
    subject,
    issuer: provider.issuer,
    provider: provider.name,
    claims,
    ...(displayName !== undefined && { displayName }),
    ...(typeof exp === 'number' && { expiresAt: exp * 1_000 }),
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
