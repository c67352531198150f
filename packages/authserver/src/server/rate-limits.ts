import type { Clock } from '@thv/kernel/clock'

export interface RateLimit {
  readonly perSecond: number
  readonly burst: number
}

interface Bucket {
  tokens: number
  countedAt: number
}

/** Addresses that are remembered; the one that was away longest goes. */
const MAX_ADDRESSES = 10_000

/** One bucket for each address. */
export class AddressLimit {
  readonly #limit: RateLimit
  readonly #clock: Clock
  readonly #buckets = new Map<string, Bucket>()

  constructor(limit: RateLimit, clock: Clock) {
    this.#limit = limit
    this.#clock = clock
  }

  /** Seconds to wait; 0: go on. */
  take(address: string): number {
    const bucket = this.#refilled(address)
    if (bucket.tokens >= 1) {
      bucket.tokens--
      return 0
    }
    return this.#waitOf(bucket)
  }

  /** Without taking: for failures that are counted later. */
  wait(address: string): number {
    const bucket = this.#refilled(address)
    return bucket.tokens >= 1 ? 0 : this.#waitOf(bucket)
  }

  #waitOf({ tokens }: Bucket): number {
    return Math.max(1, Math.ceil((1 - tokens) / this.#limit.perSecond))
  }

  #refilled(address: string): Bucket {
    const { perSecond, burst } = this.#limit
    const now = this.#clock.monotonic()
    const bucket = this.#buckets.get(address) ?? { tokens: burst, countedAt: now }
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.countedAt) / 1_000) * perSecond)
    bucket.countedAt = now
    this.#buckets.delete(address)
    this.#buckets.set(address, bucket)
    if (this.#buckets.size > MAX_ADDRESSES) this.#buckets.delete(this.#buckets.keys().next().value ?? '')
    return bucket
  }
}
