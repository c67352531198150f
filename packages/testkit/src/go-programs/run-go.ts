import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startGuard } from '../cluster/process/process-guard.ts'
import { goPlatform } from '../cluster/programs/go-build.ts'

export interface GoBuildOptions {
  readonly log: (line: string) => void
  readonly signal?: AbortSignal | undefined
}

export interface GoStep extends GoBuildOptions {
  /** Of the program that is built, for errors. */
  readonly program: string
  readonly title: string
  readonly workFolder: string
  readonly cwd: string
}

const stepLimitMs = 40 * 60_000
const heartbeatMs = 30_000

/** At the lowest priority and in a process group of its own: go starts compilers, and an interruption must end them too. */
export async function runGo(args: readonly string[], { log, signal, program, title, workFolder, cwd }: GoStep): Promise<string> {
  signal?.throwIfAborted()
  log(title)
  const logFile = join(workFolder, 'build.log')
  const errors = openSync(logFile, 'a')
  const guard = startGuard()
  const child = spawn('nice', ['-n', '19', 'go', ...args], {
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
  const heartbeat = setInterval(() => log(`still ${title}`), heartbeatMs)
  try {
    const chunks: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk))
    const code = await new Promise<number | string | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (status, by) => resolve(status ?? by))
    })
    signal?.throwIfAborted()
    if (code !== 0) throw new Error(`${program}: ${title} failed (${code}):\n${readFileSync(logFile, 'utf8').slice(-4000)}`)
    return Buffer.concat(chunks).toString()
  } finally {
    clearInterval(heartbeat)
    clearTimeout(limit)
    signal?.removeEventListener('abort', stop)
    if (child.pid !== undefined) guard.forget(child.pid)
    await guard.close()
  }
}

/** As for the Kubernetes binaries: neither a workspace nor the caller's own target may change what is built. */
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
