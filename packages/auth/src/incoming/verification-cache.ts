import { hash } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'

/** Keyed by a digest, so that a dump of the memory holds no token, and so that a look-up tells nothing of other tokens. */
export interface VerificationCache<T> {
  get(digest: string): T | undefined
  /** `expiresAt` in epoch milliseconds: never given out later, whatever `ttlMs` says. */
  set(digest: string, value: T, limits: { readonly ttlMs: number; readonly expiresAt?: number | undefined; readonly weight: number }): void
  readonly size: number
}

export interface VerificationCacheOptions {
  readonly clock: Clock
  readonly maxEntries: number
  /** Sum of the weights, so that few large tokens cannot fill the memory. */
  readonly maxWeight: number
}

interface Entry<T> {
  readonly value: T
  /** By the monotonic clock: a clock set back does not make it live longer. */
  readonly staleAt: number
  /** By the wall clock, which is what tokens speak of. */
  readonly expiresAt: number
  readonly weight: number
}

export function tokenDigest(token: string): string {
  return hash('sha256', token, 'base64url')
}

export function createVerificationCache<T>(options: VerificationCacheOptions): VerificationCache<T> {
  const { clock, maxEntries, maxWeight } = options
  const entries = new Map<string, Entry<T>>()
  let weight = 0

  function drop(digest: string, entry: Entry<T>): void {
    entries.delete(digest)
    weight -= entry.weight
  }

  return {
    get(digest) {
      const entry = entries.get(digest)
      if (entry === undefined) return undefined
      entries.delete(digest)
      if (clock.monotonic() >= entry.staleAt || clock.now() >= entry.expiresAt) {
        weight -= entry.weight
        return undefined
      }
      entries.set(digest, entry) // the youngest is last
      return entry.value
    },
    set(digest, value, { ttlMs, expiresAt = Infinity, weight: own }) {
      const before = entries.get(digest)
      if (before) drop(digest, before)
      entries.set(digest, { value, staleAt: clock.monotonic() + ttlMs, expiresAt, weight: own })
      weight += own
      for (const [oldest, entry] of entries) {
        if (entries.size <= maxEntries && weight <= maxWeight) break
        drop(oldest, entry)
      }
    },
    get size() {
      return entries.size
    },
  }
}
