import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { endsWithin } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'
import { createLineLog } from './line-log.ts'
import type { ProcessGuard } from './process-guard.ts'
import type { ProgramEnd } from './program-end.ts'
import type { ProgramLog } from './program-log.ts'

/** The program to start. */
export interface Command {
  readonly file: string
  readonly args: readonly string[]
}

export interface ChildOptions {
  /** In messages and the log. */
  readonly name: string
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string | undefined
  /** `protocol`: stdin and stdout are for the caller. `log`: there is no stdin, and stdout goes to the log as stderr does. */
  readonly stdio: 'protocol' | 'log'
  readonly guard: ProcessGuard
  readonly log: ProgramLog
  readonly clock?: Clock
  readonly limits?: Partial<StopLimits> | undefined
}

/** How long a child may take to go after end of input, after SIGTERM, and after SIGKILL. */
export interface StopLimits {
  readonly eofMs: number
  readonly termMs: number
  readonly killMs: number
}

const STOP_LIMITS: StopLimits = { eofMs: 2_000, termMs: 5_000, killMs: 2_000 }

/** A process in a group of its own, so that whatever it starts goes with it. */
export interface Child {
  readonly pid: number
  /** Both null with `stdio: 'log'`. */
  readonly stdin: Writable | null
  readonly stdout: Readable | null
  readonly isRunning: boolean
  /** Never rejects. */
  readonly ended: Promise<ProgramEnd>
  /** Idempotent; resolves when it has ended, or has survived even SIGKILL for its limit. */
  stop(): Promise<void>
}

/** Throws `process_start_failed`. */
export async function startChild(command: Command, options: ChildOptions): Promise<Child> {
  const { name, guard, log, clock = systemClock, stdio } = options
  const limits = { ...STOP_LIMITS, ...options.limits }
  const child = spawn(command.file, command.args, {
    detached: true,
    stdio: [stdio === 'protocol' ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    env: options.env,
    ...(options.cwd !== undefined && { cwd: options.cwd }),
  })
  if (child.pid === undefined) throw await startFailure(child, name)
  const pid = child.pid
  guard.watch(pid)
  logStream(child.stderr, 'stderr', { log, clock, pid })
  if (stdio === 'log') logStream(child.stdout, 'stdout', { log, clock, pid })
  for (const stream of [child.stdin, child.stdout]) stream?.on('error', () => {}) // the child is gone, which `ended` says

  let isRunning = true
  const ended = new Promise<ProgramEnd>((resolve) => {
    child.once('exit', (code, signal) => {
      isRunning = false
      signalGroup(pid, 'SIGKILL') // what it started and left behind
      guard.forget(pid)
      resolve(endOf(name, code, signal))
    })
  })

  async function stop(): Promise<void> {
    if (stdio === 'protocol') {
      child.stdin?.end()
      child.stdout?.resume() // a child that cannot write does not end
      if (await endsWithin(ended, limits.eofMs, clock)) return
    }
    if (isRunning) signalGroup(pid, 'SIGTERM')
    if (await endsWithin(ended, limits.termMs, clock)) return
    if (isRunning) signalGroup(pid, 'SIGKILL')
    if (!(await endsWithin(ended, limits.killMs, clock))) log.warn(`${name} did not end, not even by SIGKILL`, { pid })
  }

  let stopping: Promise<void> | undefined
  return {
    pid,
    stdin: child.stdin,
    stdout: stdio === 'protocol' ? child.stdout : null,
    get isRunning() {
      return isRunning
    },
    ended,
    stop() {
      stopping ??= isRunning ? stop() : Promise.resolve()
      return stopping
    },
  }
}

function logStream(stream: Readable | null, from: 'stderr' | 'stdout', to: { log: ProgramLog; clock: Clock; pid: number }): void {
  const lines = createLineLog({ write: (line) => to.log.info(line, { from, pid: to.pid }), clock: to.clock })
  stream?.on('data', (chunk: Buffer) => lines.push(chunk))
  stream?.once('close', () => lines.end())
  stream?.on('error', () => {}) // the child is gone, which `ended` says
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    // ESRCH: no process is left. EPERM: on macOS, for a group of which only a zombie is left.
    if (!(error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'EPERM'))) throw error
  }
}

function endOf(name: string, code: number | null, signal: NodeJS.Signals | null): ProgramEnd {
  if (signal !== null) return { signal, message: `${name} was ended by ${signal}` }
  return { code: code ?? 0, message: `${name} ended with code ${code ?? 0}` }
}

function startFailure(child: ChildProcess, name: string): Promise<Error> {
  return new Promise((resolve) => {
    child.once('error', (cause) => {
      const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : 'unknown error'
      resolve(new ThvError('process_start_failed', `${name} could not be started (${code})`, { details: { code } }))
    })
  })
}
