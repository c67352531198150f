import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestDatabase } from '@thv/testkit/postgres/test-database'
import { onTestFinished, type TestContext } from 'vitest'
import { processStarter, type ServingProcess } from '../../apps/registry/src/testing/registry-process.ts'

/* Registry servers as people run them: real processes, real stores, configuration files. */

export interface RegistryWorld {
  readonly folder: string
  /** Writes a configuration file and gives its path. Anonymous, and sources on this machine allowed, unless told otherwise. */
  config(settings: Settings, name?: string): string
  /** Starts a server; `folder` is where it finds itself. */
  serve(config: string, options?: { env?: Record<string, string>; folder?: string }): Promise<Server>
}

export type Settings = Readonly<Record<string, unknown>>

export interface Server extends ServingProcess {
  /** SIGKILL; resolves when it has ended. */
  kill(): Promise<void>
  /** SIGTERM; gives the exit code. */
  stop(): Promise<number | null>
  ready(): Promise<void>
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  get(path: string, options?: CallOptions): Promise<Answer>
  publish(document: ServerDocument): Promise<Answer>
  /** The sync status of a source, as the administration shows it. */
  syncStatus(source: string): Promise<SyncStatus>
}

export interface CallOptions {
  readonly token?: string
  /** Text goes as it is. */
  readonly body?: unknown
  readonly limitMs?: number
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  readonly json: any
}

export interface SyncStatus {
  readonly phase: string
  readonly message: string
  readonly serverCount: number
  readonly attemptCount: number
}

export interface ServerDocument {
  readonly name: string
  readonly version: string
  readonly [member: string]: unknown
}

/** Everything in it goes with the test. A test that runs beside others gives its context. */
export function registryWorld(context?: Pick<TestContext, 'onTestFinished'>): RegistryWorld {
  const atEnd = context?.onTestFinished ?? onTestFinished
  const folder = mkdtempSync(join(tmpdir(), 'thv-registry-world-'))
  const processes = processStarter(folder)
  atEnd(() => {
    processes[Symbol.dispose]()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  return {
    folder,
    config(settings, name = 'config.yaml') {
      const path = join(folder, name)
      const { sync, ...rest } = settings as { sync?: object }
      const all = { auth: { mode: 'anonymous' }, ...rest, sync: { allowPrivateAddresses: true, jitter: 0, ...sync } }
      // JSON is YAML.
      writeFileSync(path, JSON.stringify(all))
      return path
    },
    async serve(config, { env = {}, folder: place = folder } = {}) {
      const starter = place === folder ? processes : processStarter(place)
      if (starter !== processes) atEnd(() => starter[Symbol.dispose]())
      return serverOf(await starter.serve(['--config', config, '--data-dir', join(folder, 'data')], env))
    },
  }
}

function serverOf(run: ServingProcess): Server {
  const call: Server['call'] = async (method, path, { token, body, limitMs = 60_000 } = {}) => {
    const answer = await fetch(`${run.url}${path}`, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(limitMs),
    })
    const text = await answer.text()
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
    return { status: answer.status, headers: answer.headers, text, json: isJson && text !== '' ? JSON.parse(text) : undefined }
  }
  return {
    ...run,
    call,
    get: (path, options) => call('GET', path, options),
    publish: (document) => call('POST', '/registry/all/v0.1/publish', { body: document }),
    async syncStatus(source) {
      const { json, text } = await call('GET', `/v1/sources/${source}`)
      if (json?.syncStatus === undefined) throw new Error(`no status of ${source}: ${text}`)
      return json.syncStatus
    },
    async ready() {
      await eventually('it is ready', async () => (await fetch(`${run.internalUrl}/readiness`, { headers: { connection: 'close' } })).ok)
    },
    async kill() {
      run.child.kill('SIGKILL')
      await run.ended
    },
    async stop() {
      run.child.kill('SIGTERM')
      return (await run.ended).code
    },
  }
}

/** For the key `database` of a configuration. */
export function databaseOf({ host, port, database, user, password }: TestDatabase): Settings {
  return { host, port, database, user, password, sslMode: 'require' }
}

export function documentOf(name: string, version = '1.0.0', more: Record<string, unknown> = {}): ServerDocument {
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name,
    description: `What ${name} does`,
    version,
    remotes: [{ type: 'streamable-http', url: 'https://mcp.example.com/mcp' }],
    ...more,
  }
}

/** As a `file` or `api` source serves it. */
export function registryFile(documents: readonly ServerDocument[]): string {
  return JSON.stringify({ servers: documents.map((server) => ({ server })), metadata: { count: documents.length } })
}

/** Waits for what must happen. The limit is far above what it takes, and no measure of anything. */
export async function eventually<T>(what: string, look: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
  const deadline = performance.now() + 45_000
  let last: unknown
  for (;;) {
    try {
      const found = await look()
      if (found) return found
      last = found
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline) throw new Error(`it did not happen: ${what}`, { cause: last })
    await sleep(20)
  }
}
