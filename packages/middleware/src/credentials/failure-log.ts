import type { TokenRequestFailed } from '@thv/auth/outgoing/token-request-failed'
import type { Clock } from '@thv/kernel/clock'
import type { Log } from '@thv/telemetry/log'

export interface FailureLog {
  readonly report: (failure: TokenRequestFailed) => void
}

const QUIET_MS = 5_000

/** One line every few seconds at most: callers with bad tokens must not fill the log. */
export function createFailureLog(what: string, { log, clock }: { readonly log: Log; readonly clock: Clock }): FailureLog {
  let quietUntil = Number.NEGATIVE_INFINITY
  let suppressed = 0
  return {
    report({ kind, message }) {
      const now = clock.monotonic()
      if (now < quietUntil) {
        suppressed++
        return
      }
      quietUntil = now + QUIET_MS
      log.warn(`${what} failed`, { kind, reason: message, ...(suppressed > 0 && { suppressed }) })
      suppressed = 0
    },
  }
}
