import { hash } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'
import { createSingleFlight } from '@thv/kernel/single-flight'
import { FailureMemory } from './failure-memory.ts'
import type { TokenGrant } from './token-answer.ts'
import { TokenRequestFailed } from './token-request-failed.ts'

/** A token for the backend, or why there is none. */
export type TokenResult =
  | { readonly ok: true; readonly token: string; readonly value: string }
  | { readonly ok: false; readonly failure: TokenRequestFailed }

export interface TokenCacheOptions {
  readonly clock: Clock
  /** Of tokens. 0: none is kept. */
  readonly maxEntries?: number
  /** Time before its end at which a token is replaced; a minute unless given. */
  readonly marginMs?: number
  /** Of failures, which have a place of their own: a caller cannot push out the tokens of others with requests that fail. */
  readonly maxFailures?: number
}

export interface FetchOptions {
  /** Epoch milliseconds at which the token that was exchanged ends: what came of it lives no longer. */
  readonly subjectEnd?: number | undefined
  /** Not for a failure that was kept: once for each that happened. */
  readonly onFailure?: (failure: TokenRequestFailed) => void
}

interface Entry {
  readonly result: TokenResult & { readonly ok: true }
  /** By the monotonic clock: a clock set back does not make it live longer. */
  readonly staleAt: number
  /** By the wall clock. */
  readonly subjectEnd: number
  /** It replaced one that the backend rejected: until then, another rejection does not replace it again. */
  readonly isRenewalUntil: number
}

const MAX_ENTRIES = 10_000
const UNKNOWN_LIFE_MS = 60_000
const MARGIN_MS = 60_000
const RENEWAL_MS = 5_000

/**
 * Tokens for backends, by a digest of what they were made from. A look-up is synchronous; one request at a time is under way for a key,
 * and all callers wait for it. The least recently used token leaves first. Failures are kept by key too (`FailureMemory`).
 */
export class TokenCache {
  readonly #clock: Clock
  readonly #maxEntries: number
  readonly #marginMs: number
  readonly #entries = new Map<string, Entry>()
  readonly #failures: FailureMemory
  readonly #flights = createSingleFlight<string, TokenResult>()
  /** Keys whose token the backend rejected, until a new one is there. */
  readonly #rejected = new Set<string>()

  constructor({ clock, maxEntries = MAX_ENTRIES, marginMs = MARGIN_MS, maxFailures }: TokenCacheOptions) {
    this.#clock = clock
    this.#maxEntries = maxEntries
    this.#marginMs = marginMs
    this.#failures = new FailureMemory({ clock, ...(maxFailures !== undefined && { maxEntries: maxFailures }) })
  }

  /** Tokens, without failures. */
  get size(): number {
    return this.#entries.size
  }

  get(key: string): TokenResult | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return this.#failureOf(key)
    this.#entries.delete(key)
    if (this.#clock.monotonic() >= entry.staleAt || this.#clock.now() >= entry.subjectEnd) return undefined
    this.#entries.set(key, entry) // the youngest is last
    return entry.result
  }

  /** Never rejects unless `request` throws something else than TokenRequestFailed. */
  fetch(key: string, request: () => Promise<TokenGrant>, options: FetchOptions = {}): Promise<TokenResult> {
    return this.#flights.run(key, async () => {
      try {
        const { token, expiresInMs } = await request()
        const result = { ok: true, token, value: `Bearer ${token}` } as const
        this.#failures.forget(key)
        this.#keep(key, result, { lifeMs: lifeMs(expiresInMs, this.#marginMs), subjectEnd: options.subjectEnd })
        return result
      } catch (error) {
        if (!(error instanceof TokenRequestFailed)) throw error
        options.onFailure?.(error)
        this.#failures.keep(key, error)
        return { ok: false, failure: error }
      }
    })
  }

  /** The backend rejected this token. True when a retry makes sense: a newer one is here, or may be asked for. */
  reject(key: string, token: string): boolean {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.result.token !== token) return true
    if (entry.isRenewalUntil > this.#clock.monotonic()) return false
    this.#entries.delete(key)
    this.#rejected.add(key)
    if (this.#rejected.size > this.#maxEntries) this.#rejected.clear()
    return true
  }

  #failureOf(key: string): TokenResult | undefined {
    const failure = this.#failures.get(key)
    return failure === undefined ? undefined : { ok: false, failure }
  }

  #keep(
    key: string,
    result: Entry['result'],
    { lifeMs, subjectEnd = Number.POSITIVE_INFINITY }: { lifeMs: number; subjectEnd: number | undefined },
  ) {
    const isRenewal = this.#rejected.delete(key)
    if (lifeMs <= 0) return
    const now = this.#clock.monotonic()
    this.#entries.delete(key)
    this.#entries.set(key, { result, staleAt: now + lifeMs, subjectEnd, isRenewalUntil: isRenewal ? now + RENEWAL_MS : 0 })
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries) break
      this.#entries.delete(oldest)
    }
  }
}

/** Until the margin before its end, but at least half of its life: a token must survive the call that carries it. */
function lifeMs(expiresInMs: number | undefined, marginMs: number): number {
  return expiresInMs === undefined ? UNKNOWN_LIFE_MS : Math.max(expiresInMs - marginMs, expiresInMs / 2)
}

/** Keys hold no token: a dump of the memory must not show which ones were exchanged. */
export function tokenKey(purpose: string, subject: string): string {
  return hash('sha256', `${purpose}\n${subject}`, 'base64url')
}

/** A digest of everything that a token depends on apart from its subject. */
export function purposeOf(parts: readonly (string | readonly string[] | undefined)[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url')
}
