import { type Backoff, type BackoffOptions, createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import { Fifo, type FifoEntry } from '@thv/kernel/fifo'
import { createTokenBucket, type TokenBucket, type TokenBucketOptions } from './token-bucket.ts'

export interface WorkQueueOptions {
  clock?: Clock | undefined
  /** Delays of one key after failures in a row. Default 200 ms doubling to 5 min. */
  backoff?: BackoffOptions | undefined
  /** A limit over all keys for `addRateLimited`: when everything fails at once, the retries come evenly. Default none. */
  overall?: TokenBucketOptions | undefined
}

interface Waiter {
  readonly resolve: (key: string | undefined) => void
}

interface Delayed {
  readonly due: number
  readonly timer: Timer
}

/**
 * Keys that need work. A key waits at most once, however often it is added, and is never out twice at a time: added while out, it comes
 * again after `done`, exactly once. So the queue is bounded by the number of distinct keys that its users have, and what it remembers of
 * a key ends with `forget` and `done`.
 */
export class WorkQueue {
  readonly #clock: Clock
  readonly #backoffOptions: BackoffOptions
  readonly #overall: TokenBucket | undefined
  readonly #ready = new Set<string>()
  /** The ready ones in order of arrival. */
  #order = new Fifo<string>()
  /** Out with a worker; true: wanted again. */
  readonly #processing = new Map<string, boolean>()
  readonly #delayed = new Map<string, Delayed>()
  readonly #failures = new Map<string, Backoff>()
  readonly #waiters = new Fifo<Waiter>()
  readonly #idle = Promise.withResolvers<void>()
  #state: 'open' | 'draining' | 'closed' = 'open'

  constructor(options: WorkQueueOptions = {}) {
    this.#clock = options.clock ?? systemClock
    this.#backoffOptions = options.backoff ?? { baseMs: 200, maxMs: 5 * 60_000 }
    this.#overall = options.overall && createTokenBucket(options.overall, this.#clock)
  }

  /** Keys that wait for a worker. */
  get depth(): number {
    return this.#ready.size
  }

  /** Keys whose time has not come. */
  get delayed(): number {
    return this.#delayed.size
  }

  /** Keys that workers have now. */
  get processing(): number {
    return this.#processing.size
  }

  /** Keys with failures that were not forgotten. */
  get failing(): number {
    return this.#failures.size
  }

  /** Ignored after `shutdown`, like the other ways to add. */
  add(key: string): void {
    if (this.#state !== 'open') return
    if (this.#processing.has(key)) this.#processing.set(key, true)
    else this.#makeReady(key)
  }

  /** When the key waits for its time already, the earlier time wins. */
  addAfter(key: string, ms: number): void {
    if (this.#state !== 'open') return
    if (!(ms > 0)) {
      this.add(key)
      return
    }
    const due = this.#clock.monotonic() + ms
    const waiting = this.#delayed.get(key)
    if (waiting !== undefined && waiting.due <= due) return
    waiting?.timer.cancel()
    const timer = this.#clock.setTimer(ms, () => {
      this.#delayed.delete(key)
      this.add(key)
    })
    this.#delayed.set(key, { due, timer })
  }

  /** Counts a failure of the key and adds it after its back-off. Returns the delay. */
  addRateLimited(key: string): number {
    if (this.#state !== 'open') return 0
    let backoff = this.#failures.get(key)
    if (backoff === undefined) {
      backoff = createBackoff(this.#backoffOptions)
      this.#failures.set(key, backoff)
    }
    const delay = Math.max(backoff.next(), this.#overall?.reserve() ?? 0)
    this.addAfter(key, delay)
    return delay
  }

  /** The key succeeded, or is gone: its next failure counts as the first. */
  forget(key: string): void {
    this.#failures.delete(key)
  }

  /** Failures in a row. */
  failures(key: string): number {
    return this.#failures.get(key)?.failures ?? 0
  }

  /** The next key, for one worker alone until it says `done`. Undefined once the queue is shut down (and drained, if asked for). */
  take(signal?: AbortSignal): Promise<string | undefined> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    const first = this.#order.shift()
    if (first !== undefined) {
      this.#ready.delete(first.value)
      this.#processing.set(first.value, false)
      return Promise.resolve(first.value)
    }
    if (this.#state === 'closed' || (this.#state === 'draining' && this.#processing.size === 0)) return Promise.resolve(undefined)
    return this.#wait(signal)
  }

  /** Must follow every `take`, also after a failure. */
  done(key: string): void {
    const wantedAgain = this.#processing.get(key)
    if (wantedAgain === undefined) throw new TypeError(`done("${key}") for a key that is not out`)
    this.#processing.delete(key)
    if (wantedAgain) this.#makeReady(key)
    this.#checkIdle()
  }

  /**
   * Takes no more and forgets what is delayed. With `drain` the keys that are ready still go out, else they are dropped too. Resolves
   * when no key is out any more; the caller sets the limit.
   */
  shutdown(options: { drain: boolean }): Promise<void> {
    if (this.#state !== 'closed') this.#state = options.drain ? 'draining' : 'closed'
    for (const { timer } of this.#delayed.values()) timer.cancel()
    this.#delayed.clear()
    if (this.#state === 'closed') {
      this.#ready.clear()
      this.#order = new Fifo()
      for (const key of this.#processing.keys()) this.#processing.set(key, false)
      this.#releaseWaiters()
    }
    this.#checkIdle()
    return this.#idle.promise
  }

  #makeReady(key: string): void {
    if (this.#ready.has(key)) return
    const waiter = this.#waiters.shift()
    if (waiter === undefined) {
      this.#ready.add(key)
      this.#order.push(key)
      return
    }
    this.#processing.set(key, false)
    waiter.value.resolve(key)
  }

  #wait(signal: AbortSignal | undefined): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        if (this.#waiters.remove(entry)) reject(signal?.reason)
      }
      const settle = (key: string | undefined) => {
        signal?.removeEventListener('abort', onAbort)
        resolve(key)
      }
      const entry: FifoEntry<Waiter> = this.#waiters.push({ resolve: settle })
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  #checkIdle(): void {
    if (this.#state === 'open' || this.#processing.size > 0 || this.#ready.size > 0) return
    this.#releaseWaiters()
    this.#failures.clear()
    this.#idle.resolve()
  }

  #releaseWaiters(): void {
    for (let waiter = this.#waiters.shift(); waiter; waiter = this.#waiters.shift()) waiter.value.resolve(undefined)
  }
}
