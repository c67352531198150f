import { type Backoff, createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'

/** Keeps a server that cannot be started, or does not stay up, from being started over and over. */
export class RestartBackoff {
  readonly #clock: Clock
  readonly #backoff: Backoff
  #opensAt = Number.NEGATIVE_INFINITY
  #problem: string | undefined

  constructor(clock: Clock, options: { readonly baseMs: number; readonly maxMs: number; readonly random?: (() => number) | undefined }) {
    this.#clock = clock
    const { baseMs, maxMs, random } = options
    this.#backoff = createBackoff({ baseMs, maxMs, ...(random === undefined ? {} : { random }) })
  }

  /** How long until the next attempt may be made; 0 if it may be made now. */
  get waitMs(): number {
    return Math.max(0, this.#opensAt - this.#clock.monotonic())
  }

  /** Why it is closed. */
  get problem(): string | undefined {
    return this.waitMs > 0 ? this.#problem : undefined
  }

  failed(problem: string): void {
    this.#problem = problem
    this.#opensAt = this.#clock.monotonic() + this.#backoff.next()
  }

  succeeded(): void {
    this.#backoff.reset()
    this.#opensAt = Number.NEGATIVE_INFINITY
  }
}
