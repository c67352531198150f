import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { memorySettings } from '@thv/programs/memory-settings'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import type { StdioReplica } from './stdio-replica-main.ts'

const BIN = fileURLToPath(new URL('../../bin/thv-proxyrunner.js', import.meta.url))
const REPLICA = fileURLToPath(new URL('./stdio-replica-main.ts', import.meta.url))
const START_LIMIT_MS = 60_000
const STOP_LIMIT_MS = 60_000

export interface RunnerProcess extends AsyncDisposable {
  /** Of the MCP endpoint. */
  readonly url: string
  readonly base: string
  readonly pid: number
  readonly log: readonly string[]
  /** Lines of standard output. */
  readonly output: readonly string[]
  /** Stops reading standard output, so that its pipe fills up; and goes on. */
  pauseOutput(): void
  resumeOutput(): void
  /** Asks it to stop, and resolves with its exit code. */
  stop(): Promise<number | null>
  /** Ends it without a word. */
  kill(): Promise<void>
}

/** The runner as users start it: the bundled program in a process of its own, with a run config in a file. */
export async function spawnRunner(config: Record<string, unknown>, env: Record<string, string> = {}): Promise<RunnerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'thv-runner-'))
  const file = join(folder, 'runconfig.json')
  const base = { schema_version: 'v0.1.0', name: 'test', host: '127.0.0.1', port: await freePort() }
  writeFileSync(file, JSON.stringify({ ...base, ...config }))
  return await spawnServing([BIN, 'run', '--config', file, '--runtime', 'local'], { folder, env })
}

/** One of several runners of a stdio server, attached to pods of the test. */
export async function spawnStdioReplica(replica: StdioReplica, env: Record<string, string> = {}): Promise<RunnerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'thv-runner-'))
  return await spawnServing([REPLICA, JSON.stringify(replica)], { folder, env })
}

async function spawnServing(
  args: readonly string[],
  { folder, env }: { folder: string; env: Record<string, string> },
): Promise<RunnerProcess> {
  const child = spawn(process.execPath, args, {
    // As the image sets them, so that all tests of the whole program hold with them.
    env: { ...process.env, ...memorySettings(process.env), THV_DATA_DIR: join(folder, 'data'), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const log: string[] = []
  child.stderr.on('data', (chunk: Buffer) => log.push(chunk.toString()))
  const output: string[] = []
  const url = await servedUrl(child, log, output)
  return {
    ...{ url, base: new URL(url).origin, pid: child.pid ?? -1, log, output },
    pauseOutput: () => void child.stdout.pause(),
    resumeOutput: () => void child.stdout.resume(),
    async stop() {
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      return child.exitCode
    },
    async kill() {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
    async [Symbol.asyncDispose]() {
      const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      clearTimeout(limit)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The same, when its server answers: it listens before. */
export async function spawnReadyRunner(config: Record<string, unknown>, env: Record<string, string> = {}): Promise<RunnerProcess> {
  await using starting = new AsyncDisposableStack()
  const runner = starting.use(await spawnRunner(config, env))
  const deadline = performance.now() + START_LIMIT_MS
  while (!(await fetch(`${runner.base}/ready`)).ok) {
    if (performance.now() > deadline) throw new Error(`the runner was not ready: ${runner.log.join('')}`)
    await sleep(20)
  }
  starting.move()
  return runner
}

async function servedUrl(child: ChildProcess, log: readonly string[], output: string[]): Promise<string> {
  if (!child.stdout) throw new TypeError('the runner has no standard output')
  const served = Promise.withResolvers<string>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    output.push(line)
    const url = / is served at (\S+)$/.exec(line)?.[1]
    if (url) served.resolve(url)
  })
  child.once('exit', (code) => served.reject(new Error(`the runner ended with ${code}: ${log.join('')}`)))
  const limit = setTimeout(() => served.reject(new Error(`the runner did not start: ${log.join('')}`)), START_LIMIT_MS)
  try {
    return await served.promise
  } finally {
    clearTimeout(limit)
  }
}
