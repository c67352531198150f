import type { Clock } from '@thv/kernel/clock'
import { isThvError, ThvError } from '@thv/kernel/errors'
import { orAbort } from '../abortable.ts'

export interface TimeLimit {
  readonly clock: Clock
  readonly timeoutMs: number
  /** For the message: what did not end in time. */
  readonly what: string
  readonly signals: readonly (AbortSignal | undefined)[]
}

/** Runs work that gives up when its time is over or one of the signals aborts; the caller is told at once, not when the work has noticed. */
export async function withTimeLimit<T>(limit: TimeLimit, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { clock, timeoutMs, what } = limit
  const controller = new AbortController()
  const timer = Number.isFinite(timeoutMs)
    ? clock.setTimer(timeoutMs, () => controller.abort(new ThvError('timeout', `${what} took longer than ${timeoutMs} ms`)))
    : undefined
  const unlink = limit.signals.map((signal) => forwardAbort(signal, controller))
  try {
    controller.signal.throwIfAborted()
    return await orAbort(work(controller.signal), controller.signal)
  } finally {
    timer?.cancel()
    for (const undo of unlink) undo()
  }
}

/** Whoever reads codes finds one, also when the caller's signal was aborted with something else. */
export function abortError(signal: AbortSignal): ThvError {
  const reason: unknown = signal.reason
  return isThvError(reason) ? reason : new ThvError('aborted', 'the request was given up', { cause: reason })
}

function forwardAbort(signal: AbortSignal | undefined, controller: AbortController): () => void {
  if (signal === undefined) return () => {}
  const onAbort = () => controller.abort(abortError(signal))
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return () => signal.removeEventListener('abort', onAbort)
}
