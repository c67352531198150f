import { type Backoff, createBackoff } from '@thv/kernel/backoff'
import type { Clock, Timer } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import type { RedisArgument, RedisClient, RedisScript } from './redis-client.ts'

/** A script that takes an operation back, if it was carried out at all. Its attempt is among the arguments. */
export interface Undo {
  readonly script: RedisScript
  readonly keys: readonly string[]
  readonly args: readonly RedisArgument[]
}

/** Longer than a failover of a Sentinel with its usual settings. */
const KEPT_MS = 120_000
const MAX_WAITING = 1_000

/**
 * Operations that were given up, and of which it is not known whether Redis carried them out before it went away. The client was asked to try
 * again, so they are taken back as soon as Redis answers: what it presents the next time counts as never used.
 */
export class LostAnswers implements Disposable {
  readonly #redis: RedisClient
  readonly #clock: Clock
  readonly #waiting = new Map<Undo, number>()
  readonly #backoff: Backoff = createBackoff({ baseMs: 100, maxMs: 1_000 })
  #timer: Timer | undefined
  #isClosed = false

  constructor(redis: RedisClient, clock: Clock) {
    this.#redis = redis
    this.#clock = clock
  }

  add(undo: Undo): void {
    if (this.#isClosed || this.#waiting.size >= MAX_WAITING) return
    this.#waiting.set(undo, this.#clock.monotonic() + KEPT_MS)
    this.#later()
  }

  get isWaiting(): boolean {
    return this.#waiting.size > 0
  }

  /** Takes back what is left of a record before it is looked at again. Rejects with `redis_unavailable`. */
  async settle(key: string): Promise<void> {
    for (const undo of this.#waiting.keys()) {
      if (undo.keys[0] !== key) continue
      await this.#redis.run(undo.script, undo.keys, undo.args)
      this.#waiting.delete(undo)
    }
  }

  [Symbol.dispose](): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#waiting.clear()
  }

  #later(): void {
    if (this.#isClosed || this.#timer !== undefined || this.#waiting.size === 0) return
    this.#timer = this.#clock.setTimer(this.#backoff.next(), async () => {
      await this.#takeBack()
      this.#timer = undefined
      this.#later()
    })
  }

  async #takeBack(): Promise<void> {
    for (const [undo, until] of this.#waiting) {
      try {
        if (this.#clock.monotonic() < until) await this.#redis.run(undo.script, undo.keys, undo.args)
      } catch (error) {
        if (isThvError(error, 'redis_unavailable')) return // the next round tries again
      }
      this.#waiting.delete(undo)
      this.#backoff.reset()
    }
  }
}
