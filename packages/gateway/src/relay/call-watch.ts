import type { Clock, Timer } from '@thv/kernel/clock'
import { type Placed, PlacedList } from '@thv/kernel/placed-list'

export interface WatchedCall extends Placed {
  /** By the monotonic clock. */
  readonly startedAt: number
  readonly lastActivityAt: number
  /** Infinity where silence is no fault, as with a question that a person has to answer. */
  readonly idleLimitMs: number
  /** Called once, when it has been silent or has lasted for too long. */
  expire(why: 'silent' | 'too long'): void
}

export interface CallWatchLimits {
  readonly idleMs: number
  readonly hardTimeoutMs: number
}

const MAX_CHECK_MS = 1_000
/** A limit is overrun by a quarter of itself at most. */
const CHECKS_PER_LIMIT = 4

/** Watches the time of all calls with one timer: nearly all of them end before it fires. */
export class CallWatch {
  readonly #calls = new PlacedList<WatchedCall>()
  readonly #clock: Clock
  readonly #hardLimitMs: number
  readonly #checkMs: number
  #timer: Timer | undefined

  constructor(clock: Clock, { idleMs, hardTimeoutMs }: CallWatchLimits) {
    this.#clock = clock
    this.#hardLimitMs = hardTimeoutMs
    this.#checkMs = Math.min(MAX_CHECK_MS, Math.min(idleMs, hardTimeoutMs) / CHECKS_PER_LIMIT)
  }

  get size(): number {
    return this.#calls.size
  }

  add(call: WatchedCall): void {
    this.#calls.add(call)
    this.#timer ??= this.#arm()
  }

  /** Does nothing when it is not there. */
  delete(call: WatchedCall): void {
    this.#calls.delete(call)
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #arm(): Timer {
    return this.#clock.setTimer(this.#checkMs, () => this.#check())
  }

  #check(): void {
    const now = this.#clock.monotonic()
    for (const call of [...this.#calls]) {
      const why =
        now - call.startedAt > this.#hardLimitMs ? 'too long' : now - call.lastActivityAt > call.idleLimitMs ? 'silent' : undefined
      if (why === undefined) continue
      this.delete(call)
      call.expire(why)
    }
    this.#timer = this.#calls.size > 0 ? this.#arm() : undefined
  }
}
