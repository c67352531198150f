import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { tail } from '../process/daemon.ts'
import { startGuard } from '../process/process-guard.ts'

export interface GoBuildOptions {
  readonly log: (line: string) => void
  readonly signal?: AbortSignal | undefined
  /** A line so often while nothing else happens: a silent CI job may be taken for a hung one. */
  readonly heartbeatMs?: number
}

export interface GoStep extends GoBuildOptions {
  readonly title: string
  /** Its `build.log` gets what go prints to standard error. */
  readonly workFolder: string
  readonly cwd: string
  /** Leaves the cores to others. */
  readonly isNice?: boolean
}

const stepLimitMs = 40 * 60_000
const defaultHeartbeatMs = 30_000

/** Runs go and returns what it prints, in a process group of its own: go starts compilers, and an interruption must end them too. */
export async function runGo(args: readonly string[], step: GoStep): Promise<string> {
  const { log, signal, title, workFolder, cwd, isNice = false, heartbeatMs = defaultHeartbeatMs } = step
  signal?.throwIfAborted()
  const begin = performance.now()
  const seconds = () => Math.round((performance.now() - begin) / 1000)
  log(title)
  const logFile = join(workFolder, 'build.log')
  const errors = openSync(logFile, 'a')
  const guard = startGuard()
  const command = isNice ? ['nice', '-n', '19', 'go', ...args] : ['go', ...args]
  const child = spawn(command[0] ?? 'go', command.slice(1), {
    cwd,
    env: buildEnvironment(),
    detached: true,
    stdio: ['ignore', 'pipe', errors],
  })
  closeSync(errors)
  if (child.pid !== undefined) guard.watch(child.pid)
  const stop = () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
  }
  signal?.addEventListener('abort', stop, { once: true })
  const limit = setTimeout(stop, stepLimitMs)
  const heartbeat = setInterval(() => log(`still ${title}, ${seconds()} s`), heartbeatMs)
  try {
    const chunks: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk))
    const code = await new Promise<number | string | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (status, by) => resolve(status ?? by))
    })
    signal?.throwIfAborted()
    if (code !== 0) throw new Error(`${title} failed (${code}):\n${tail(logFile, 30)}`)
    log(`done with ${title}, ${seconds()} s`)
    return Buffer.concat(chunks).toString()
  } finally {
    clearInterval(heartbeat)
    clearTimeout(limit)
    signal?.removeEventListener('abort', stop)
    if (child.pid !== undefined) guard.forget(child.pid)
    await guard.close()
  }
}

export function goPlatform(): { os: string; arch: string } {
  return { os: process.platform === 'win32' ? 'windows' : process.platform, arch: process.arch === 'x64' ? 'amd64' : process.arch }
}

/** The caller's own Go settings must neither cross-compile nor pull in a workspace. */
function buildEnvironment(): NodeJS.ProcessEnv {
  const { os, arch } = goPlatform()
  return {
    ...process.env,
    CGO_ENABLED: '0',
    GOTOOLCHAIN: 'local',
    GOGC: '400',
    GOFLAGS: '-mod=mod -buildvcs=false -trimpath',
    GOOS: os,
    GOARCH: arch,
    GOWORK: 'off',
    GO111MODULE: 'on',
  }
}
