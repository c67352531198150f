import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ensureBundle } from '../../scripts/bundle.mjs'
import { type MeasuredProcess, startMeasured } from '../proxy/measured-process.ts'
import { CHANGED_MARK, sampleName, writeSampleRegistry } from './sample-registry.ts'

/** A registry server with one file source, in a process of its own. */
export interface RegistrySubject extends AsyncDisposable {
  readonly origin: string
  readonly process: MeasuredProcess
  /** From the start of the process until every server was listed, and until ranked search answered. */
  readonly listedMs: number
  readonly searchedMs: number
  /** Another state of the source: so many of its servers are changed. Resolves when all of that is served; says how long it took. */
  change(changed: number): Promise<number>
  /** A sync of the source as it is. Says how long it took. */
  syncUnchanged(): Promise<number>
  /** The longest stall of the event loop since it was last asked. */
  stallMs(): Promise<number>
}

export interface SubjectOptions {
  readonly count: number
  /** YAML of `database:`; empty for the embedded store. */
  readonly storage: string
}

const LIMIT_MS = 120_000
const LOOK_MS = 20
const SEARCH = '/registry/default/v0.1/x/dev.toolhive/search?q=weather&limit=3'

export async function startRegistry({ count, storage }: SubjectOptions): Promise<RegistrySubject> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-'))
  const file = join(folder, 'registry-file.json')
  const config = join(folder, 'config.yaml')
  await writeSampleRegistry(file, count)
  await writeFile(config, configText(file, storage || `storage: { path: ${join(folder, 'registry.db')} }`))
  const script = 'apps/registry/src/main.ts'
  const [probe] = await Promise.all([ensureBundle('bench/registry/stall-probe.ts'), ensureBundle(script)]) // not part of the start
  const port = 20_000 + Math.floor(Math.random() * 20_000)
  const origin = `http://127.0.0.1:${port}`
  const startedAt = performance.now()
  const child = await startMeasured({
    script,
    args: ['serve', '--config', config, '--address', `127.0.0.1:${port}`, '--internal-address', '127.0.0.1:0'],
    nodeArgs: [
      ...(process.env['BENCH_CPU_PROF'] ? ['--cpu-prof', '--cpu-prof-dir', process.env['BENCH_CPU_PROF']] : []),
      '--import',
      probe,
    ],
  })
  let stallsAsked = 0
  const since = (from: number) => performance.now() - from
  try {
    const last = `/registry/default/v0.1/servers?limit=1&search=${encodeURIComponent(`server-${count - 1}`)}`
    await until(child, async () => (await json(origin, last))?.['servers']?.length === 1)
    const listedMs = since(startedAt)
    await until(child, async () => (await json(origin, SEARCH))?.['servers']?.length === 3)
    const searchedMs = since(startedAt)
    return {
      origin,
      process: child,
      listedMs,
      searchedMs,
      async change(changed) {
        await writeSampleRegistry(file, count, { changed })
        const began = performance.now()
        await trigger(origin)
        // A view takes the place of another as a whole, so the border tells; to look for all of them would be a load of its own.
        await until(child, async () => (await isChanged(origin, changed - 1)) && !(await isChanged(origin, changed)))
        return since(began)
      },
      async syncUnchanged() {
        const before = await attempt(origin)
        const began = performance.now()
        await trigger(origin)
        await until(child, async () => (await attempt(origin)) !== before)
        return since(began)
      },
      async stallMs() {
        const line = child.line(new RegExp(`^stall ${++stallsAsked}: ([\\d.]+) ms`))
        process.kill(child.pid, 'SIGUSR2')
        const [, ms = ''] = await line
        return Number(ms)
      },
      async [Symbol.asyncDispose]() {
        await child.stop()
        await rm(folder, { recursive: true })
      },
    }
  } catch (error) {
    await child.stop()
    await rm(folder, { recursive: true })
    throw error
  }
}

function configText(file: string, storage: string): string {
  return `sources:
  - name: sample
    file: { path: ${file} }
    syncPolicy: { interval: 24h }
registries:
  - name: default
    sources: [sample]
auth: { mode: anonymous }
${storage}
`
}

interface Listed {
  readonly servers?: readonly unknown[]
}

async function json(origin: string, path: string): Promise<Listed | undefined> {
  try {
    const response = await fetch(`${origin}${path}`)
    if (response.ok) return (await response.json()) as Listed
    await response.body?.cancel()
  } catch {
    // not listening yet
  }
  return undefined
}

async function isChanged(origin: string, number: number): Promise<boolean> {
  const path = `/registry/default/v0.1/servers/${encodeURIComponent(sampleName(number))}/versions/latest`
  const response = await fetch(`${origin}${path}`)
  return (await response.text()).includes(CHANGED_MARK)
}

async function trigger(origin: string): Promise<void> {
  const { status } = await fetch(`${origin}/v1/sources/sample/sync`, { method: 'POST' })
  if (status !== 202) throw new Error(`a sync was answered with ${status}`)
}

async function attempt(origin: string): Promise<string> {
  const source = (await (await fetch(`${origin}/v1/sources/sample`)).json()) as { syncStatus?: { lastAttempt?: string; phase?: string } }
  return source.syncStatus?.phase === 'syncing' ? '' : (source.syncStatus?.lastAttempt ?? '')
}

async function until(child: MeasuredProcess, holds: () => Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + LIMIT_MS
  while (!(await holds())) {
    if (performance.now() > endsAt) throw new Error(`the registry was not ready in time: ${child.output.join('\n')}`)
    await sleep(LOOK_MS)
  }
}
