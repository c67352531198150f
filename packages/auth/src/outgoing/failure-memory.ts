import { type Backoff, createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { TokenRequestFailed } from './token-request-failed.ts'

export interface FailureMemoryOptions {
  readonly clock: Clock
  readonly maxEntries?: number
}

interface Kept {
  readonly failure: TokenRequestFailed
  /** By the monotonic clock. */
  readonly until: number
  /** Of requests that the endpoint could not serve; undefined for refusals. */
  readonly backoff: Backoff | undefined
}

/** Far fewer than tokens: what is dropped here costs the endpoint one more question. */
const MAX_ENTRIES = 2_000
const REFUSAL_MS = 5_000
const BACKOFF = { baseMs: 1_000, maxMs: 30_000 } as const

/**
 * Requests that brought no token, by their key, so that they are not repeated at once: refusals for five seconds, others with a back-off that
 * grows, or for as long as the endpoint asked for. The oldest leaves first. Each key waits for itself: no caller can make others wait.
 */
export class FailureMemory {
  readonly #clock: Clock
  readonly #maxEntries: number
  readonly #kept = new Map<string, Kept>()

  constructor({ clock, maxEntries = MAX_ENTRIES }: FailureMemoryOptions) {
    this.#clock = clock
    this.#maxEntries = maxEntries
  }

  get size(): number {
    return this.#kept.size
  }

  get(key: string): TokenRequestFailed | undefined {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    const leftMs = kept.until - this.#clock.monotonic()
    if (leftMs <= 0) return undefined // it stays for its back-off
    if (kept.backoff === undefined) return kept.failure
    const { kind, message, cause } = kept.failure
    return new TokenRequestFailed(kind, message, { retryAfterMs: leftMs, cause })
  }

  /** A failure of the endpoint as a whole is not kept: it has a back-off of its own, for all keys. */
  keep(key: string, failure: TokenRequestFailed): void {
    if (failure.kind === 'unavailable' && failure.scope === 'endpoint') return
    const backoff = failure.kind === 'unavailable' ? (this.#kept.get(key)?.backoff ?? createBackoff(BACKOFF)) : undefined
    const waitMs = backoff === undefined ? REFUSAL_MS : Math.max(backoff.next(), failure.retryAfterMs ?? 0)
    this.#kept.delete(key)
    this.#kept.set(key, { failure, until: this.#clock.monotonic() + waitMs, backoff })
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#maxEntries) break
      this.#kept.delete(oldest)
    }
  }

  forget(key: string): void {
    this.#kept.delete(key)
  }
}
