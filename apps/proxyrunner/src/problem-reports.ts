import type { Backend } from '@thv/gateway/backend'
import type { Clock } from '@thv/kernel/clock'
import type { Runtime } from './runtime/runtime.ts'

export interface ProblemReportsOptions {
  readonly backend: Pick<Backend, 'status'>
  readonly runtime: Pick<Runtime, 'problem' | 'report'>
  readonly clock: Clock
  readonly signal: AbortSignal
}

const LOOK_MS = 1_000
/** Looks in a row without a problem before it counts as over: between two tries of a server there is none for a moment. */
const CALM_LOOKS = 3

/** Reports why the server is not ready, and when that is over, until the signal aborts. The runtime decides how often to pass it on. */
export async function reportProblems({ backend, runtime, clock, signal }: ProblemReportsOptions): Promise<void> {
  if (runtime.report === undefined) return
  let calm = 0
  while (!signal.aborted) {
    const { ready, problem } = backend.status
    const cause = ready ? undefined : (runtime.problem ?? problem)
    calm = cause === undefined ? calm + 1 : 0
    if (cause !== undefined || ready || calm >= CALM_LOOKS) runtime.report(cause)
    await clock.sleep(LOOK_MS, signal).catch(() => undefined) // the loop sees the signal
  }
}
