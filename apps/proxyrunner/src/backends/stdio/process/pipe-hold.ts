import type { Readable } from 'node:stream'
import type { Taker } from '@thv/gateway/streams/client-stream'
import type { Clock } from '@thv/kernel/clock'

/** Back-pressure from the clients to the server: the pipe is not read while one of them has much to take. */
export class PipeHold {
  readonly #stdout: Readable
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #held = new Set<Taker>()

  /** `signal`: the process has ended, and no client need be waited for. */
  constructor(stdout: Readable, clock: Clock, signal: AbortSignal) {
    this.#stdout = stdout
    this.#clock = clock
    this.#signal = signal
  }

  get isHolding(): boolean {
    return this.#held.size > 0
  }

  /**
   * Stops reading until the client has taken what it has, if that is much, but not for long: others may share the pipe. A client that
   * needs longer is left behind, and then the bounds of its own queue decide.
   */
  holdFor(taker: Taker, limitMs: number): void {
    const startedAt = this.#clock.monotonic()
    if (taker.pending < MUCH || taker.isSlow || startedAt < taker.holdableAt) return
    if (this.#held.has(taker) || this.#signal.aborted) return
    this.#held.add(taker)
    this.#stdout.pause()
    const timer = this.#clock.setTimer(limitMs, () => {
      taker.isSlow = true
      this.#release(taker)
    })
    const done = () => {
      timer.cancel()
      taker.isSlow = false
      // A client that keeps others waiting repeatedly gets less and less of it.
      const heldMs = this.#clock.monotonic() - startedAt
      if (heldMs > SHORT_MS) taker.holdableAt = this.#clock.monotonic() + REST_FACTOR * heldMs
      this.#release(taker)
    }
    taker.ready(this.#signal).then(done, done)
  }

  #release(taker: Taker): void {
    if (this.#held.delete(taker) && this.#held.size === 0) this.#stdout.resume()
  }
}

const MUCH = 32
const SHORT_MS = 10
const REST_FACTOR = 4
