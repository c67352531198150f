import { access } from 'node:fs/promises'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { type Command, startChild } from './child-process.ts'
import type { ProcessGuard } from './process-guard.ts'
import type { Env } from './program-environment.ts'
import type { ProgramLog } from './program-log.ts'

/** A package of a registry, in one exact version. */
export interface PackageId {
  readonly name: string
  readonly version: string
}

export interface InstallOptions {
  readonly dataDir: string
  readonly env: Env
  readonly guard: ProcessGuard
  readonly log: ProgramLog
  readonly signal: AbortSignal
  readonly clock?: Clock
  readonly limitMs?: number
}

export const INSTALL_LIMIT_MS = 10 * 60_000
const PROGRESS_MS = 15_000
const MAX_REASON = 400

/** Runs npm or uv with what they need, and says how it goes on. Throws `package_install_failed`. */
export async function runInstaller(
  id: string,
  { command, cwd, env }: { command: Command; cwd: string; env: Readonly<Record<string, string>> },
  options: InstallOptions,
): Promise<void> {
  const { guard, log, signal, clock = systemClock, limitMs = INSTALL_LIMIT_MS } = options
  signal.throwIfAborted()
  log.info(`installing ${id}`)
  const startedAt = clock.monotonic()
  const seconds = () => Math.round((clock.monotonic() - startedAt) / 1_000)
  const name = command.file.slice(command.file.lastIndexOf('/') + 1)
  const said: string[] = []
  const listening: ProgramLog = {
    ...log,
    info: (text, fields) => {
      const line = withoutCredentials(text)
      said.push(line)
      if (said.length > 50) said.shift()
      log.info(line, fields)
    },
  }
  const child = await startChild(command, { name, cwd, env, stdio: 'log', guard, log: listening, clock })
  const stop = () => void child.stop()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop() // while it was started
  const limit = clock.setTimer(limitMs, stop)
  const progress = setInterval(() => log.info(`still installing ${id}`, { seconds: seconds() }), PROGRESS_MS)
  const end = await child.ended.finally(() => {
    signal.removeEventListener('abort', stop)
    limit.cancel()
    clearInterval(progress)
  })
  signal.throwIfAborted()
  if (end.code !== 0)
    throw new ThvError(
      'package_install_failed',
      `image: ${id} could not be installed: ${end.message}${reasonOf(said)}; the log has the rest`,
    )
  log.info(`installed ${id}`, { seconds: seconds() })
}

/** The first lines that call themselves errors, or uv's cause of one, or else the last line: installers say much, and the rest is advice. */
function reasonOf(said: readonly string[]): string {
  const errors = said.filter((line) => /\berror\b|^\s*cause:/i.test(line) && !/complete log|\.log\b/.test(line))
  const lines = errors.length > 0 ? errors.slice(0, 3) : said.slice(-1)
  const text = lines
    .map((line) => line.replace(/^npm error\s*/i, '').trim())
    .filter((line) => line.includes(' ')) // npm leaves lines such as "404" between its sentences
    .join('; ')
  return text === '' ? '' : `: ${text.slice(0, MAX_REASON)}`
}

/** Installers repeat the address of their registry, in which a password may stand. */
function withoutCredentials(line: string): string {
  return line.replace(/\/\/[^/\s]+@/g, '//')
}

export async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}
