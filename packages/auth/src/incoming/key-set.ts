import type { Clock } from '@thv/kernel/clock'
import { createSingleFlight } from '@thv/kernel/single-flight'
import { type DiscoveredProvider, discoverProvider } from './discovery.ts'
import { type IncomingProvider, unusable } from './incoming-provider.ts'
import { matchingKeys, parseJwks, type VerificationKey } from './jwks.ts'
import type { ProviderClient } from './provider-client.ts'
import type { RetryGate } from './retry-gate.ts'

/** The keys of one provider: fetched when first needed, refreshed as they age and when a token names one that is not known. */
export interface KeySet {
  /** Candidates for a token. Rejects with `auth_provider_unavailable` when only the provider could tell and does not answer. */
  find(header: { alg: string; kid?: string | undefined }): Promise<readonly VerificationKey[]>
  /** The issuer that signs with these keys: as configured, or as the discovery document says (`discoversIssuer`). Rejects as `find` does. */
  issuer(): Promise<string>
  /** Fetches without being asked, so that the first caller does not wait. `onProblem` reports failures. */
  warm(): Promise<void>
  readonly fetches: number
}

export interface KeySetOptions {
  readonly provider: IncomingProvider
  readonly client: ProviderClient
  readonly clock: Clock
  readonly gate: RetryGate
  readonly onProblem: (error: unknown) => void
}

const MAX_JWKS_BYTES = 512 << 10
const FRESH_MS = { min: 60_000, usual: 600_000, max: 3_600_000 }
/** Keys that could not be refreshed are good for this long: a provider's outage must not lock out who has a token already. */
const KEEP_MS = 24 * 3_600_000
const REDISCOVER_MS = 3_600_000
const REFRESH_WAIT_MS = 2_000
/** Unknown `kid`s cost nothing to invent: so many fetches at once, and then one per pause. */
const UNKNOWN_KEY_BURST = 3
const UNKNOWN_KEY_PAUSE_MS = 10_000

interface Held {
  readonly issuer: string
  readonly keys: readonly VerificationKey[]
  readonly fetchedAt: number
  readonly freshMs: number
}

export function createKeySet(options: KeySetOptions): KeySet {
  const { provider, client, clock, gate, onProblem } = options
  const flight = createSingleFlight<'keys', Held>()
  const budget = createBudget(clock)
  let held: Held | undefined
  let place: (DiscoveredProvider & { readonly foundAt: number }) | undefined
  let fetches = 0

  async function current(): Promise<Held> {
    if (held === undefined) return await refresh()
    const age = clock.monotonic() - held.fetchedAt
    if (age <= held.freshMs) return held
    if (gate.waitMs > 0 && age <= KEEP_MS) return held
    const refreshed = refresh()
    if (age > KEEP_MS) return await refreshed
    const old = held
    const settled = refreshed.catch(() => old) // refresh itself reports why it failed
    // A little stale: no caller waits. Long unused: a key may have been withdrawn meanwhile, so ask first.
    if (age <= 2 * old.freshMs || gate.failures > 0) return old
    return await within(REFRESH_WAIT_MS, settled, old)
  }

  /** A provider that hangs must not hold up those whose key is known. */
  function within(ms: number, settled: Promise<Held>, otherwise: Held): Promise<Held> {
    const { promise, resolve } = Promise.withResolvers<Held>()
    const timer = clock.setTimer(ms, () => resolve(otherwise))
    settled.then(resolve).finally(() => timer.cancel())
    return promise
  }

  function refresh(): Promise<Held> {
    if (gate.waitMs > 0 && flight.size === 0) return Promise.reject(unusable(provider, 'its keys could not be fetched a moment ago'))
    return flight.run('keys', async () => {
      try {
        held = await fetchKeys()
        gate.succeeded()
        return held
      } catch (error) {
        place = undefined
        gate.failed()
        onProblem(error)
        throw error
      }
    })
  }

  async function fetchKeys(): Promise<Held> {
    fetches++
    const { authTokenFile } = provider
    const authorization = authTokenFile === undefined ? undefined : `Bearer ${await client.secretFile(authTokenFile)}`
    const { issuer, jwksUrl: url } = await locate(authorization)
    const { json, cacheControl } = await client.json({ url, maxBytes: MAX_JWKS_BYTES, authorization, purpose: 'keys' })
    const keys = parseJwks(json)
    if (keys === undefined) throw unusable(provider, 'its key document is no JWK Set')
    if (keys.length === 0) throw unusable(provider, 'its key document holds no usable key')
    return { issuer, keys, fetchedAt: clock.monotonic(), freshMs: freshFor(cacheControl) }
  }

  async function locate(authorization: string | undefined): Promise<DiscoveredProvider> {
    const { issuer, jwksUrl, discoversIssuer } = provider
    if (jwksUrl !== undefined && discoversIssuer !== true) return { issuer, jwksUrl }
    if (place === undefined || clock.monotonic() - place.foundAt > REDISCOVER_MS)
      place = { ...(await discoverProvider(provider, client, authorization)), foundAt: clock.monotonic() }
    return { issuer: place.issuer, jwksUrl: jwksUrl ?? place.jwksUrl }
  }

  return {
    async find(header) {
      const had = held
      const keys = await current()
      const found = matchingKeys(keys.keys, header)
      if (found.length > 0 || keys !== had) return found // fetched just now: asking again tells nothing new
      if (flight.size === 0 && gate.waitMs === 0 && !budget.take()) return []
      return matchingKeys((await refresh()).keys, header)
    },
    async issuer() {
      return provider.discoversIssuer === true ? (await current()).issuer : provider.issuer
    },
    async warm() {
      await current().catch(() => {}) // told by refresh itself
    },
    get fetches() {
      return fetches
    },
  }
}

export function freshFor(cacheControl: string): number {
  if (/\bno-(store|cache)\b/i.test(cacheControl)) return FRESH_MS.min
  const seconds = /\bmax-age="?(\d{1,9})/i.exec(cacheControl)?.[1]
  if (seconds === undefined) return FRESH_MS.usual
  return Math.min(FRESH_MS.max, Math.max(FRESH_MS.min, Number(seconds) * 1_000))
}

function createBudget(clock: Clock): { take(): boolean } {
  let left = UNKNOWN_KEY_BURST
  let countedAt = clock.monotonic()
  return {
    take() {
      const now = clock.monotonic()
      left = Math.min(UNKNOWN_KEY_BURST, left + (now - countedAt) / UNKNOWN_KEY_PAUSE_MS)
      countedAt = now
      if (left < 1) return false
      left--
      return true
    },
  }
}
