import { formatDuration } from '@thv/kernel/duration'
import { ThvError } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import type { FetchContext } from './registry-handler.ts'

/** Runs an attempt with a signal that also aborts when the attempt takes longer than its limits allow. */
export async function withinTimeLimit<T>(context: FetchContext, work: (context: FetchContext) => Promise<T>): Promise<T> {
  const { timeoutMs } = context.limits
  const limit = new AbortController()
  const timer = context.clock.setTimer(timeoutMs, () =>
    limit.abort(new ThvError('source_limit', `the source was not read within ${formatDuration(timeoutMs)}`)),
  )
  try {
    return await work({ ...context, signal: linkSignals(context.signal, limit.signal) })
  } finally {
    timer.cancel()
  }
}
