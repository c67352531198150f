import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'

/** Keeps requests from waiting, one after the other, for somebody who does not answer. */
export interface RetryGate {
  /** Milliseconds until the next attempt; 0 when it may be made now. */
  readonly waitMs: number
  /** Failures since the last success. */
  readonly failures: number
  succeeded(): void
  failed(): void
}

export function createRetryGate(clock: Clock): RetryGate {
  const backoff = createBackoff({ baseMs: 1_000, maxMs: 30_000 })
  let openAt = -Infinity
  return {
    get waitMs() {
      return Math.max(0, openAt - clock.monotonic())
    },
    get failures() {
      return backoff.failures
    },
    succeeded() {
      backoff.reset()
      openAt = -Infinity
    },
    failed() {
      openAt = clock.monotonic() + backoff.next()
    },
  }
}
