import { type BackoffOptions, createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import type { Child } from '@thv/programs/child-process'
import type { ProgramLog } from '@thv/programs/program-log'
import type { ServerHandle } from '../runtime.ts'
import { createStateCell } from '../state-cell.ts'
import { isListening, LOOPBACK, waitForListener } from './local-port.ts'

export interface SupervisedServerOptions {
  readonly name: string
  readonly port: number
  /** Installs and starts; called for each start. */
  readonly start: () => Promise<Child>
  readonly log: ProgramLog
  readonly clock: Clock
  readonly backoff?: BackoffOptions
  /** A server that was ready for this long did not crash at its start: the next delay is the shortest again. */
  readonly stableMs?: number
}

export interface SupervisedServer extends ServerHandle {
  /** Resolves when the signal has aborted and the server has ended. Never rejects. */
  readonly done: Promise<void>
}

const SLOW_START_MS = 30_000

/** Keeps a server with a port running until the signal aborts. */
export function superviseServer(options: SupervisedServerOptions, signal: AbortSignal): SupervisedServer {
  const { name, port, log, clock, stableMs = 60_000 } = options
  const backoff = createBackoff(options.backoff ?? { baseMs: 500, maxMs: 30_000 })
  const state = createStateCell({ ready: false, message: `${name} is being started`, generation: 0 }, (error) =>
    log.warn('a listener of the state of the server failed', { error: errorMessage(error) }),
  )

  async function keepRunning(): Promise<void> {
    while (!signal.aborted) {
      const outcome = await runOnce().catch((error: unknown) => ({ message: errorMessage(error), readyMs: 0 }))
      if (signal.aborted) break
      if (outcome.readyMs >= stableMs) backoff.reset()
      const delay = backoff.next()
      const message = `${outcome.message}; next start in ${(delay / 1_000).toFixed(1)} s (failure ${backoff.failures})`
      state.set({ ready: false, message })
      log.warn(message)
      await clock.sleep(delay, signal).catch(() => {}) // the loop looks at the signal
    }
    state.set({ ready: false, message: `${name} was stopped` })
  }

  async function runOnce(): Promise<{ message: string; readyMs: number }> {
    // A program that already listens there is not ours, and must not be taken for the server.
    if (await isListening(port)) return { message: `port ${port} is in use by another process`, readyMs: 0 }
    state.set({ ready: false, message: `${name} is being started` })
    const child = await options.start()
    const stop = () => void child.stop()
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    try {
      state.set({ message: `${name} has been started and does not listen on port ${port} yet`, generation: state.current.generation + 1 })
      const readyAt = await becomesReady(child)
      const end = await child.ended
      return { message: end.message, readyMs: readyAt === undefined ? 0 : clock.monotonic() - readyAt }
    } finally {
      signal.removeEventListener('abort', stop)
      await child.stop()
    }
  }

  /** Undefined when it ended before. */
  async function becomesReady(child: Child): Promise<number | undefined> {
    const gone = new AbortController()
    void child.ended.then(() => gone.abort())
    const slow = clock.setTimer(SLOW_START_MS, () => log.warn(`${name} does not listen on port ${port} after ${SLOW_START_MS / 1_000} s`))
    try {
      await waitForListener(port, linkSignals(gone.signal, signal), clock)
    } catch (error) {
      if (gone.signal.aborted || signal.aborted) return undefined
      throw error
    } finally {
      slow.cancel()
    }
    state.set({ ready: true, message: `${name} listens on port ${port} since ${new Date(clock.now()).toISOString()}` })
    log.info(`${name} is ready`, { port, pid: child.pid })
    return clock.monotonic()
  }

  return {
    url: new URL(`http://${LOOPBACK}:${port}`),
    get state() {
      return state.current
    },
    onChange: state.onChange,
    done: keepRunning(),
  }
}
