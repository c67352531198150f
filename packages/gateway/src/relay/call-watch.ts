import type { Clock, Timer } from '@thv/kernel/clock'

export interface WatchedCall {
  /** By the monotonic clock. */
  readonly startedAt: number
  readonly lastActivityAt: number
  /** Infinity where silence is no fault, as with a question that a person has to answer. */
  readonly idleLimitMs: number
  /** Belongs to the watch: where the call stands in its list, -1 for nowhere. */
  place: number
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

/**
 * Watches the time of all calls with one timer: nearly all of them end before it fires. They are kept in an array and know their place
 * in it. A Set would do, but when one grows and shrinks all the time V8 leaves dead tables behind that hold on to what was in them: that
 * was measured to cost 80 MB.
 */
export class CallWatch {
  readonly #calls: WatchedCall[] = []
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
    return this.#calls.length
  }

  add(call: WatchedCall): void {
    call.place = this.#calls.length
    this.#calls.push(call)
    this.#timer ??= this.#arm()
  }

  /** Does nothing when it is not there. */
  delete(call: WatchedCall): void {
    const { place } = call
    if (this.#calls[place] !== call) return
    call.place = -1
    const last = this.#calls.pop()
    if (last === undefined || last === call) return
    this.#calls[place] = last
    last.place = place
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
    this.#timer = this.#calls.length > 0 ? this.#arm() : undefined
  }
}
