import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import type { ProcessGuard } from './process-guard.ts'

/** A background program of the harness. Its output goes to a file, so a busy event loop never blocks it. */
export interface Daemon {
  readonly name: string
  readonly pid: number
  readonly running: boolean
  /** Resolves when it has ended, with a text that says how. */
  readonly ended: Promise<string>
  logTail(lines?: number): string
  /** SIGTERM, then SIGKILL after the limit. Resolves when it has ended; harmless when it already has. */
  stop(graceMs: number): Promise<void>
  kill(): Promise<void>
}

export interface DaemonOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly logFile: string
  readonly guard: ProcessGuard
}

const killLimitMs = 60_000

export async function startDaemon(name: string, options: DaemonOptions): Promise<Daemon> {
  const log = openSync(options.logFile, 'a')
  const child = spawn(options.command, options.args, { detached: true, stdio: ['ignore', log, log] })
  closeSync(log)
  const pid = child.pid
  if (pid === undefined) throw await spawnError(child, name)
  try {
    options.guard.watch(pid)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  child.unref()

  let running = true
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => {
      running = false
      options.guard.forget(pid)
      resolve(signal ? `${name} was ended by ${signal}` : `${name} ended with code ${code}`)
    })
  })

  const signal = (which: NodeJS.Signals) => {
    if (running) process.kill(pid, which)
  }
  const kill = async () => {
    signal('SIGKILL')
    if (!(await within(killLimitMs, ended))) throw new Error(`${name} (pid ${pid}) survived SIGKILL for ${killLimitMs} ms`)
  }
  return {
    name,
    pid,
    get running() {
      return running
    },
    ended,
    kill,
    logTail: (lines = 30) => tail(options.logFile, lines),
    stop: async (graceMs) => {
      signal('SIGTERM')
      if (!(await within(graceMs, ended))) await kill()
    },
  }
}

/** True when the promise settles in time. The timer keeps the event loop alive, which an unref'd child does not. */
export async function within(limitMs: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, limitMs, false)
  })
  return await Promise.race([promise.then(() => true), late]).finally(() => clearTimeout(timer))
}

export function tail(file: string, lines: number): string {
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
}

function spawnError(child: ReturnType<typeof spawn>, name: string): Promise<Error> {
  return new Promise((resolve) => child.once('error', (cause) => resolve(new Error(`${name} could not be started`, { cause }))))
}
