import type { Clock } from '@thv/kernel/clock'
import type { Log } from '@thv/telemetry/log'
import { failureText } from './failure-text.ts'
import type { Member } from './member.ts'

export interface HealthChecksOptions {
  readonly clock: Clock
  readonly log: Log
  /** Asked for before each check. */
  settings(): { readonly intervalMs: number; readonly timeoutMs: number }
}

/** Checks a backend that no call has proved alive within the interval, until the signal aborts. */
export async function checkHealth(member: Member, options: HealthChecksOptions, signal: AbortSignal): Promise<void> {
  const { clock, log } = options
  while (!signal.aborted) {
    const { intervalMs, timeoutMs } = options.settings()
    await clock.sleep(intervalMs * (1 - Math.random() / 10), signal).catch(() => undefined)
    if (signal.aborted || member.health.isFresh(intervalMs)) continue
    try {
      await member.observed(() => member.shared.ping({ signal, timeoutMs }))
    } catch (error) {
      if (!signal.aborted) log.info('a backend failed its health check', { backend: member.name, error: failureText(error) })
    }
  }
}
