import { abortable } from '@thv/kernel/deadline'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { StdioConnection } from '../../../runtime/runtime.ts'
import type { StdioDeps } from './stdio-deps.ts'

/** A connection to a server process, within the time for a start. The runtime may not listen to the signal: what comes too late is closed. */
export async function openConnection({ runtime, clock, config, log }: StdioDeps, closing: AbortSignal): Promise<StdioConnection> {
  const limit = new AbortController()
  const timer = clock.setTimer(config.startTimeoutMs, () =>
    limit.abort(new ThvError('timeout', `no connection to the server within ${config.startTimeoutMs} ms`)),
  )
  const signal = AbortSignal.any([limit.signal, closing])
  const opening = runtime.openStdio(signal)
  try {
    return await abortable(opening, signal)
  } catch (error) {
    opening.then((late) => late.close()).catch((failure) => log.debug('no connection', { error: errorMessage(failure) }))
    throw error
  } finally {
    timer.cancel()
  }
}
