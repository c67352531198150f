import { createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { KubeApiError } from '@thv/kube/client/kube-api-error'
import { isTransient } from '@thv/kube/client/unreachable'

export interface PatienceOptions {
  /** For all calls together, from now on. The call that is under way at the end is not cut off. */
  readonly withinMs: number
  readonly signal: AbortSignal | undefined
  readonly clock?: Clock
  readonly random?: () => number
}

export type Patience = <T>(call: () => Promise<T>) => Promise<T>

/** Calls fail or succeed at once. */
export const noPatience: Patience = (call) => call()

/**
 * Repeats calls that find the API server busy or away, with back-off and jitter, until the time is up: a server that has just started on a
 * loaded machine may not answer for seconds. For calls that may be repeated although the server has seen them.
 */
export function createPatience({ withinMs, signal, clock = systemClock, random = Math.random }: PatienceOptions): Patience {
  const deadline = clock.monotonic() + withinMs
  return async (call) => {
    const backoff = createBackoff({ baseMs: 100, maxMs: 5_000, random })
    for (;;) {
      try {
        return await call()
      } catch (error) {
        if (!mayPass(error) || signal?.aborted) throw error
        const wait = backoff.next()
        if (clock.monotonic() + wait >= deadline) throw givenUp(error, { withinMs, attempts: backoff.failures })
        await clock.sleep(wait, signal)
      }
    }
  }
}

const BUSY: ReadonlySet<number> = new Set([429, 503, 504])

function mayPass(error: unknown): boolean {
  if (error instanceof KubeApiError) return BUSY.has(error.status)
  return isTransient(error) || (isThvError(error, 'kube_unreachable') && error.details.timeoutMs !== undefined)
}

function givenUp(cause: unknown, { withinMs, attempts }: { withinMs: number; attempts: number }): ThvError {
  const tried = `${attempts} attempt${attempts === 1 ? '' : 's'}`
  return new ThvError('timeout', `the API server did not answer within ${withinMs / 1_000} s (${tried}): ${errorMessage(cause)}`, { cause })
}
