import type { Clock } from './clock.ts'
import { isThvError, ThvError } from './errors.ts'

/**
 * Settles as the work does, or rejects with the signal's reason as soon as it aborts; the work then goes on alone, and a result that comes
 * later goes to `late`. Leaves no listener behind: one on a signal made of others would keep that signal, and everything it can reach, for
 * as long as one of those lives.
 */
export function abortable<T>(work: Promise<T>, signal: AbortSignal, late?: (value: T) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    work.then(
      (value) => {
        signal.removeEventListener('abort', onAbort)
        if (signal.aborted) late?.(value)
        resolve(value)
      },
      (error) => {
        signal.removeEventListener('abort', onAbort)
        reject(error)
      },
    )
  })
}

/** Ends when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

export interface TimeLimit {
  readonly clock: Clock
  /** Infinity: only the signals count. */
  readonly timeoutMs: number
  /** For the message: the work that did not end in time. */
  readonly what: string
  readonly signals: readonly (AbortSignal | undefined)[]
}

/** Runs work that gives up when its time is over or one of the signals aborts; the caller hears of it at once, not when the work notices. */
export async function withTimeLimit<T>(limit: TimeLimit, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { clock, timeoutMs, what } = limit
  const controller = new AbortController()
  const timer = Number.isFinite(timeoutMs)
    ? clock.setTimer(timeoutMs, () => controller.abort(new ThvError('timeout', `${what} took longer than ${timeoutMs} ms`)))
    : undefined
  const unlink = limit.signals.map((signal) => forwardAbort(signal, controller))
  try {
    controller.signal.throwIfAborted()
    return await abortable(work(controller.signal), controller.signal)
  } finally {
    timer?.cancel()
    for (const undo of unlink) undo()
  }
}

/** An error with a code, also when the caller aborted its signal with something else. */
function abortError(signal: AbortSignal): ThvError {
  const reason: unknown = signal.reason
  return isThvError(reason) ? reason : new ThvError('aborted', 'the request was given up', { cause: reason })
}

/** Whether the promise settles in time. It must not reject. */
export async function endsWithin(ended: Promise<unknown>, ms: number, clock: Clock): Promise<boolean> {
  const over = new AbortController()
  const late = clock.sleep(ms, over.signal).then(
    () => false,
    () => true, // only we abort it, and only after `ended`
  )
  return await Promise.race([ended.then(() => true), late]).finally(() => over.abort())
}

function forwardAbort(signal: AbortSignal | undefined, controller: AbortController): () => void {
  if (signal === undefined) return () => {}
  const onAbort = () => controller.abort(abortError(signal))
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return () => signal.removeEventListener('abort', onAbort)
}
