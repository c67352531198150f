import type { Clock } from '@thv/kernel/clock'
import type { NodeTimings } from './node-env.ts'

/** How long a container waits before it is started again: the first time not at all, then longer each time. */
export class CrashBackoff {
  readonly #clock: Clock
  readonly #timings: NodeTimings
  #delay = 0
  #since = 0

  constructor(clock: Clock, timings: NodeTimings) {
    this.#clock = clock
    this.#timings = timings
  }

  /** Counts one end of the container. */
  next(): number {
    const { backoffBase, backoffMax, backoffReset } = this.#timings
    const now = this.#clock.monotonic()
    if (now - this.#since > backoffReset) this.#delay = 0
    const delay = this.#delay
    this.#delay = delay === 0 ? backoffBase : Math.min(backoffMax, delay * 2)
    this.#since = now + delay
    return delay
  }
}
