import type { TokenClaims } from '@thv/auth/incoming/claim-checks'
import { readJwt } from '@thv/auth/incoming/jwt'
import { createProviderVerifier, type ProviderVerifier } from '@thv/auth/incoming/provider-verifier'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import type { TrustedIssuerConfig } from '@thv/runconfig/auth-server-config'
import { type ActorMatcher, compileActorMatcher } from './actor-matcher.ts'
import { GrantRefused } from './grant-refused.ts'

export interface TrustedIssuersDeps {
  readonly outbound: Outbound
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly onProblem: (issuer: string, error: unknown) => void
}

export interface TrustedToken {
  readonly issuer: TrustedIssuerConfig
  readonly matches: ActorMatcher | undefined
  readonly claims: TokenClaims
  readonly subject: string
  /** Epoch seconds. */
  readonly expiresAt: number
}

/** Tokens of other issuers, with their keys. */
export interface TrustedIssuers {
  /** Signature, issuer and times are right; whom the token is for is not judged. Throws GrantRefused. */
  verify(token: string): Promise<TrustedToken>
}

interface Known {
  readonly issuer: TrustedIssuerConfig
  readonly matches: ActorMatcher | undefined
  readonly verifier: ProviderVerifier
}

const CALL_MS = 5_000
const MAX_TOKEN = 16_384

/** Throws `run_config_invalid`. */
export function createTrustedIssuers(issuers: readonly TrustedIssuerConfig[], deps: TrustedIssuersDeps): TrustedIssuers {
  const known = new Map(issuers.map((issuer) => [issuer.issuer_url, knownOf(issuer, deps)]))
  return {
    async verify(token) {
      const jwt = token.length > MAX_TOKEN ? undefined : readJwt(token)
      const found = typeof jwt?.claims['iss'] === 'string' ? known.get(jwt.claims['iss']) : undefined
      if (jwt === undefined || found === undefined)
        throw new GrantRefused('invalid_grant', 'the token is of no issuer that is trusted here')
      const verdict = await found.verifier.jwt(jwt)
      if (verdict.kind === 'unavailable')
        throw new GrantRefused('temporarily_unavailable', 'the issuer of the token does not answer; try again')
      if (verdict.kind === 'rejected') throw new GrantRefused('invalid_grant', 'the token is not valid', verdict.reason)
      const { issuer, matches } = found
      const { subject, claims } = verdict.identity
      return { issuer, matches, claims, subject, expiresAt: Number(claims['exp']) }
    },
  }
}

function knownOf(issuer: TrustedIssuerConfig, { outbound, clock, signal, onProblem }: TrustedIssuersDeps): Known {
  const { issuer_url: url, actor_matcher: expression } = issuer
  const provider = {
    name: url,
    issuer: url,
    jwksUrl: issuer.jwks_url,
    // Discovery never leads to a private address: only the configured address of the keys may be one.
    jwksAllowPrivateIP: issuer.allow_private_ips,
    allowHttp: issuer.insecure_allow_http,
  }
  return {
    issuer,
    matches: expression === undefined ? undefined : compileActorMatcher(expression, url),
    verifier: createProviderVerifier({ provider, outbound, clock, callMs: CALL_MS, signal, onProblem }),
  }
}

/** A user of another issuer. Never the name of a user of this server, whose tokens of providers it must not get. */
export function foreignSubject({ issuer, subject }: TrustedToken): string {
  return `${issuer.issuer_url}#${subject}`
}

export function audiencesOf({ aud }: TokenClaims): readonly string[] {
  return (Array.isArray(aud) ? aud : [aud]).filter((each): each is string => typeof each === 'string')
}

export function scopesOf({ scope, scp }: TokenClaims): readonly string[] {
  if (typeof scope === 'string') return scope.split(' ').filter((each) => each !== '')
  return Array.isArray(scp) ? scp.filter((each): each is string => typeof each === 'string') : []
}
