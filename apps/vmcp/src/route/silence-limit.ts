import type { Clock, Timer } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'

export interface SilenceLimitOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  /** A person is being asked: silence is no fault of the backend. The limit of the whole call stays. */
  isAsking(): boolean
  onSilent(error: ThvError): void
}

/** All calls end after this time, whatever their backends say meanwhile. */
export const TOTAL_MS = 600_000

/** Gives a call up after the silence of its backend. */
export class SilenceLimit {
  readonly #options: SilenceLimitOptions
  readonly #startedAt: number
  #timer: Timer | undefined

  constructor(options: SilenceLimitOptions) {
    this.#options = options
    this.#startedAt = options.clock.monotonic()
  }

  /** The backend has shown a sign of life, or is about to be asked. */
  heard(): void {
    const { clock, timeoutMs } = this.#options
    this.#timer?.cancel()
    const leftMs = this.#startedAt + Math.max(TOTAL_MS, timeoutMs) - clock.monotonic()
    this.#timer = clock.setTimer(Math.max(0, Math.min(timeoutMs, leftMs)), () => {
      if (this.#options.isAsking() && leftMs > timeoutMs) this.heard()
      else this.#options.onSilent(new ThvError('timeout', `the backend was silent for ${timeoutMs} ms`))
    })
  }

  end(): void {
    this.#timer?.cancel()
  }
}
