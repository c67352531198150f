import type { Clock } from '@thv/kernel/clock'

/** Waits that end early when somebody says that what is waited for may be there now. */
export class ObjectWaiter {
  readonly #clock: Clock
  readonly #wakers = new Set<() => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  wake(): void {
    for (const wake of [...this.#wakers]) wake()
  }

  /** Rejects when the signal aborts. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController()
    const wake = () => woken.abort()
    this.#wakers.add(wake)
    signal.addEventListener('abort', wake, { once: true })
    if (signal.aborted) wake()
    try {
      await this.#clock.sleep(ms, woken.signal)
    } catch (error) {
      signal.throwIfAborted()
      if (!woken.signal.aborted) throw error
    } finally {
      this.#wakers.delete(wake)
      signal.removeEventListener('abort', wake)
    }
  }
}
