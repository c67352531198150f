import type { Clock } from '@thv/kernel/clock'
import { isPerUser, type Limit, type LimitReached } from './limit.ts'

interface Bucket {
  tokens: number
  /** When `tokens` was right. */
  at: number
}

/** Users of one limit that are kept. The one that called least recently is forgotten first: it gets a full bucket. */
const MAX_USERS = 20_000

/** Refills add up fractions: a token that lacks less than this is one. */
const WHOLE = 1 - 1e-9

/** Token buckets of one process. */
export class MemoryBuckets {
  readonly #clock: Clock
  readonly #maxUsers: number
  readonly #shared = new Map<Limit, Bucket>()
  readonly #users = new Map<Limit, Map<string, Bucket>>()

  constructor({ clock, maxUsers = MAX_USERS }: { readonly clock: Clock; readonly maxUsers?: number }) {
    this.#clock = clock
    this.#maxUsers = maxUsers
  }

  /** Takes one token from the bucket of every limit, or none from any. Undefined: taken. */
  take(limits: readonly Limit[], principal: string): LimitReached | undefined {
    const now = this.#clock.monotonic()
    let reached: Limit | undefined
    let waitMs = 0
    for (const limit of limits) {
      const { tokens } = this.#refilled(limit, principal, now)
      if (tokens >= WHOLE) continue
      const wait = ((1 - tokens) * limit.periodMs) / limit.maxTokens
      if (reached === undefined || wait > waitMs) {
        reached = limit
        waitMs = wait
      }
    }
    if (reached !== undefined) return { limit: reached, waitMs }
    for (const limit of limits) this.#refilled(limit, principal, now).tokens--
    return undefined
  }

  #refilled(limit: Limit, principal: string, now: number): Bucket {
    const bucket = this.#bucket(limit, principal, now)
    bucket.tokens = Math.min(limit.maxTokens, bucket.tokens + ((now - bucket.at) * limit.maxTokens) / limit.periodMs)
    bucket.at = now
    return bucket
  }

  #bucket(limit: Limit, principal: string, now: number): Bucket {
    if (!isPerUser(limit)) {
      const known = this.#shared.get(limit)
      if (known !== undefined) return known
      const full = { tokens: limit.maxTokens, at: now }
      this.#shared.set(limit, full)
      return full
    }
    let users = this.#users.get(limit)
    if (users === undefined) {
      users = new Map()
      this.#users.set(limit, users)
    }
    const known = users.get(principal)
    if (known !== undefined) {
      users.delete(principal)
      users.set(principal, known) // the youngest is last
      return known
    }
    const full = { tokens: limit.maxTokens, at: now }
    users.set(principal, full)
    if (users.size > this.#maxUsers) {
      const oldest = users.keys().next()
      if (oldest.done !== true) users.delete(oldest.value)
    }
    return full
  }
}
