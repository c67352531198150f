import type { Clock, Timer } from '@thv/kernel/clock'

export interface DebounceOptions {
  readonly clock: Clock
  readonly windowMs: number
  readonly fire: () => void
}

/** Under a storm of changes it fires all the same, this many windows after the first. */
const MAX_WINDOWS = 5

/** Fires once when there was no change for a window. */
export class Debounce {
  readonly #options: DebounceOptions
  #timer: Timer | undefined
  #firstAt: number | undefined

  constructor(options: DebounceOptions) {
    this.#options = options
  }

  /** Whether a change waits to be fired. */
  get isPending(): boolean {
    return this.#timer !== undefined
  }

  change(): void {
    const { clock, windowMs } = this.#options
    const now = clock.monotonic()
    this.#firstAt ??= now
    const latest = this.#firstAt + MAX_WINDOWS * windowMs
    this.#timer?.cancel()
    this.#timer = clock.setTimer(Math.max(0, Math.min(windowMs, latest - now)), () => this.#fire())
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#firstAt = undefined
  }

  #fire(): void {
    this.close()
    this.#options.fire()
  }
}
