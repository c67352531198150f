import type { IncomingProvider } from './incoming-provider.ts'

export interface TokenClaims {
  readonly [name: string]: unknown
}

/** Clocks of providers may be off by this much. */
export const LEEWAY_SECONDS = 30

/**
 * A JWT must say all of it. An introspection has been asked of the provider itself, so it may leave out who issued the token and when it
 * ends; not whom it is for: the provider knows tokens for others too.
 */
export type ClaimDemand = 'all' | 'if-present'

/** The first problem of the claims, or undefined. For logs only: clients never see it. */
export function claimProblem(
  claims: TokenClaims,
  { issuer, audience }: IncomingProvider,
  { nowMs, demand }: { nowMs: number; demand: ClaimDemand },
): string | undefined {
  const now = nowMs / 1_000
  const { iss, aud, exp, nbf, iat } = claims
  const missing = (value: unknown) => value === undefined && demand === 'if-present'
  if (!missing(iss) && iss !== issuer) return 'of another issuer'
  if (audience !== undefined && !includes(aud, audience)) return 'for another audience'
  if (!missing(exp) && !(isTime(exp) && exp > now - LEEWAY_SECONDS)) return exp === undefined ? 'without an end' : 'expired'
  if (nbf !== undefined && !(isTime(nbf) && nbf <= now + LEEWAY_SECONDS)) return 'not valid yet'
  if (iat !== undefined && !(isTime(iat) && iat <= now + LEEWAY_SECONDS)) return 'issued in the future'
  return undefined
}

/** Longer subjects are of no provider that we know, and would be kept for every session. */
const MAX_SUBJECT_CHARS = 1_024

/** Of a client that acts for itself, and that the provider names without `sub`. */
export const CLIENT_SUBJECT_PREFIX = 'client:'

/** The first problem of a claim `sub`, or undefined. For logs only. */
export function subjectProblem(subject: unknown, provider: IncomingProvider): string | undefined {
  // Where clients get subjects of ours, no user may have one that looks like them.
  const isReserved = provider.introspection !== undefined && typeof subject === 'string' && subject.startsWith(CLIENT_SUBJECT_PREFIX)
  return isReserved ? 'with a subject like that of a client' : principalProblem(subject, provider)
}

/** The first problem of whom a token is about, a user or a client; or undefined. For logs only. */
export function principalProblem(subject: unknown, { requiredSubject }: IncomingProvider): string | undefined {
  if (typeof subject !== 'string' || subject === '') return 'without a subject'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to be rejected
  if (subject.length > MAX_SUBJECT_CHARS || /[\x00-\x1f\x7f]/.test(subject))
    return 'with a subject that is too long or has control characters'
  if (requiredSubject === undefined) return undefined
  const fits = requiredSubject.endsWith('*') ? subject.startsWith(requiredSubject.slice(0, -1)) : subject === requiredSubject
  return fits ? undefined : 'of another subject'
}

function includes(aud: unknown, audience: string): boolean {
  return Array.isArray(aud) ? aud.includes(audience) : aud === audience
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}
