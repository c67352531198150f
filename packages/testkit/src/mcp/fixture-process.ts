import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { PATIENCE_MS } from '../run/patience.ts'
import { toFixtureArguments } from './fixture-arguments.ts'
import { STOP_WITH_STDIN } from './fixture-run.ts'
import type { FixtureOptions } from './state/options.ts'

const MAIN = fileURLToPath(new URL('fixture-main.ts', import.meta.url))
const START_LIMIT_MS = PATIENCE_MS
const KEPT_COMPLAINT = 2_000
const STOP_LIMIT_MS = 30_000

export interface FixtureCommand {
  readonly command: string
  readonly args: string[]
}

/** How to start the fixture as a child, above all over stdio: `new StdioClientTransport(fixtureCommand({ transport: 'stdio' }))`. */
export function fixtureCommand(options: FixtureOptions): FixtureCommand {
  return { command: process.execPath, args: [MAIN, ...toFixtureArguments(options)] }
}

export interface FixtureProcess extends AsyncDisposable {
  readonly url: string
  readonly pid: number
  /** Resolves with the exit code, or the name of the signal. */
  readonly exited: Promise<number | string>
  kill(signal?: NodeJS.Signals): void
  stop(): Promise<void>
}

/** Starts the HTTP or HTTP+SSE form in a process of its own, which also ends when this process dies. */
export async function spawnFixture(options: FixtureOptions & { readonly transport?: 'http' | 'sse' } = {}): Promise<FixtureProcess> {
  const { command, args } = fixtureCommand(options)
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, [STOP_WITH_STDIN]: '1' } })
  const exited = once(child, 'exit').then(([code, signal]: (number | string | null)[]) => code ?? signal ?? -1)
  const url = await listeningUrl(child, exited)
  const stop = async () => {
    child.kill('SIGTERM')
    const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
    await exited
    clearTimeout(limit)
  }
  return { url, pid: child.pid ?? -1, exited, kill: (signal) => void child.kill(signal), stop, [Symbol.asyncDispose]: stop }
}

async function listeningUrl(child: ChildProcess, exited: Promise<number | string>): Promise<string> {
  if (!child.stdout) throw new Error('the fixture has no standard output')
  const lines = createInterface({ input: child.stdout })
  let complaint = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    complaint = `${complaint}${chunk}`.slice(-KEPT_COMPLAINT)
  })
  const late = Promise.withResolvers<never>()
  const limit = setTimeout(() => late.reject(new Error('the fixture did not start in time')), START_LIMIT_MS)
  const died = exited.then((code) => Promise.reject(new Error(`the fixture ended with ${code} before it listened: ${complaint}`)))
  try {
    const [line]: string[] = await Promise.race([once(lines, 'line'), late.promise, died])
    const url = /^listening (\S+)$/.exec(line ?? '')?.[1]
    if (url === undefined) throw new Error(`the fixture printed ${JSON.stringify(line)}`)
    return url
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  } finally {
    clearTimeout(limit)
    lines.close()
    child.stdout.resume()
  }
}
