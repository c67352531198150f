import { annotation, mcp } from '@thv/catalog/discover/testing/export-world'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { systemClock } from '@thv/kernel/clock'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, describe, expect, it } from 'vitest'
import type { RegistryEngine, ServedView } from '../engine/engine.ts'
import { createEngine } from '../engine/in-process-engine.ts'
import { createFakeHandler, type FakeData, fetchedEntry, fileSource, silentLog, testConfig } from '../engine/testing/engine-fixture.ts'
import type { RegistrySpec } from '../store/registry-store.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import { until } from '../testing/until.ts'
import { listed } from '../views/testing/view-tools.ts'
import { FakeCluster } from './testing/fake-cluster.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]()
})

const cluster: SourceConfig = { name: 'cluster', kubernetes: {}, intervalMs: 3_600_000 }

interface Parts {
  readonly fake: FakeCluster
  readonly sources?: readonly SourceConfig[]
  readonly registries?: readonly RegistrySpec[]
  readonly file?: Readonly<Record<string, FakeData>>
}

async function engineOf({
  fake,
  sources = [cluster],
  registries = [{ name: 'main', sources: ['cluster'] }],
  file = {},
}: Parts): Promise<RegistryEngine> {
  const handler = createFakeHandler()
  for (const [name, data] of Object.entries(file)) handler.data.set(name, data)
  const engine = await createEngine({
    config: testConfig({ sources, registries }),
    store: await openSqliteStore({ clock: systemClock }),
    handlers: { file: handler },
    clock: systemClock,
    log: silentLog,
    connectCluster: async () => ({ client: await fake.connect(), namespace: 'x', server: 'https://127.0.0.1:6443' }),
    env: {},
  })
  open.push(engine)
  return engine
}

const namesOf = (view: ServedView | undefined) =>
  view === undefined ? [] : listed(view.snapshot).map(({ name, version }) => `${name}@${version}`)

function exportedServer(name: string, more: Record<string, string> = {}) {
  const server = mcp('MCPServer', name, { image: `x.example/${name}:1`, transport: 'sse' })
  server.metadata.annotations = {
    [annotation('registry-export')]: 'true',
    [annotation('registry-url')]: `https://${name}.example/`,
    ...more,
  }
  return server
}

describe('a registry of a cluster', () => {
  it('serves more than one MiB of entries completely, and builds them again from the resources alone [001-073] [001-075]', async () => {
    const fake = new FakeCluster()
    const overview = 'word '.repeat(400)
    for (let i = 0; i < 1_000; i += 1) fake.objects.push(exportedServer(`s${i}`, { [annotation('registry-description')]: overview }))
    const engine = await engineOf({ fake })
    await until(() => namesOf(engine.registry('main')?.view).length === 1_000)
    const again = await engineOf({ fake })
    await until(() => namesOf(again.registry('main')?.view).length === 1_000)
    expect(namesOf(again.registry('main')?.view)).toEqual(namesOf(engine.registry('main')?.view))
  })

  it('asks no cluster without a kubernetes source [001-005]', async () => {
    const fake = new FakeCluster()
    const engine = await engineOf({
      fake,
      sources: [fileSource('a')],
      registries: [{ name: 'main', sources: ['a'] }],
      file: { a: [fetchedEntry('x/one', '1.0.0')] },
    })
    await until(() => namesOf(engine.registry('main')?.view).length === 1)
    expect(fake.calls).toEqual([])
    expect(engine.status.leader).toBeUndefined()
  })

  const toolsIn = (view: ServedView | undefined, name: string) => {
    const page = view?.snapshot.list({ limit: 100 })
    const texts = page !== undefined && 'slices' in page ? page.slices.map(String) : []
    return /"tools":(\[[^\]]*\])/.exec(texts.find((text) => text.includes(`.${name}"`)) ?? '')?.[1]
  }

  it('asks running servers for their tools only where introspect is enabled [000-128]', async () => {
    await using fixture = await startFixture()
    const fake = new FakeCluster()
    const running = (name: string, spec: object = {}) => {
      const server = exportedServer(name)
      Object.assign(server.spec, spec)
      return { ...server, status: { phase: 'Running', url: `${fixture.url}#${name}` } }
    }
    fake.objects.push(running('open'), running('guarded', { oidcConfig: { type: 'kubernetes' } }), exportedServer('starting'))
    const silent = await engineOf({ fake })
    await until(() => namesOf(silent.registry('main')?.view).length === 3)
    expect(fixture.stats.count('tools/list')).toBe(0)
    expect(toolsIn(silent.registry('main')?.view, 'open')).toBeUndefined()

    const asking: SourceConfig = { ...cluster, kubernetes: { introspect: { enabled: true } } }
    const engine = await engineOf({ fake, sources: [asking] })
    const tools = await until(() => toolsIn(engine.registry('main')?.view, 'open'))
    expect(tools).toContain('"echo"')
    expect(toolsIn(engine.registry('main')?.view, 'guarded')).toBeUndefined()
    expect(toolsIn(engine.registry('main')?.view, 'starting')).toBeUndefined()
  })

  const known = (document: object = {}) =>
    fetchedEntry('io.x/known', '1.0.0', {
      document: { packages: [{ registryType: 'oci', identifier: 'x.example/known:1', transport: { type: 'stdio' } }], ...document },
    })

  it('never shows an entry to more callers by its copy', async () => {
    const fake = new FakeCluster()
    fake.objects.push(exportedServer('known'), exportedServer('plain'))
    const engine = await engineOf({
      fake,
      sources: [cluster, fileSource('gated', { claims: { team: 'a' } })],
      registries: [{ name: 'main', sources: ['cluster', 'gated'] }],
      file: { gated: [known()] },
    })
    const registry = await until(() => {
      const main = engine.registry('main')
      const names = namesOf(main?.view)
      return names.includes('io.x/known@1.0.0') && names.length === 2 ? main : undefined
    })
    const open = registry.claimSets.flatMap((claims, index) => (claims === undefined ? [index] : []))
    expect(namesOf(await registry.viewFor(open))).toEqual(['dev.stacklok.toolhive/mcp-servers.plain@1.0.0'])
  })

  it('does not carry an entry into a registry that does not list its source', async () => {
    const fake = new FakeCluster()
    fake.objects.push(exportedServer('known'))
    const engine = await engineOf({
      fake,
      sources: [cluster, fileSource('inner')],
      registries: [
        { name: 'inside', sources: ['cluster', 'inner'] },
        { name: 'outside', sources: ['cluster'] },
      ],
      file: { inner: [known()] },
    })
    const outside = await until(() => {
      const names = namesOf(engine.registry('outside')?.view)
      return names.length > 0 && namesOf(engine.registry('inside')?.view).length === 2 ? names : undefined
    })
    expect(outside).toEqual(['dev.stacklok.toolhive/mcp-servers.known@1.0.0'])
  })
})
