import { aborted } from './deadline.ts'
import { errorMessage, isThvError } from './errors.ts'
import { createLifecycle, type Lifecycle, type ShutdownReport } from './lifecycle.ts'

/** The part of Node's `process` that is used here. */
export interface ProcessLike {
  on(event: StopSignal, listener: () => void): unknown
  off(event: StopSignal, listener: () => void): unknown
  exit(code: number): void
}

export type StopSignal = 'SIGTERM' | 'SIGINT'

/** 128 plus the number of the signal, as shells report it. */
const EXIT_CODES: Readonly<Record<StopSignal, number>> = { SIGINT: 130, SIGTERM: 143 }

/** The first signal begins an orderly shutdown; a second one, of either kind, ends the process at once. */
export function handleSignals(lifecycle: Lifecycle, proc: ProcessLike): Disposable {
  const listeners = (Object.keys(EXIT_CODES) as StopSignal[]).map((signal) => {
    const listener = () => {
      if (lifecycle.signal.aborted) proc.exit(EXIT_CODES[signal])
      else lifecycle.shutdown(signal)
    }
    proc.on(signal, listener)
    return { signal, listener }
  })
  return {
    [Symbol.dispose]() {
      for (const { signal, listener } of listeners) proc.off(signal, listener)
    },
  }
}

/** The main function of a process. A number is its exit code. */
export type Main = (lifecycle: Lifecycle) => Promise<void> | Promise<number>

export interface RunMainOptions {
  lifecycle?: Lifecycle
  proc?: ProcessLike
  /** Takes one line for people; standard error unless given. */
  printError?: (line: string) => void
}

/**
 * The outermost frame of a process: runs `main` until it returns, fails, or a signal asks it to stop; then shuts down and
 * exits. Exit code 0 (or the number that `main` returns), 1 when `main` or the shutdown failed, 2 for a usage error.
 * After a signal, `main` has the rest of the drain time to return, after all hooks; ending with `aborted` then is no failure.
 */
export async function runMain(main: Main, options: RunMainOptions = {}): Promise<void> {
  const { lifecycle = createLifecycle(), proc = process, printError = console.error } = options
  using _signals = handleSignals(lifecycle, proc)
  const { promise: running, resolve } = Promise.withResolvers<Outcome>()
  // Registered before main can register anything, so it runs last: by then everything that main waits for has been closed.
  lifecycle.onShutdown('main', async () => void (await running))
  resolve(outcomeOf(main, lifecycle))
  void running.then(() => lifecycle.shutdown('main ended'))

  await aborted(lifecycle.signal)
  const report = await lifecycle.shutdown()
  const lines = failuresOf(report)
  const outcome = report.hooks.some((hook) => hook.name === 'main' && hook.outcome === 'timeout') ? { code: 1 } : await running
  if (outcome.error !== undefined) lines.unshift(outcome.error)
  for (const line of lines) printError(line)
  proc.exit(outcome.code !== 0 ? outcome.code : report.clean ? 0 : 1)
}

interface Outcome {
  readonly code: number
  readonly error?: string
}

async function outcomeOf(main: Main, lifecycle: Lifecycle): Promise<Outcome> {
  try {
    return { code: (await main(lifecycle)) ?? 0 }
  } catch (e) {
    if (lifecycle.signal.aborted && (e === lifecycle.signal.reason || isThvError(e, 'aborted'))) return { code: 0 }
    return { code: isThvError(e, 'usage') ? 2 : 1, error: errorMessage(e) }
  }
}

function failuresOf(report: ShutdownReport): string[] {
  return report.hooks
    .filter((hook) => hook.outcome !== 'done')
    .map(
      (hook) =>
        `shutdown: ${hook.name} ${hook.outcome === 'failed' ? `failed: ${hook.error}` : `still running after ${Math.round(hook.durationMs)} ms`}`,
    )
}
