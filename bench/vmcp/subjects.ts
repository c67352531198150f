import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureBundle } from '../../scripts/bundle.mjs'
import { startMeasured } from '../proxy/measured-process.ts'
import { type RunnerOptions, readySubject, type Subject, startListening } from '../proxy/subjects.ts'

/** A file for a virtual server of these backends. The first one has the names that all of them offer. */
export function vmcpConfig(backends: Readonly<Record<string, string>>): Record<string, unknown> {
  const names = Object.keys(backends)
  return {
    ...{ name: 'bench', groupRef: 'bench', incomingAuth: { type: 'anonymous' }, outgoingAuth: { source: 'inline' } },
    aggregation: { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: names } },
    backends: names.map((name) => ({ name, url: backends[name] })),
  }
}

export interface VmcpOptions extends RunnerOptions {
  /** False: it takes requests, and its backends may not have been asked yet. */
  readonly isReady?: boolean
}

export interface ManyServers extends Subject {
  urlOf(index: number): string
}

/** Legacy servers that announce changes, in one process. */
export async function startManyServers(env: Readonly<Record<string, string>>): Promise<ManyServers> {
  const started = await startListening('bench/vmcp/many-servers.ts', env)
  return { ...started, urlOf: (index) => new URL(`/${index}/mcp`, started.url).href }
}

/** Starts `vmcp serve` from its bundle and waits until all backends have been asked. */
export async function startVmcp(config: Record<string, unknown>, { isReady = true, ...options }: VmcpOptions = {}): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-'))
  const file = join(folder, 'config.json')
  await writeFile(file, JSON.stringify(config))
  const script = 'apps/vmcp/src/main.ts'
  if (options.bundle === undefined) await ensureBundle(script) // not part of the start
  const startedAt = performance.now()
  const args = ['serve', '--config', file, '--host', '127.0.0.1', '--port', '0']
  const child = await startMeasured({ script, args, ...options })
  return await readySubject(child, { startedAt, folder, path: isReady ? '/readyz' : '/health' })
}
