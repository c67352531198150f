import { describe, expect, it } from 'vitest'
import { until } from '../../../testing/until.ts'
import {
  changed,
  contents,
  entry,
  file,
  fingerprintsOf,
  lease,
  managed,
  never,
  refused,
  rowsAfter,
  sourceOf,
  sync,
} from './contract-tools.ts'
import type { OpenStore } from './store-contract.ts'

export function describeConfigured(use: OpenStore): void {
  describe('the configuration', () => {
    it('begins with nothing', async () => {
      const { store } = await use()
      expect(await contents(store)).toEqual({ revision: { data: 0, structure: 0 }, sources: [], registries: [], rows: [] })
      expect(await store.nextDueInMs()).toBeUndefined()
      expect(await store.claimDue({ owner: 'one', leaseMs: 1_000, limit: 10 })).toEqual([])
      await store.ping(never)
    })

    it('keeps a source whole, and changes nothing when it is put again as it is', async () => {
      const { store } = await use()
      const config = file('team', {
        file: { url: 'https://example.com/ü?x=1', timeout: '5s' },
        format: 'toolhive',
        strict: true,
        filter: { names: { include: ['io.*'], exclude: ['*/x'] }, tags: { include: ['db'] } },
        claims: { org: 'acme', team: ['a', 'b'] },
      })
      expect(await store.putSource(config)).toEqual({ created: true })
      const before = await contents(store)
      expect(before.sources).toMatchObject([
        {
          config,
          creation: 'API',
          sync: { phase: 'pending', attemptCount: 0, serverCount: 0, message: '', problems: [], problemCount: 0 },
        },
      ])
      expect(before.revision.structure).toBeGreaterThan(0)
      const [source] = before.sources
      expect(source?.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(source?.updatedAt).toBe(source?.createdAt)
      expect(source?.sync).not.toHaveProperty('lastAttempt')
      expect(source?.sync).not.toHaveProperty('hash')
      expect(await store.putSource(structuredClone(config))).toEqual({ created: false })
      expect(await contents(store)).toEqual(before)
    })

    it('gives sources by name', async () => {
      const { store } = await use()
      for (const name of ['b', 'a-b', 'a', 'B', 'é', 'a1']) await store.putSource(file(name))
      expect((await store.sources()).map((source) => source.config.name)).toEqual(['B', 'a', 'a-b', 'a1', 'b', 'é'])
    })

    it('updates a source: the structure moves, hash and state go, entries stay, and it is due', async () => {
      const { store } = await use()
      await store.putSource(file('team'))
      await sync(store, 'team', changed([entry('io.x/a')], { state: { etag: '"1"' } }))
      const before = await contents(store)
      expect(await store.putSource(file('team', { strict: true }))).toEqual({ created: false })
      const after = await contents(store)
      expect(after.revision.structure).toBeGreaterThan(before.revision.structure)
      expect(after.revision.data).toBe(before.revision.data)
      expect(after.rows).toEqual(before.rows)
      const { id, createdAt, updatedAt, sync: status } = await sourceOf(store, 'team')
      expect({ id, createdAt }).toEqual({ id: before.sources[0]?.id, createdAt: before.sources[0]?.createdAt })
      expect(updatedAt > (before.sources[0]?.updatedAt ?? '')).toBe(true)
      expect(status).toMatchObject({ phase: 'complete', serverCount: 1 })
      expect(status).not.toHaveProperty('hash')
      const [leased] = await store.claimDue({ owner: 'one', leaseMs: 60_000, limit: 1 })
      expect(leased).toMatchObject({ state: undefined, manual: false, config: { strict: true } })
    })

    it('takes the lease away from who syncs a source that is changed, but not when only its claims are', async () => {
      const { store } = await use()
      await store.putSource(file('team'))
      const { lease: held } = await lease(store, 'team')
      await store.putSource(file('team', { claims: { org: 'acme' } }))
      expect(await store.renewLease(held, 60_000)).toBe(true)
      await store.putSource(file('team', { claims: { org: 'acme' }, intervalMs: 5_000 }))
      expect(await store.renewLease(held, 60_000)).toBe(false)
      await refused(store, 'lease_lost', () => store.finishSync(held, changed([entry('io.x/a')])))
      expect((await store.claimDue({ owner: 'two', leaseMs: 60_000, limit: 1 })).length).toBe(1)
    })

    it('keeps hash, state and times of syncs when only the claims of a source change', async () => {
      const { store } = await use()
      await store.putSource(file('team'))
      await sync(store, 'team', changed([entry('io.x/a')], { state: { etag: '"1"' } }))
      const before = await contents(store)
      await store.putSource(file('team', { claims: { org: ['a', 'b'] } }))
      const after = await contents(store)
      expect(after.revision.structure).toBeGreaterThan(before.revision.structure)
      expect(after.sources[0]?.config.claims).toEqual({ org: ['a', 'b'] })
      expect(after.sources[0]?.sync).toEqual(before.sources[0]?.sync)
      expect(await store.claimDue({ owner: 'one', leaseMs: 1_000, limit: 1 })).toEqual([])
      expect((await lease(store, 'team')).state).toEqual({ etag: '"1"' })
    })

    it('refuses another type, and a second managed source', async () => {
      const { store } = await use()
      await store.putSource(file('team'))
      await refused(store, 'bad_request', () =>
        store.putSource({ name: 'team', git: { repository: 'https://example.com/r' }, intervalMs: 1 }),
      )
      await store.putSource(managed('own'))
      await refused(store, 'bad_request', () => store.putSource(managed('team')))
      await refused(store, 'conflict', () => store.putSource(managed('more')))
      expect(await store.putSource(managed('own'))).toEqual({ created: false })
    })

    it('deletes a source with its entries; a new one of the same name has another id and none of them', async () => {
      const { store } = await use()
      for (const name of ['team', 'other']) {
        await store.putSource(file(name))
        await sync(store, name, changed([entry('io.x/a'), entry('io.x/b')]))
      }
      const { id } = await sourceOf(store, 'team')
      const { structure } = await store.revision()
      await store.deleteSource('team')
      expect((await store.revision()).structure).toBeGreaterThan(structure)
      expect((await rowsAfter(store)).map((row) => row.source)).toEqual(['other', 'other'])
      expect(await store.versionsOf('team', 'io.x/a')).toEqual([])
      expect(await fingerprintsOf(store, 'team')).toEqual([])
      await refused(store, 'not_found', () => store.deleteSource('team'))
      await store.putSource(file('team'))
      const again = await sourceOf(store, 'team')
      expect(again.id).not.toBe(id)
      expect(again.sync).toMatchObject({ phase: 'pending', serverCount: 0 })
      expect((await rowsAfter(store)).length).toBe(2)
    })

    it('keeps registries with their sources in order', async () => {
      const { store } = await use()
      for (const name of ['a', 'b', 'c']) await store.putSource(file(name))
      const spec = { name: 'all', sources: ['c', 'a', 'b'], claims: { org: 'acme' } }
      expect(await store.putRegistry(spec)).toEqual({ created: true })
      expect(await store.putRegistry({ name: 'a-later-one', sources: [] })).toEqual({ created: true })
      const before = await contents(store)
      expect(before.registries).toMatchObject([
        { spec, creation: 'API' },
        { spec: { name: 'a-later-one', sources: [] }, creation: 'API' },
      ])
      expect(before.registries[1]?.spec).not.toHaveProperty('claims')
      expect(await store.putRegistry(structuredClone(spec))).toEqual({ created: false })
      expect(await contents(store)).toEqual(before)

      expect(await store.putRegistry({ name: 'all', sources: ['b', 'c'] })).toEqual({ created: false })
      const after = await contents(store)
      expect(after.registries[0]?.spec).toEqual({ name: 'all', sources: ['b', 'c'] })
      expect(after.registries[0]?.createdAt).toBe(before.registries[0]?.createdAt)
      expect((after.registries[0]?.updatedAt ?? '') > (before.registries[0]?.updatedAt ?? '')).toBe(true)
      expect(after.revision.structure).toBeGreaterThan(before.revision.structure)
      await refused(store, 'conflict', () => store.deleteSource('b'))
      await store.deleteSource('a')
      await store.deleteRegistry('all')
      await store.deleteSource('b')
      expect((await store.registries()).map(({ spec: { name } }) => name)).toEqual(['a-later-one'])
      await refused(store, 'not_found', () => store.deleteRegistry('all'))
    })

    it('refuses a registry with a source that is not there, or is there twice', async () => {
      const { store } = await use()
      await store.putSource(file('a'))
      await refused(store, 'bad_request', () => store.putRegistry({ name: 'r', sources: ['a', 'x'] }))
      await refused(store, 'bad_request', () => store.putRegistry({ name: 'r', sources: ['a', 'a'] }))
      await store.putRegistry({ name: 'r', sources: ['a'] })
      await refused(store, 'bad_request', () => store.putRegistry({ name: 'r', sources: ['x'] }))
    })

    it('calls back after changes, until it is stopped', async () => {
      const { store } = await use()
      let calls = 0
      const stop = store.onChange(() => calls++)
      await store.putSource(file('team'))
      await until(() => calls > 0)
      calls = 0
      await sync(store, 'team', changed([entry('io.x/a')]))
      await until(() => calls > 0)
      stop()
      await new Promise((resolve) => setTimeout(resolve, 50))
      calls = 0
      await store.deleteSource('team')
      await new Promise((resolve) => setTimeout(resolve, 50))
      expect(calls).toBe(0)
    })
  })

  describe('reconcileConfig', () => {
    it('makes what is configured, in its order, and writes nothing the second time', async () => {
      const { store } = await use()
      const config = {
        sources: [file('z'), managed('own'), file('a', { claims: { org: 'x' } })],
        registries: [
          { name: 'two', sources: ['z', 'own'] },
          { name: 'one', sources: ['own', 'a'], claims: { org: 'x' } },
        ],
      }
      await store.reconcileConfig(config)
      const before = await contents(store)
      expect(before.sources.map(({ config: { name }, creation, sync: { phase } }) => [name, creation, phase])).toEqual([
        ['a', 'CONFIG', 'pending'],
        ['own', 'CONFIG', 'complete'],
        ['z', 'CONFIG', 'pending'],
      ])
      expect(before.registries.map(({ spec, creation }) => ({ ...spec, creation }))).toEqual(
        config.registries.map((spec) => ({ ...spec, creation: 'CONFIG' })),
      )
      await store.reconcileConfig(structuredClone(config))
      expect(await contents(store)).toEqual(before)
      await store.reconcileConfig({ ...config, registries: config.registries.toReversed() })
      const turned = await contents(store)
      expect(turned.registries.map(({ spec: { name } }) => name)).toEqual(['one', 'two'])
      expect(turned.revision.structure).toBeGreaterThan(before.revision.structure)
    })

    it('removes what is configured no longer, with its entries and out of every registry; API-made things stay', async () => {
      const { store } = await use()
      await store.putSource(file('made'))
      await store.reconcileConfig({ sources: [file('a'), file('b')], registries: [{ name: 'r', sources: ['b', 'made', 'a'] }] })
      await store.putRegistry({ name: 'mine', sources: ['a', 'made'] })
      for (const name of ['made', 'a', 'b']) await sync(store, name, changed([entry(`io.x/${name}`)]))
      const { data } = await store.revision()
      await store.reconcileConfig({ sources: [file('b')], registries: [] })
      expect((await store.sources()).map(({ config, sync: { serverCount } }) => [config.name, serverCount])).toEqual([
        ['b', 1],
        ['made', 1],
      ])
      expect((await store.registries()).map(({ spec }) => spec)).toEqual([{ name: 'mine', sources: ['made'] }])
      expect((await rowsAfter(store)).map((row) => row.source)).toEqual(['made', 'b'])
      expect((await store.revision()).data).toBe(data)
    })

    it('keeps the order of configured registries when earlier ones go and others come; only those are dated that change places', async () => {
      const { store } = await use()
      const configured = async (...names: string[]) => {
        await store.reconcileConfig({ sources: [], registries: names.map((name) => ({ name, sources: [] })) })
        const registries = await store.registries()
        expect(registries.map(({ spec: { name } }) => name)).toEqual(names)
        return registries.find(({ spec: { name } }) => name === 'c')?.updatedAt ?? ''
      }
      const first = await configured('a', 'b', 'c')
      expect(await configured('c')).toBe(first)
      expect(await configured('c', 'x')).toBe(first)
      expect(await configured('y', 'c', 'x')).toBe(first)
      expect((await configured('x', 'c')) > first).toBe(true)
    })

    it('puts configured registries before the others', async () => {
      const { store } = await use()
      await store.putRegistry({ name: 'a', sources: [] })
      await store.reconcileConfig({ sources: [], registries: [{ name: 'z', sources: [] }] })
      expect((await store.registries()).map(({ spec: { name } }) => name)).toEqual(['z', 'a'])
    })

    it('refuses names that are taken, unknown sources and two managed ones, and changes nothing then', async () => {
      const { store } = await use()
      await store.reconcileConfig({ sources: [file('kept')], registries: [{ name: 'kept', sources: ['kept'] }] })
      await store.putSource(file('made'))
      await store.putSource(managed('own'))
      await store.putRegistry({ name: 'mine', sources: ['made'] })
      const cases = [
        ['conflict', { sources: [file('made')], registries: [] }],
        ['conflict', { sources: [], registries: [{ name: 'mine', sources: [] }] }],
        ['conflict', { sources: [managed('second')], registries: [] }],
        ['bad_request', { sources: [], registries: [{ name: 'r', sources: ['kept'] }] }],
        ['bad_request', { sources: [file('x')], registries: [{ name: 'r', sources: ['x', 'x'] }] }],
      ] as const
      for (const [code, config] of cases) await refused(store, code, () => store.reconcileConfig(config))
    })

    it('lets the API change nothing of it', async () => {
      const { store } = await use()
      await store.reconcileConfig({ sources: [file('a')], registries: [{ name: 'r', sources: ['a'] }] })
      await refused(store, 'forbidden', () => store.putSource(file('a', { strict: true })))
      await refused(store, 'forbidden', () => store.deleteSource('a'))
      await refused(store, 'forbidden', () => store.putRegistry({ name: 'r', sources: [] }))
      await refused(store, 'forbidden', () => store.deleteRegistry('r'))
    })

    it('keeps the entries of a source that becomes another one, unless it becomes managed or no longer is', async () => {
      const { store } = await use()
      await store.reconcileConfig({ sources: [file('a')], registries: [{ name: 'r', sources: ['a'] }] })
      await sync(store, 'a', changed([entry('io.x/a')], { state: { etag: '1' } }))
      const { id } = await sourceOf(store, 'a')
      const git = { name: 'a', git: { repository: 'https://example.com/r' }, intervalMs: 1_000 }
      await store.reconcileConfig({ sources: [git], registries: [{ name: 'r', sources: ['a'] }] })
      expect(await sourceOf(store, 'a')).toMatchObject({ id, config: git })
      expect((await rowsAfter(store)).length).toBe(1)
      expect((await lease(store, 'a')).state).toBeUndefined()

      await store.reconcileConfig({ sources: [managed('a')], registries: [{ name: 'r', sources: ['a'] }] })
      const made = await sourceOf(store, 'a')
      expect(made).toMatchObject({ config: managed('a'), sync: { phase: 'complete', serverCount: 0 } })
      expect(made.id).not.toBe(id)
      expect(await rowsAfter(store)).toEqual([])
      expect((await store.registries()).map(({ spec }) => spec)).toEqual([{ name: 'r', sources: ['a'] }])
      await store.reconcileConfig({ sources: [git, managed('b')], registries: [{ name: 'r', sources: ['a', 'b'] }] })
      expect((await sourceOf(store, 'a')).id).not.toBe(made.id)
    })
  })
}
