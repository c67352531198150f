import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { ensureBundle } from '../../scripts/bundle.mjs'
import { type MeasuredProcess, startMeasured } from './measured-process.ts'

/** Something that answers at a URL, in a process of its own. */
export interface Subject extends AsyncDisposable {
  readonly url: string
  readonly process: MeasuredProcess
  /** From its start until it said that it is ready. */
  readonly startMs: number
}

const START_LIMIT_MS = 30_000

export async function startLeanHttp(env: Readonly<Record<string, string>> = {}): Promise<Subject> {
  return await startListening('bench/proxy/lean-http.ts', env)
}

/** A script that says where it listens. */
export async function startListening(script: string, env: Readonly<Record<string, string>> = {}): Promise<Subject> {
  return await listening(startMeasured({ script, env }))
}

export async function startBare(backend: string, nodeArgs: readonly string[] = []): Promise<Subject> {
  return await listening(startMeasured({ script: 'bench/proxy/bare.ts', env: { THV_BACKEND: new URL(backend).origin }, nodeArgs }))
}

/** How to start the lean server over stdio. */
export async function leanStdioCommand(): Promise<readonly [string, string]> {
  return [process.execPath, await ensureBundle('bench/proxy/lean-stdio.ts')]
}

export interface RunnerOptions {
  /** Of the runner. Default: made from the sources as they are. */
  readonly bundle?: string | undefined
  readonly env?: Readonly<Record<string, string>>
  readonly nodeArgs?: readonly string[]
  readonly onLine?: (line: string) => void
}

/** The runner before a server that is there already. */
export function httpConfig(backend: string): Record<string, unknown> {
  return { name: 'bench-http', transport: 'streamable-http', remote_url: backend, remote_policy: { allow_loopback: true } }
}

/** The runner with a stdio server of its own. */
export function stdioConfig([file, ...args]: readonly string[]): Record<string, unknown> {
  return { name: 'bench-stdio', transport: 'stdio', image: `exec://${file}`, cmd_args: args }
}

/** Starts `thv-proxyrunner run` from its bundle and waits until it is ready. */
export async function startRunner(config: Record<string, unknown>, options: RunnerOptions = {}): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-'))
  const file = join(folder, 'runconfig.json')
  await writeFile(file, JSON.stringify({ schema_version: 'v0.1.0', host: '127.0.0.1', port: 0, ...config }))
  const script = 'apps/proxyrunner/src/main.ts'
  if (options.bundle === undefined) await ensureBundle(script) // not part of the start
  const startedAt = performance.now()
  const child = await startMeasured({ script, args: ['run', '--config', file, '--runtime', 'local'], ...options })
  return await readySubject(child, { startedAt, folder, path: '/ready' })
}

/** Waits until a program that serves at a URL says there that it is ready. */
export async function readySubject(
  child: MeasuredProcess,
  { startedAt, folder, path }: { startedAt: number; folder: string; path: string },
): Promise<Subject> {
  try {
    const [, url = ''] = await child.line(/ is served at (http\S+)/)
    await ready(new URL(path, url).href)
    return subject(child, url, { startedAt, folder })
  } catch (error) {
    await child.stop()
    await rm(folder, { recursive: true })
    throw error
  }
}

async function listening(starting: Promise<MeasuredProcess>): Promise<Subject> {
  const startedAt = performance.now()
  const child = await starting
  const [, url = ''] = await child.line(/^listening (http\S+)/)
  return subject(child, url, { startedAt })
}

function subject(child: MeasuredProcess, url: string, { startedAt, folder }: { startedAt: number; folder?: string }): Subject {
  return {
    ...{ url, process: child, startMs: performance.now() - startedAt },
    async [Symbol.asyncDispose]() {
      await child.stop()
      if (folder !== undefined) await rm(folder, { recursive: true })
    },
  }
}

async function ready(url: string): Promise<void> {
  const endsAt = performance.now() + START_LIMIT_MS
  let last = 'nothing'
  while (performance.now() < endsAt) {
    const { statusCode, body } = await request(url)
    last = await body.text()
    if (statusCode === 200) return
    await sleep(2)
  }
  throw new Error(`the program was not ready in time: ${last}`)
}
