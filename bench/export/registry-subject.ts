import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ensureBundle } from '../../scripts/bundle.mjs'
import { type MeasuredProcess, startMeasured } from '../proxy/measured-process.ts'

export interface Access {
  readonly url: string
  readonly caPem: string
  readonly token: string
}

/** A registry server whose source is the cluster; beside it a registry of published servers. */
export interface ClusterRegistry extends AsyncDisposable {
  readonly process: MeasuredProcess
  /** From the start of the process until all servers were listed. */
  readonly listedMs: number
  /** URL of an entry. */
  urlOf(name: string): Promise<string>
  /** From when a document is sent until it is served. */
  publish(name: string): Promise<number>
  /** A sync of the cluster. Resolves when it is over. */
  sync(): Promise<void>
  /** Syncs so far that changed what is served. */
  rebuilds(): Promise<number>
  stallMs(): Promise<number>
}

export interface ClusterRegistryOptions {
  readonly access: Access
  readonly watch: boolean
  /** All when absent. */
  readonly namespaces?: readonly string[]
  /** Of servers. */
  readonly count: number
}

const LIMIT_MS = 300_000
const LOOK_MS = 10
export const DEBOUNCE_MS = 1_000

export async function startClusterRegistry(options: ClusterRegistryOptions): Promise<ClusterRegistry> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-export-'))
  const config = join(folder, 'config.yaml')
  await writeFile(join(folder, 'kubeconfig'), JSON.stringify(kubeconfigOf(options.access)))
  await writeFile(config, JSON.stringify(configOf(folder, options)))
  const script = 'apps/registry/src/main.ts'
  const [probe] = await Promise.all([ensureBundle('bench/registry/stall-probe.ts'), ensureBundle(script)]) // not part of the start
  const [port, internalPort] = [20_000 + Math.floor(Math.random() * 10_000), 30_000 + Math.floor(Math.random() * 10_000)]
  const origin = `http://127.0.0.1:${port}`
  const startedAt = performance.now()
  const child = await startMeasured({
    script,
    args: ['serve', '--config', config, '--address', `127.0.0.1:${port}`, '--internal-address', `127.0.0.1:${internalPort}`],
    env: { LOG_LEVEL: 'warn' },
    nodeArgs: [
      ...(process.env['BENCH_CPU_PROF'] ? ['--cpu-prof', '--cpu-prof-dir', process.env['BENCH_CPU_PROF']] : []),
      '--import',
      probe,
    ],
  })
  let stallsAsked = 0
  let isOver = false
  const over = async () => {
    if (isOver) return
    isOver = true
    await child.stop()
    await rm(folder, { recursive: true })
  }
  const syncs = async (kinds: readonly string[]) => {
    const text = await (await fetch(`http://127.0.0.1:${internalPort}/metrics`)).text()
    const counts = text.matchAll(/^thv_registry_syncs_total\{result="(\w+)"\} (\d+)/gm)
    return [...counts].reduce((sum, [, result = '', count]) => sum + (kinds.includes(result) ? Number(count) : 0), 0)
  }
  try {
    await until(child, async () => (await serverCount(origin)) >= options.count)
    return {
      process: child,
      listedMs: performance.now() - startedAt,
      urlOf: (name) => urlOf(origin, 'cluster', name),
      async publish(name) {
        const began = performance.now()
        const answer = await fetch(`${origin}/registry/published/v0.1/publish`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(documentOf(name)),
        })
        if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
        await answer.body?.cancel()
        await until(child, async () => (await urlOf(origin, 'published', name)) !== '')
        return performance.now() - began
      },
      async sync() {
        const all = ['succeeded', 'unchanged', 'failed']
        const before = await syncs(all)
        const { status } = await fetch(`${origin}/v1/sources/cluster/sync`, { method: 'POST' })
        if (status !== 202) throw new Error(`a sync was answered with ${status}`)
        await until(child, async () => (await syncs(all)) > before)
        if ((await syncs(['failed'])) > 0) throw new Error(`a sync failed: ${child.output.join('\n')}`)
      },
      rebuilds: () => syncs(['succeeded']),
      async stallMs() {
        const line = child.line(new RegExp(`^stall ${++stallsAsked}: ([\\d.]+) ms`))
        process.kill(child.pid, 'SIGUSR2')
        const [, ms = ''] = await line
        return Number(ms)
      },
      [Symbol.asyncDispose]: over,
    }
  } catch (error) {
    await over()
    throw error
  }
}

export function kubeconfigOf({ url, caPem, token }: Access): object {
  const cluster = { server: url, 'certificate-authority-data': Buffer.from(caPem).toString('base64') }
  return {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'bench' },
    clusters: [{ name: 'bench', cluster }],
    users: [{ name: 'bench', user: { token } }],
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
  }
}

function configOf(folder: string, { watch, namespaces }: ClusterRegistryOptions): object {
  const kubernetes = {
    kubeconfig: { path: join(folder, 'kubeconfig') },
    ...(namespaces && { namespaces }),
    ...(watch && { watch: { enabled: true, debounceInterval: `${DEBOUNCE_MS}ms` } }),
  }
  return {
    sources: [
      { name: 'cluster', kubernetes, syncPolicy: { interval: '1h' } },
      { name: 'published', managed: {} },
    ],
    registries: ['cluster', 'published'].map((name) => ({ name, sources: [name] })),
    auth: { mode: 'anonymous' },
    sync: { allowPrivateAddresses: true },
    storage: { path: join(folder, 'registry.db') },
  }
}

function documentOf(name: string): object {
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    ...{ name, description: 'A server', version: '1.0.0' },
    remotes: [{ type: 'streamable-http', url: 'https://published.example.com/' }],
  }
}

/** Empty when it is not served. */
async function urlOf(origin: string, registry: string, name: string): Promise<string> {
  const answer = await fetch(`${origin}/registry/${registry}/v0.1/servers/${encodeURIComponent(name)}/versions/latest`)
  const { server } = (await answer.json()) as { server?: { remotes?: { url: string }[] } }
  return server?.remotes?.[0]?.url ?? ''
}

async function serverCount(origin: string): Promise<number> {
  try {
    const answer = await fetch(`${origin}/v1/sources/cluster`)
    const { syncStatus } = (await answer.json()) as { syncStatus?: { serverCount?: number } }
    return syncStatus?.serverCount ?? 0
  } catch {
    return 0 // not listening yet
  }
}

export async function until(child: MeasuredProcess, holds: () => Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + LIMIT_MS
  while (!(await holds())) {
    if (performance.now() > endsAt) throw new Error(`it did not happen in time: ${child.output.join('\n')}`)
    await sleep(LOOK_MS)
  }
}
