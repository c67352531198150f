import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { afterEach, describe, expect, it } from 'vitest'
import type { RegistrySpec, RegistryStore } from '../store/registry-store.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import { listed } from '../views/testing/view-tools.ts'
import type { RegistryEngine, ServedView } from './engine.ts'
import { createEngine } from './in-process-engine.ts'
import { createFakeHandler, eventually, type FakeData, fetchedEntry, fileSource, silentLog, testConfig } from './testing/engine-fixture.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]()
})

const managed: SourceConfig = { name: 'own', managed: {} }

describe('the engine of the registry', () => {
  it('serves what its sources have, and serves it again after a restart before anything is fetched', async () => {
    const data = { a: [fetchedEntry('x/one', '1.0.0'), fetchedEntry('x/one', '1.2.0')] }
    const rig = await rigOf({ sources: [fileSource('a')], registries: [{ name: 'main', sources: ['a'] }], data })
    await rig.listed('main', ['x/one@1.0.0', 'x/one@1.2.0'])
    expect(rig.engine.status).toMatchObject({ unbuilt: [], unsynced: [], failed: [], syncs: { succeeded: 1 } })
    expect(rig.engine.registry('other')).toBeUndefined()

    const again = await rig.replica({ data: { a: () => new Promise(() => undefined) } })
    await again.listed('main', ['x/one@1.0.0', 'x/one@1.2.0'])
    expect(again.view('main').tag).toBe(rig.view('main').tag)
  })

  it('fetches a source without interval once per start', async () => {
    const source = { name: 'a', file: { url: 'https://example.com/a.json' } }
    const data = { a: [fetchedEntry('x/one', '1.0.0')] }
    const rig = await rigOf({ sources: [source], registries: [{ name: 'main', sources: ['a'] }], data })
    await rig.listed('main', ['x/one@1.0.0'])
    expect(await rig.store.nextDueInMs()).toBeGreaterThan(10 * 365 * 24 * 3_600_000)
    const again = await rig.replica({ data: { a: [fetchedEntry('x/two', '1.0.0')] } })
    await again.listed('main', ['x/two@1.0.0'])
  })

  it('tells readiness: what is unread, unbuilt, unsynced and failed', async () => {
    const gate = Promise.withResolvers<never>()
    const rig = await rigOf({
      sources: [fileSource('a'), managed],
      registries: [{ name: 'main', sources: ['a'] }],
      data: { a: () => gate.promise },
    })
    await eventually(rig.clock, () => rig.engine.status.storeError === undefined && rig.engine.status.unbuilt.length === 0)
    expect(rig.engine.status).toMatchObject({ unsynced: ['a'], failed: [] })
    gate.reject(new ThvError('source_failed', 'no'))
    await eventually(rig.clock, () => rig.engine.status.failed.length === 1)
    expect(rig.engine.status).toMatchObject({ unsynced: [], failed: ['a'], syncs: { failed: 1 } })
  })

  it('serves what was written when the write resolves, in every registry that has the source', async () => {
    const rig = await rigOf({
      sources: [managed, fileSource('a')],
      registries: [
        { name: 'main', sources: ['own', 'a'] },
        { name: 'small', sources: ['a'] },
      ],
    })
    await rig.listed('main', [])
    const tags = ['main', 'small'].map((name) => rig.view(name).tag)
    await rig.write(rig.engine.admin.publish(rig.document('x/new', '1.0.0')))
    expect(rig.names('main')).toEqual(['x/new@1.0.0'])
    expect(listed(rig.engine.aggregated.view?.snapshot ?? rig.view('small').snapshot)).toHaveLength(1)
    expect(rig.view('main').tag).not.toBe(tags[0])
    expect(rig.view('small').tag).toBe(tags[1])
    await rig.write(rig.engine.admin.setStatus({ source: 'own', name: 'x/new', version: '1.0.0', status: 'deleted' }))
    expect(rig.names('main')).toEqual([])
    await expect(rig.write(rig.engine.admin.replaceDocument(rig.document('x/none', '1.0.0')))).rejects.toMatchObject({ code: 'not_found' })
    await rig.write(rig.engine.admin.putRegistry({ name: 'third', sources: ['own'] }))
    expect(rig.engine.registry('third')?.view).toBeDefined()
    await rig.write(rig.engine.admin.deleteRegistry('third'))
    expect(rig.engine.registry('third')).toBeUndefined()
  })

  it('lists the entries of a source, all of many', async () => {
    const many = Array.from({ length: 1234 }, (_, i) => fetchedEntry(`x/${String(i).padStart(4, '0')}`, '1.0.0'))
    const rig = await rigOf({ sources: [fileSource('a')], registries: [{ name: 'main', sources: ['a'] }], data: { a: many } })
    await eventually(rig.clock, () => rig.engine.registry('main')?.view?.snapshot.count === 1234)
    const entries = await rig.engine.admin.entriesOf('a')
    expect(entries.map(({ name }) => name)).toEqual(many.map(({ name }) => name))
    expect(entries[7]).toMatchObject({ version: '1.0.0', description: 'The server x/0007', status: 'active' })
    expect(Date.parse(entries[7]?.createdAt ?? '')).toBeGreaterThan(0)
  })

  it('shows a reader with some claims only what is for him, and keeps that up to date', async () => {
    const rig = await rigOf({
      sources: [managed, fileSource('a', { claims: { org: 'all' } })],
      registries: [{ name: 'main', sources: ['own', 'a'] }],
      data: { a: [fetchedEntry('x/one', '1.0.0', { document: { title: 'of a' } })] },
    })
    await rig.listed('main', ['x/one@1.0.0'])
    await rig.write(rig.engine.admin.publish({ ...rig.document('x/one', '9.0.0'), claims: { team: 'red' } }))
    expect(rig.names('main')).toEqual(['x/one@9.0.0'])
    const registry = rig.engine.registry('main')
    const { claimSets = [] } = registry ?? {}
    expect(claimSets).toEqual([{ org: 'all' }, { team: 'red' }])
    const seen = (): Promise<ServedView> => rig.write(registry?.viewFor([0]) ?? Promise.reject(new Error('gone')))
    expect(listed((await seen()).snapshot).map(({ version }) => version)).toEqual(['1.0.0'])
    await rig.write(rig.engine.admin.publish({ ...rig.document('x/two', '1.0.0'), claims: { org: 'all' } }))
    expect(listed((await seen()).snapshot).map(({ name }) => name)).toEqual(['x/one', 'x/two'])
    expect((await seen()).tag).not.toBe(rig.view('main').tag)
    expect(registry?.claimSets).toBe(claimSets)
  })

  it('takes another configuration while it runs, and refuses another store', async () => {
    const data = { a: [fetchedEntry('x/one', '1.0.0')], b: [fetchedEntry('x/two', '1.0.0')] }
    const rig = await rigOf({ sources: [fileSource('a')], registries: [{ name: 'main', sources: ['a'] }], data })
    await rig.listed('main', ['x/one@1.0.0'])
    const next = testConfig({ sources: [fileSource('b')], registries: [{ name: 'other', sources: ['b'] }] })
    await rig.write(rig.engine.reload(next))
    expect(rig.engine.registry('main')).toBeUndefined()
    await rig.listed('other', ['x/two@1.0.0'])
    const elsewhere = { ...next, storage: { kind: 'sqlite' as const, path: '/elsewhere.db' } }
    await expect(rig.engine.reload(elsewhere)).rejects.toMatchObject({ code: 'registry_config_invalid' })
    expect(rig.names('other')).toEqual(['x/two@1.0.0'])
  })

  it('goes on serving while the store does not answer, and says so', async () => {
    const rig = await rigOf({ sources: [managed], registries: [{ name: 'main', sources: ['own'] }] })
    await rig.listed('main', [])
    await rig.write(rig.engine.admin.publish(rig.document('x/one', '1.0.0')))
    const { revision } = rig.store
    rig.store.revision = async () => Promise.reject(new ThvError('store_unavailable', 'the database is away'))
    await eventually(rig.clock, () => rig.engine.status.storeError === 'the database is away', 10_000)
    expect(rig.engine.status.loaded).toBe(true)
    expect(rig.names('main')).toEqual(['x/one@1.0.0'])
    rig.store.revision = revision
    await eventually(rig.clock, () => rig.engine.status.storeError === undefined, 10_000)
  })

  it('notices a store that has gone silent, keeps no call waiting for it, and recovers when it is back', async () => {
    const rig = await rigOf({ sources: [managed], registries: [{ name: 'main', sources: ['own'] }] })
    await rig.listed('main', [])
    const { revision } = rig.store
    const silence = Promise.withResolvers<void>()
    let asked = 0
    rig.store.revision = async () => {
      asked++
      await silence.promise
      return revision.call(rig.store)
    }
    // It has been written, whatever comes after it.
    await rig.write(rig.engine.admin.publish(rig.document('x/one', '1.0.0')))
    expect(rig.names('main')).toEqual([])
    await eventually(rig.clock, () => rig.engine.status.storeError !== undefined, 10_000)
    expect(rig.engine.status.storeError).toContain('did not answer within 5s')
    await expect(rig.engine.admin.sources()).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect(rig.engine.admin.publish(rig.document('x/two', '1.0.0'))).rejects.toMatchObject({ code: 'store_unavailable' })
    await rig.clock.advance(60_000)
    expect(asked).toBeLessThanOrEqual(2)
    silence.resolve()
    await rig.listed('main', ['x/one@1.0.0'])
    expect(rig.engine.status.storeError).toBeUndefined()
    await rig.write(rig.engine.admin.publish(rig.document('x/two', '1.0.0')))
  })

  it('takes a write for done though the store is lost right after it', async () => {
    const rig = await rigOf({ sources: [managed], registries: [{ name: 'main', sources: ['own'] }] })
    await rig.listed('main', [])
    const { publish, revision } = rig.store
    rig.store.publish = async (entry) => {
      const published = await publish.call(rig.store, entry)
      rig.store.revision = () => Promise.reject(new ThvError('store_unavailable', 'gone'))
      return published
    }
    expect(await rig.write(rig.engine.admin.publish(rig.document('x/one', '1.0.0')))).toMatchObject({ name: 'x/one' })
    rig.store.revision = revision
    await rig.listed('main', ['x/one@1.0.0'])
  })

  it('reads on where it was when the store fails in the middle', async () => {
    const many = Array.from({ length: 3000 }, (_, i) => fetchedEntry(`x/${i}`, '1.0.0'))
    const rig = await rigOf({ sources: [fileSource('a')], registries: [{ name: 'main', sources: ['a'] }], data: { a: many } })
    const entriesAfter = rig.store.entriesAfter.bind(rig.store)
    let failures = 0
    rig.store.entriesAfter = async function* (after, signal) {
      for await (const batch of entriesAfter(after, signal)) {
        yield batch.slice(0, 10)
        if (failures++ < 3) throw new ThvError('store_unavailable', 'in the middle')
        yield batch.slice(10)
      }
    }
    await eventually(rig.clock, () => rig.engine.registry('main')?.view?.snapshot.count === 3000, 20_000)
    expect(failures).toBeGreaterThan(3)
  })

  it('hears of what another process has written within a second, told or not', async () => {
    const rig = await rigOf({ sources: [managed], registries: [{ name: 'main', sources: ['own'] }] })
    await rig.listed('main', [])
    const other = await rig.replica({ deaf: true })
    await other.listed('main', [])
    await rig.write(rig.engine.admin.publish(rig.document('x/one', '1.0.0')))
    await other.clock.advance(1_000)
    await eventually(other.clock, () => other.names('main').length === 1, 0)
    expect(other.view('main').tag).toBe(rig.view('main').tag)
  })

  it('shows each lasting entry exactly once to a client that pages while syncs run, and no sync in part [001-077]', async () => {
    const rig = await rigOf({ sources: [fileSource('a', { intervalMs: 1_000 })], registries: [{ name: 'main', sources: ['a'] }] })
    const stable = Array.from({ length: 40 }, (_, i) => fetchedEntry(`s/${i}`, '1.0.0'))
    let round = 0
    const generation = () => {
      const changing = Array.from({ length: 30 }, (_, i) => fetchedEntry(`c/${i + round * 7}`, `1.0.${round}`))
      return [
        ...stable.map((entry, i) => (i % 5 === round % 5 ? fetchedEntry(entry.name, '1.0.0', { document: { round } }) : entry)),
        ...changing,
      ]
    }
    rig.handler.data.set('a', generation())
    await eventually(rig.clock, () => rig.engine.registry('main')?.view?.snapshot.count === 70)
    for (let walk = 0; walk < 5; walk++) {
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const { snapshot } = rig.view('main')
        // Of one generation, and all of it.
        expect(listed(snapshot).filter(({ name }) => name.startsWith('c/'))).toHaveLength(30)
        const page = snapshot.list({ limit: 7, ...(cursor !== undefined && { cursor }) })
        if (!('slices' in page)) throw new Error(page.message)
        for (const { server } of JSON.parse(`[${Buffer.concat(page.slices)}]`)) seen.push(`${server.name}@${server.version}`)
        cursor = page.nextCursor
        round++
        rig.handler.data.set('a', generation())
        await rig.clock.advance(1_100)
        await eventually(rig.clock, () => rig.view('main').tag !== '')
      } while (cursor !== undefined)
      expect(new Set(seen).size).toBe(seen.length)
      expect(seen).toEqual(expect.arrayContaining(stable.map(({ name }) => `${name}@1.0.0`)))
    }
  })
})

type Data = { readonly [source: string]: FakeData }

interface Replica {
  readonly data?: Data
  /** Hears of nothing. */
  readonly deaf?: boolean
}

interface Rig extends Replica {
  readonly sources: readonly SourceConfig[]
  readonly registries: readonly RegistrySpec[]
}

async function rigOf({ data = {}, ...parts }: Rig) {
  const clock = new TestClock()
  const store: RegistryStore = await openSqliteStore({ clock })
  open.push(store)

  async function engineOn(store: RegistryStore, data: Data) {
    const handler = createFakeHandler()
    for (const [source, given] of Object.entries(data)) handler.data.set(source, given)
    const engine: RegistryEngine = await createEngine({
      config: testConfig(parts),
      store,
      handlers: { file: handler },
      clock,
      log: silentLog,
      random: () => 0,
    })
    open.push(engine)
    const view = (name: string): ServedView => {
      const found = engine.registry(name)?.view
      if (!found) throw new Error(`no view of ${name}`)
      return found
    }
    const names = (name: string): string[] => listed(view(name).snapshot).map(({ name, version }) => `${name}@${version}`)
    return {
      clock,
      store,
      handler,
      engine,
      view,
      names,
      listed: (registry: string, expected: readonly string[]) =>
        eventually(clock, () => engine.registry(registry)?.view !== undefined && String(names(registry)) === String(expected)),
      document: (name: string, version: string) => ({
        source: 'own',
        name,
        version,
        text: JSON.stringify({ name, description: 'd', version }),
      }),
      /** Waiting for views needs a clock that runs. */
      async write<T>(work: Promise<T>): Promise<T> {
        let ended = false
        const end = () => {
          ended = true
        }
        work.then(end, end)
        await eventually(clock, () => ended)
        return await work
      },
    }
  }

  /** The same data in the hands of another process. */
  const shared = (deaf: boolean): RegistryStore =>
    new Proxy(store, {
      get(target, key) {
        if (key === Symbol.asyncDispose) return async () => undefined
        if (key === 'onChange' && deaf) return () => () => undefined
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })

  return {
    ...(await engineOn(shared(false), data)),
    store,
    replica: ({ deaf = false, data = {} }: Replica = {}) => engineOn(shared(deaf), data),
  }
}
