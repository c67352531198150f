/** The only source of time for whatever waits or measures, so that tests can own it. */
export interface Clock {
  /** Wall-clock time, epoch milliseconds. May jump; for time stamps only. */
  now(): number
  /** Milliseconds from an arbitrary start, never going back. For measuring and for deadlines. */
  monotonic(): number
  /** Resolves after `ms`, rejects with `signal.reason` as soon as the signal aborts. Infinity waits for the signal alone. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `fn` once after `ms` unless cancelled. */
  setTimer(ms: number, fn: () => void): Timer
}

export interface Timer {
  cancel(): void
}

/**
 * A pending sleep keeps the process alive, because somebody awaits it; a timer does not: a watchdog or a periodic
 * resync must not hold up the exit of a process that has nothing else to do.
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) => sleepBy((fn) => startTimer(ms, fn, true), signal),
  setTimer: (ms, fn) => startTimer(ms, fn, false),
}

/** Node fires timers above this delay at once. */
const MAX_DELAY = 2 ** 31 - 1

/** Re-arms until the monotonic deadline is reached: for delays over Node's limit, and for timers that fire a little early. */
function startTimer(ms: number, fn: () => void, keepAlive: boolean): Timer {
  const deadline = performance.now() + delayOf(ms)
  let handle: NodeJS.Timeout
  const arm = (left: number) => {
    handle = setTimeout(fire, Math.min(Math.ceil(left), MAX_DELAY))
    if (!keepAlive) handle.unref()
  }
  const fire = () => {
    const left = deadline - performance.now()
    if (left > 0) arm(left)
    else fn()
  }
  arm(delayOf(ms))
  return { cancel: () => clearTimeout(handle) }
}

function sleepBy(start: (fn: () => void) => Timer, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      timer.cancel()
      reject(signal?.reason)
    }
    const timer = start(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

function delayOf(ms: number): number {
  if (Number.isNaN(ms)) throw new RangeError('a delay must be a number of milliseconds, not NaN')
  return Math.max(0, ms)
}

interface PendingTimer {
  readonly due: number
  readonly fn: () => void
}

/** Taken at load, so that a test framework's fake timers do not stop a TestClock. */
const nextTurn = setImmediate

/** In one advance. More than any test needs; a timer that re-arms itself with no delay would otherwise fire endlessly. */
const MAX_FIRINGS = 100_000

/** A clock that stands still until `advance` is called. */
export class TestClock implements Clock {
  readonly #timers = new Set<PendingTimer>()
  #elapsed = 0
  #target = 0
  #wall: number
  readonly #maxFirings: number

  constructor(startMs: number = Date.UTC(2026, 0, 1), maxFirings = MAX_FIRINGS) {
    this.#wall = startMs
    this.#maxFirings = maxFirings
  }

  /** Timers and sleeps that have not fired yet. */
  get pending(): number {
    return this.#timers.size
  }

  now(): number {
    return this.#wall + this.#elapsed
  }

  monotonic(): number {
    return this.#elapsed
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepBy((fn) => this.setTimer(ms, fn), signal)
  }

  setTimer(ms: number, fn: () => void): Timer {
    const timer: PendingTimer = { due: this.#elapsed + delayOf(ms), fn }
    this.#timers.add(timer)
    return { cancel: () => this.#timers.delete(timer) }
  }

  /** Moves the wall clock alone, as an administrator or NTP does. Timers and `monotonic` do not notice. */
  jump(ms: number): void {
    this.#wall += ms
  }

  /**
   * Fires what falls due in the next `ms`, each at its own time, in the order of due time and then of creation. Before
   * the first, and after each, all waiting promise callbacks run, so timers set by them are seen too. Overlapping calls add up.
   */
  async advance(ms: number): Promise<void> {
    if (!(ms >= 0) || ms === Infinity) throw new RangeError(`time can only advance by a finite delay, not by ${ms}`)
    this.#target += ms
    const target = this.#target
    for (let firings = 0; ; firings++) {
      await settle()
      const timer = this.#nextDue(target)
      if (timer === undefined) break
      if (firings >= this.#maxFirings)
        throw new Error(`more than ${this.#maxFirings} timers fired in one advance: perhaps one re-arms itself without delay`)
      this.#timers.delete(timer)
      this.#elapsed = Math.max(this.#elapsed, timer.due)
      timer.fn()
    }
    this.#elapsed = Math.max(this.#elapsed, target)
  }

  #nextDue(target: number): PendingTimer | undefined {
    let first: PendingTimer | undefined
    for (const timer of this.#timers) if (timer.due <= target && (first === undefined || timer.due < first.due)) first = timer
    return first
  }
}

function settle(): Promise<void> {
  return new Promise((resolve) => nextTurn(resolve))
}
