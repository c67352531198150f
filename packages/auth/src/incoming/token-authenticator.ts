import type { Outbound } from '@thv/http/outbound/outbound'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { createSingleFlight } from '@thv/kernel/single-flight'
import type { AuthenticationProblem, AuthenticationResult, Authenticator, Identity } from './authenticator.ts'
import { readBearer } from './bearer.ts'
import type { IncomingProvider } from './incoming-provider.ts'
import { readJwt } from './jwt.ts'
import { createProviderVerifier, type ProviderVerifier } from './provider-verifier.ts'
import { createVerificationCache, tokenDigest } from './verification-cache.ts'

export interface TokenAuthenticatorOptions {
  /** Tried in order; a JWT only by those whose issuer it names. */
  readonly providers: readonly IncomingProvider[]
  /** Without an address policy: each provider brings its own. */
  readonly outbound: Outbound
  readonly clock?: Clock
  /** A provider that cannot be used, once per attempt; safe for logs. */
  readonly onProblem?: (provider: string, error: unknown) => void
  /** Why a token was rejected; safe for logs. */
  readonly onRejected?: (provider: string, reason: string) => void
  readonly limits?: Partial<AuthenticatorLimits>
}

export interface AuthenticatorLimits {
  /** Of one call to a provider. */
  readonly callMs: number
  /** Of one `authenticate`, whatever it takes. */
  readonly waitMs: number
  /** How long a verified JWT is not verified again: a withdrawn key is noticed by then. */
  readonly jwtCacheMs: number
  /** How long a provider's word about an opaque token counts. */
  readonly introspectionCacheMs: number
  readonly rejectedCacheMs: number
  readonly maxCached: number
  readonly maxCachedChars: number
}

export interface TokenAuthenticator extends Authenticator {
  /** Asks the providers for their keys now. Never rejects. */
  warm(): Promise<void>
  readonly stats: AuthenticatorStats
}

export interface AuthenticatorStats {
  /** Tokens that are known to be good. */
  readonly cached: number
  /** Requests that were not answered from what is cached, by how they ended. */
  readonly accepted: number
  readonly rejected: number
  readonly unavailable: number
  readonly keyFetches: number
  readonly introspections: number
}

const LIMITS: AuthenticatorLimits = {
  callMs: 5_000,
  waitMs: 8_000,
  jwtCacheMs: 300_000,
  introspectionCacheMs: 60_000,
  rejectedCacheMs: 5_000,
  maxCached: 10_000,
  maxCachedChars: 16 << 20,
}

const MISSING: AuthenticationResult = malformed('missing')
const MALFORMED: AuthenticationResult = malformed('malformed')
const REJECTED: AuthenticationResult = {
  ok: false,
  problem: { kind: 'rejected', code: 'invalid_token', text: 'token validation failed' },
}
const CLOSED: AuthenticationResult = unavailable(1_000)

export function createAuthenticator(options: TokenAuthenticatorOptions): TokenAuthenticator {
  const { outbound, clock = systemClock, onProblem = () => {}, onRejected = () => {} } = options
  const limits = { ...LIMITS, ...options.limits }
  const stop = new AbortController()
  const verifiers = options.providers.map((provider) =>
    createProviderVerifier({ provider, outbound, clock, callMs: limits.callMs, signal: stop.signal, onProblem }),
  )
  const accepted = createVerificationCache<AuthenticationResult>({ clock, maxEntries: limits.maxCached, maxWeight: limits.maxCachedChars })
  // Apart from the others: who invents tokens must not push out those that are good.
  const refused = createVerificationCache<AuthenticationResult>({ clock, maxEntries: 1_000, maxWeight: Infinity })
  const flights = createSingleFlight<string, AuthenticationResult>()
  const counts = { accepted: 0, rejected: 0, unavailable: 0 }

  async function verify(token: string, digest: string): Promise<AuthenticationResult> {
    const jwt = readJwt(token)
    const asked = jwt
      ? verifiers.filter(({ provider }) => provider.discoversIssuer === true || provider.issuer === jwt.claims['iss'])
      : verifiers.filter(({ provider }) => provider.introspection !== undefined)
    let waitMs: number | undefined
    let isOfToken = true
    for (const verifier of asked) {
      const verdict = jwt ? await verifier.jwt(jwt) : await verifier.opaque(token)
      if (verdict.kind === 'accepted') return keep(verdict.identity, { digest, token, isJwt: jwt !== undefined })
      if (verdict.kind === 'unavailable') {
        waitMs = Math.min(waitMs ?? Infinity, verdict.waitMs)
        isOfToken &&= verdict.ofToken === true
      } else onRejected(verifier.provider.name, verdict.reason)
    }
    if (waitMs !== undefined) {
      const result = unavailable(waitMs)
      if (isOfToken) refused.set(digest, result, { ttlMs: waitMs, weight: 0 })
      return result
    }
    // A JWT's verdict may change with the next key, and costs no provider anything: only requests to providers are cached.
    if (!jwt && asked.length > 0) refused.set(digest, REJECTED, { ttlMs: limits.rejectedCacheMs, weight: 0 })
    return REJECTED
  }

  function keep(identity: Identity, { digest, token, isJwt }: { digest: string; token: string; isJwt: boolean }): AuthenticationResult {
    const result: AuthenticationResult = { ok: true, identity }
    const ttlMs = isJwt ? limits.jwtCacheMs : limits.introspectionCacheMs
    // A JWT brings its claims along; a short opaque token may stand for many.
    const weight = isJwt ? token.length : token.length + JSON.stringify(identity.claims).length
    accepted.set(digest, result, { ttlMs, expiresAt: identity.expiresAt, weight })
    return result
  }

  /** The verification itself goes on behind it: its result serves the next request. */
  function withinLimit(result: Promise<AuthenticationResult>): Promise<AuthenticationResult> {
    const { promise, resolve, reject } = Promise.withResolvers<AuthenticationResult>()
    const timer = clock.setTimer(limits.waitMs, () => resolve(unavailable(1_000)))
    const onStop = () => resolve(CLOSED)
    stop.signal.addEventListener('abort', onStop, { once: true })
    result.then(resolve, reject).finally(() => {
      timer.cancel()
      stop.signal.removeEventListener('abort', onStop)
    })
    return promise
  }

  async function counted(result: Promise<AuthenticationResult>): Promise<AuthenticationResult> {
    const settled = await withinLimit(result)
    counts[outcomeOf(settled)]++
    return settled
  }

  const close = async () => stop.abort(new ThvError('aborted', 'the authenticator was closed'))
  return {
    authenticate(authorization) {
      const reading = readBearer(authorization)
      if (typeof reading !== 'object') return reading === 'missing' ? MISSING : reading === 'malformed' ? MALFORMED : REJECTED
      const digest = tokenDigest(reading.token)
      const known = accepted.get(digest) ?? refused.get(digest)
      if (known) return known
      if (stop.signal.aborted) return CLOSED
      return counted(flights.run(digest, () => verify(reading.token, digest)))
    },
    async warm() {
      await Promise.all(verifiers.map((verifier) => verifier.warm()))
    },
    get stats() {
      const sum = (of: (verifier: ProviderVerifier) => number) => verifiers.reduce((total, verifier) => total + of(verifier), 0)
      return {
        ...counts,
        cached: accepted.size,
        keyFetches: sum((one) => one.keyFetches),
        introspections: sum((one) => one.introspections),
      }
    },
    [Symbol.asyncDispose]: close,
  }
}

function malformed(kind: 'missing' | 'malformed'): AuthenticationResult {
  return { ok: false, problem: { kind, code: 'invalid_request', text: 'missing or malformed authorization header' } }
}

function unavailable(waitMs: number): AuthenticationResult {
  const problem: AuthenticationProblem = {
    kind: 'unavailable',
    code: 'temporarily_unavailable',
    text: 'the identity provider cannot be reached',
    retryAfterSeconds: Math.min(60, Math.max(1, Math.ceil(waitMs / 1_000))),
  }
  return { ok: false, problem }
}

function outcomeOf(result: AuthenticationResult): 'accepted' | 'rejected' | 'unavailable' {
  if (result.ok) return 'accepted'
  return result.problem.kind === 'unavailable' ? 'unavailable' : 'rejected'
}
