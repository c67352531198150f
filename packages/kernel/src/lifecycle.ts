import { type Clock, systemClock } from './clock.ts'
import { errorMessage, ThvError } from './errors.ts'

/** The life of a process or of a part of it: work watches `signal`, and an owner of open resources registers how to close them. */
export interface Lifecycle {
  /** Aborts when shutdown begins, before the first hook runs; its reason is a ThvError `aborted`. */
  readonly signal: AbortSignal
  /**
   * Hooks run one after the other, in reverse order of registration: what was opened last is closed first. The signal given
   * to a hook aborts when its time is over; the hook is then left behind. A hook registered while shutdown runs is run
   * next; registering after its end throws `aborted`.
   */
  onShutdown(name: string, fn: ShutdownHook, opts?: { timeoutMs?: number }): void
  /** Idempotent: every call returns the promise of the first. Never rejects. */
  shutdown(reason?: string): Promise<ShutdownReport>
}

export type ShutdownHook = (signal: AbortSignal) => void | Promise<void>

export interface ShutdownReport {
  readonly reason: string
  readonly durationMs: number
  /** All hooks done. */
  readonly clean: boolean
  readonly hooks: readonly HookReport[]
}

export interface HookReport {
  readonly name: string
  readonly outcome: 'done' | 'failed' | 'timeout'
  readonly durationMs: number
  /** One line, when failed. */
  readonly error?: string
}

interface Hook {
  readonly name: string
  readonly fn: ShutdownHook
  readonly timeoutMs: number
}

/** Below the 30 s that Kubernetes gives a pod between SIGTERM and SIGKILL. */
const DEFAULT_DRAIN_MS = 25_000

export function createLifecycle(opts: { clock?: Clock; drainMs?: number } = {}): Lifecycle {
  const { clock = systemClock, drainMs = DEFAULT_DRAIN_MS } = opts
  if (!(drainMs >= 0)) throw new RangeError(`drainMs must be 0 or more, not ${drainMs}`)
  const controller = new AbortController()
  const hooks: Hook[] = []
  let ending: Promise<ShutdownReport> | undefined
  let ended = false

  async function drain(reason: string): Promise<ShutdownReport> {
    const startedAt = clock.monotonic()
    const deadline = startedAt + drainMs
    const reports: HookReport[] = []
    for (let hook = hooks.pop(); hook; hook = hooks.pop()) {
      const limitMs = Math.min(hook.timeoutMs, deadline - clock.monotonic())
      reports.push(await runHook(hook, limitMs, clock))
    }
    ended = true
    return { reason, durationMs: clock.monotonic() - startedAt, clean: reports.every((r) => r.outcome === 'done'), hooks: reports }
  }

  return {
    signal: controller.signal,
    onShutdown(name, fn, { timeoutMs = Infinity } = {}) {
      if (ended) throw new ThvError('aborted', `cannot register shutdown hook ${name}: shutdown is over`)
      if (!(timeoutMs >= 0)) throw new RangeError(`timeoutMs of shutdown hook ${name} must be 0 or more, not ${timeoutMs}`)
      hooks.push({ name, fn, timeoutMs })
    },
    shutdown(reason = 'shutdown') {
      if (ending) return ending
      // Remembered before the signal aborts: a listener may call shutdown again.
      const { promise, resolve } = Promise.withResolvers<ShutdownReport>()
      ending = promise
      controller.abort(new ThvError('aborted', `shutting down: ${reason}`))
      resolve(drain(reason))
      return ending
    },
  }
}

async function runHook(hook: Hook, limitMs: number, clock: Clock): Promise<HookReport> {
  const startedAt = clock.monotonic()
  const limit = new AbortController()
  const over = new AbortController()
  const expire = (): Ending => {
    limit.abort(new ThvError('shutdown_timeout', `shutdown hook ${hook.name} did not end within ${Math.max(0, limitMs)} ms`))
    return { outcome: 'timeout' }
  }
  // With no time left a hook is still called, with its signal aborted, so that what closes at once does close.
  if (limitMs <= 0) expire()
  const called = call(hook.fn, limit.signal)
  const ending = await Promise.race([called, limitMs <= 0 ? oneTurn().then(expire) : clock.sleep(limitMs, over.signal).then(expire)])
  over.abort()
  return { name: hook.name, ...ending, durationMs: clock.monotonic() - startedAt }
}

type Ending = Pick<HookReport, 'outcome' | 'error'>

async function call(fn: ShutdownHook, signal: AbortSignal): Promise<Ending> {
  try {
    await fn(signal)
    return { outcome: 'done' }
  } catch (e) {
    return { outcome: 'failed', error: errorMessage(e) }
  }
}

/** Enough for a hook that needs no I/O. */
function oneTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * A signal that aborts as soon as one of the given does, with its reason. The sources hold it weakly, so a short-lived link
 * to a long-lived signal leaves nothing behind, provided that listeners on the link are removed when done.
 */
export function linkSignals(...signals: (AbortSignal | undefined)[]): AbortSignal {
  const given = signals.filter((signal) => signal !== undefined)
  const [only] = given
  return given.length === 1 && only ? only : AbortSignal.any(given)
}
