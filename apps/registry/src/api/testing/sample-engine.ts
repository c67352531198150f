import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import { systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { createLogger } from '@thv/telemetry/log'
import { PATIENCE_MS } from '@thv/testkit/run/patience'
import type { EngineStatus, RegistryEngine } from '../../engine/engine.ts'
import { createEngine } from '../../engine/in-process-engine.ts'
import { createFakeHandler, testConfig } from '../../engine/testing/engine-fixture.ts'
import type { RegistryStore } from '../../store/registry-store.ts'
import { openSqliteStore } from '../../store/sqlite/sqlite-store.ts'
import { fetchedSamples, type PublishedSample, publishedSamples, sampleRegistries, sampleSources } from './sample-registry.ts'

/** The sample registry in a real engine, with levers for what cannot be brought about otherwise. */
export interface SampleEngine extends RegistryEngine {
  /** Another status than the real one. */
  pretend(status: Partial<EngineStatus>): void
  /** Every call of the store is refused from now on. */
  loseStore(): void
  /** No registry is built yet, as at a start. */
  forgetViews(): void
}

export interface SampleOptions {
  /** In memory unless given. */
  readonly store?: RegistryStore
  /** By name of source or registry. */
  readonly claims?: Readonly<Record<string, Claims>>
  readonly published?: readonly PublishedSample[]
}

export async function createSampleEngine(options: SampleOptions = {}): Promise<SampleEngine> {
  const { claims = {}, published = publishedSamples } = options
  const withClaims = <T extends { name: string }>(thing: T): T => (claims[thing.name] ? { ...thing, claims: claims[thing.name] } : thing)
  const handler = createFakeHandler()
  for (const [source, entries] of Object.entries(fetchedSamples)) handler.data.set(source, entries)
  const engine = await createEngine({
    config: testConfig({ sources: sampleSources.map(withClaims), registries: sampleRegistries.map(withClaims) }),
    store: options.store ?? (await openSqliteStore({ clock: systemClock })),
    handlers: { file: handler, git: handler, api: handler },
    clock: systemClock,
    log: createLogger({ write: () => {} }),
  })
  for (const { status, statusMessage, ...entry } of published) {
    await engine.admin.publish({ source: 'own', text: JSON.stringify(documentOf(entry)), ...entry })
    const message = statusMessage === undefined ? {} : { statusMessage }
    if (status) await engine.admin.setStatus({ source: 'own', name: entry.name, version: entry.version, status, ...message })
  }
  await settled(engine)
  return withLevers(engine)
}

function documentOf({ name, version }: { name: string; version: string }): object {
  return { name, description: `The server ${name}`, version }
}

const START_LIMIT_MS = PATIENCE_MS

async function settled(engine: RegistryEngine): Promise<void> {
  const limit = systemClock.monotonic() + START_LIMIT_MS
  const ready = () => {
    const { unbuilt, unsynced } = engine.status
    const registries = [engine.aggregated, ...sampleRegistries.map(({ name }) => engine.registry(name))]
    return unbuilt.length === 0 && unsynced.length === 0 && registries.every((registry) => registry?.view?.search)
  }
  while (!ready()) {
    if (systemClock.monotonic() > limit) throw new Error(`the sample engine is not ready: ${JSON.stringify(engine.status)}`)
    await systemClock.sleep(2)
  }
}

function withLevers(engine: RegistryEngine): SampleEngine {
  let status: Partial<EngineStatus> = {}
  let lost = false
  let forgotten = false
  const call =
    (name: keyof RegistryEngine['admin']) =>
    async (...args: unknown[]) => {
      if (lost) throw new ThvError('store_unavailable', 'connection refused by db.internal:5432')
      return (engine.admin[name] as (...all: unknown[]) => Promise<unknown>)(...args)
    }
  const names = Object.keys(engine.admin) as (keyof RegistryEngine['admin'])[]
  const admin = Object.fromEntries(names.map((name) => [name, call(name)])) as unknown as RegistryEngine['admin']
  return {
    registry(name) {
      const registry = engine.registry(name)
      return registry && forgotten ? { ...registry, view: undefined } : registry
    },
    aggregated: engine.aggregated,
    get status() {
      return { ...engine.status, ...status }
    },
    admin,
    reload: (config) => engine.reload(config),
    resign: () => engine.resign(),
    pretend: (other) => {
      status = other
    },
    loseStore: () => {
      lost = true
    },
    forgetViews: () => {
      forgotten = true
    },
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  }
}
