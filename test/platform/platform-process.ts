import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type ProcessIdentity, processStart } from '@thv/programs/process-identity'
import { ensureBundle } from '../../scripts/bundle.mjs'

const THV = fileURLToPath(new URL('../../apps/cli/bin/thv.js', import.meta.url))
const START_LIMIT_MS = 240_000
const STOP_LIMIT_MS = 120_000

/** `thv up` as a process of its own, on a data folder. */
export interface PlatformProcess {
  readonly pid: number
  readonly folder: string
  readonly kubeconfigPath: string
  /** Its output so far. */
  readonly output: () => string
  /** SIGKILL to the platform alone: what becomes of its pods is for the test to see. */
  kill(): Promise<void>
  /** As Ctrl-C. Returns the exit code. */
  stop(): Promise<number | null>
}

export interface DataFolder extends AsyncDisposable {
  readonly path: string
  /** Starts the platform; resolves when it has written its kubeconfig and answers. */
  up(...args: readonly string[]): Promise<PlatformProcess>
}

/** A new data folder. Whatever still runs on it is ended with it. `nodeArgs` are options of Node for the platform's own process. */
export async function dataFolder({ nodeArgs = [] }: { readonly nodeArgs?: readonly string[] } = {}): Promise<DataFolder> {
  const path = await mkdtemp(join(tmpdir(), 'thv-platform-'))
  const started: ChildProcess[] = []
  return {
    path,
    async up(...args) {
      // Made once, so that the limits of a start are about the start.
      for (const app of ['cli', 'operator', 'proxyrunner']) await ensureBundle(`apps/${app}/src/main.ts`)
      const command = [...nodeArgs, THV, 'up', '--data-dir', path, ...args]
      const child = spawn(process.execPath, command, { cwd: path, stdio: ['ignore', 'pipe', 'pipe'] })
      started.push(child)
      return await running(child, path)
    },
    async [Symbol.asyncDispose]() {
      for (const child of started) if (isRunning(child)) await end(child, 'SIGTERM')
      await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
    },
  }
}

async function running(child: ChildProcess, folder: string): Promise<PlatformProcess> {
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  // Its last output may come after the event of its end.
  const closed = once(child, 'close')
  const note = join(folder, 'platform.json')
  const deadline = performance.now() + START_LIMIT_MS
  while (!existsSync(note) || (JSON.parse(readFileSync(note, 'utf8')) as { pid: number }).pid !== child.pid) {
    if (!isRunning(child)) {
      await closed
      throw new Error(`thv up ended with ${child.exitCode ?? child.signalCode}:\n${output}`)
    }
    if (performance.now() > deadline) throw new Error(`thv up was not ready after ${START_LIMIT_MS} ms:\n${output}`)
    await sleep(20)
  }
  return {
    pid: child.pid ?? -1,
    folder,
    kubeconfigPath: join(folder, 'kubeconfig'),
    output: () => output,
    kill: async () => void (await end(child, 'SIGKILL')),
    stop: () => end(child, 'SIGINT'),
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (!isRunning(child)) return child.exitCode
  const gone = once(child, 'exit')
  child.kill(signal)
  const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
  const [code] = (await gone) as [number | null]
  clearTimeout(limit)
  return code
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

/** All processes whose parents lead to `pid`, those in groups and sessions of their own included, with `pid` itself left out. */
export function descendantsOf(pid: number, processes: ReadonlyMap<number, number>): ProcessIdentity[] {
  const leadsTo = (each: number): boolean => {
    const parent = processes.get(each)
    return parent !== undefined && (parent === pid || leadsTo(parent))
  }
  return [...processes.keys()].filter(leadsTo).flatMap((each) => {
    const start = processStart(each)
    return start === undefined ? [] : [{ pid: each, start }]
  })
}
