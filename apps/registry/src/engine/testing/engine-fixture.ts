import type { FetchContext, FetchedEntry, FetchResult, RegistryHandler } from '@thv/catalog/sources/fetch/registry-handler'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import type { TestClock } from '@thv/kernel/clock'
import { createLogger, type Logger } from '@thv/telemetry/log'
import type { RegistryConfig } from '../../config/registry-config.ts'
import type { RegistrySpec } from '../../store/registry-store.ts'

export function testConfig(parts: { sources: readonly SourceConfig[]; registries: readonly RegistrySpec[] }): RegistryConfig {
  return {
    ...parts,
    auth: { mode: 'anonymous', publicPaths: [] },
    storage: { kind: 'sqlite' },
    http: { compression: true, cacheSeconds: 0, publicHealth: false, maxBodyBytes: 1 << 20 },
    sync: {
      parallel: 4,
      leaseMs: 30_000,
      retryMs: 1_000,
      jitter: 0,
      allowedFolders: [],
      allowPrivateAddresses: false,
      maxFileBytes: 1 << 28,
    },
  }
}

export function fileSource(name: string, more: Partial<SourceConfig> = {}): SourceConfig {
  return { name, file: { path: `/data/${name}.json` }, intervalMs: 60_000, ...more }
}

export function fetchedEntry(name: string, version: string, more: Partial<FetchedEntry> & { document?: object } = {}): FetchedEntry {
  const { document, ...rest } = more
  const text = JSON.stringify({ name, description: `The server ${name}`, version, ...document })
  return { name, version, text, tags: [], ...rest }
}

export type FakeData = readonly FetchedEntry[] | ((context: FetchContext) => Promise<FetchResult>)

/** A handler whose answers the test gives. */
export interface FakeHandler extends RegistryHandler {
  /** The content of the source; a function may fail, wait or return something else. */
  readonly data: Map<string, FakeData>
  readonly calls: { readonly source: string; readonly state: FetchContext['state'] }[]
  /** At this moment, and at most. */
  readonly running: { now: number; most: number }
}

export function createFakeHandler(): FakeHandler {
  const data: FakeHandler['data'] = new Map()
  const calls: FakeHandler['calls'] = []
  const running = { now: 0, most: 0 }
  const fetchRegistry: RegistryHandler['fetchRegistry'] = async (source, context) => {
    calls.push({ source: source.name, state: context.state })
    running.most = Math.max(running.most, ++running.now)
    try {
      const given = data.get(source.name) ?? []
      return typeof given === 'function' ? await given(context) : fullResult(given)
    } finally {
      running.now--
    }
  }
  return {
    data,
    calls,
    running,
    validate: () => [],
    fetchRegistry,
    currentHash: async (source, context) => (await fetchRegistry(source, context)).hash,
  }
}

export function fullResult(entries: readonly FetchedEntry[]): FetchResult {
  const hash = JSON.stringify(entries)
  return { kind: 'full', entries, hash, state: { seen: entries.length }, problems: [] }
}

/** Lets time pass, in small steps, until it holds. */
export async function eventually(clock: TestClock, holds: () => boolean | Promise<boolean>, limitMs = 5_000): Promise<void> {
  for (let passed = 0; passed <= limitMs; passed += STEP_MS) {
    for (let turn = 0; turn < 20; turn++) {
      if (await holds()) return
      await clock.advance(0)
    }
    await clock.advance(STEP_MS)
  }
  throw new Error(`did not come true within ${limitMs} ms`)
}

const STEP_MS = 50

export const silentLog: Logger = createLogger({ level: 'error', write: () => undefined })
