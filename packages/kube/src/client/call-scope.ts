import type { Clock } from '@thv/kernel/clock'

/** One call's signal: aborts when the caller's does, when the client closes, or when the time is up. Must be disposed. */
export interface CallScope extends Disposable {
  readonly signal: AbortSignal
  /** Time left, also for the question whether another retry fits. */
  remainingMs(): number
  /** The limit no longer counts (a watch stream is open); the caller's signal still does. */
  lift(): void
}

export interface CallScopeOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly timeoutError: () => unknown
  readonly signals: readonly (AbortSignal | undefined)[]
}

/** Not AbortSignal.any: the listeners must leave the caller's long-lived signal as soon as the call ends. */
export function openScope({ clock, timeoutMs, timeoutError, signals }: CallScopeOptions): CallScope {
  const controller = new AbortController()
  const started = clock.monotonic()
  const timer = clock.setTimer(timeoutMs, () => controller.abort(timeoutError()))
  const undo: (() => void)[] = []
  for (const signal of signals) {
    if (signal === undefined) continue
    if (signal.aborted) controller.abort(signal.reason)
    const onAbort = () => controller.abort(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    undo.push(() => signal.removeEventListener('abort', onAbort))
  }
  return {
    signal: controller.signal,
    remainingMs: () => timeoutMs - (clock.monotonic() - started),
    lift: () => timer.cancel(),
    [Symbol.dispose]() {
      timer.cancel()
      for (const fn of undo) fn()
    },
  }
}
