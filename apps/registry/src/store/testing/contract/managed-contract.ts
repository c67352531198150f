import { describe, expect, it } from 'vitest'
import type { NewEntry, RegistryStore } from '../../registry-store.ts'
import { changed, entry, file, managed, only, refused, rowsAfter, sourceOf, sync, textOf } from './contract-tools.ts'
import type { OpenStore } from './store-contract.ts'

const fresh = (name: string, version: string, more: Partial<NewEntry> = {}): NewEntry => ({
  source: 'own',
  name,
  version,
  text: textOf(name, version),
  ...more,
})

export function describeManaged(use: OpenStore): void {
  const open = async (): Promise<RegistryStore> => {
    const { store } = await use()
    await store.putSource(managed('own'))
    await store.putSource(file('synced'))
    return store
  }

  describe('the managed source', () => {
    it('publishes: one new revision, all times the same, counted', async () => {
      const store = await open()
      const { structure } = await store.revision()
      const row = await store.publish(fresh('io.x/a', '1.0.0'))
      expect(row).toEqual({
        source: 'own',
        name: 'io.x/a',
        version: '1.0.0',
        text: textOf('io.x/a', '1.0.0'),
        status: 'active',
        publishedAt: row.updatedAt,
        updatedAt: row.updatedAt,
        statusChangedAt: row.updatedAt,
        revision: 1,
      })
      expect(row.updatedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(await store.revision()).toEqual({ data: 1, structure })
      expect(await store.versionsOf('own', 'io.x/a')).toEqual([row])
      expect(await rowsAfter(store)).toEqual([row])
      const other = await store.publish(fresh('io.x/a', '1.0.1', { status: 'deprecated', statusMessage: 'use b' }))
      expect(other).toMatchObject({ status: 'deprecated', statusMessage: 'use b', revision: 2 })
      expect(other.updatedAt > row.updatedAt).toBe(true)
      expect((await sourceOf(store, 'own')).sync).toMatchObject({ phase: 'complete', serverCount: 2 })
    })

    it('has each version once, whatever its case', async () => {
      const store = await open()
      await store.publish(fresh('io.x/a', '1.0.0-rc'))
      await refused(store, 'version_exists', () => store.publish(fresh('io.x/a', '1.0.0-rc', { text: '{}' })))
      await store.publish(fresh('io.x/A', '1.0.0-rc'))
      await store.publish(fresh('io.x/a', '1.0.0-RC'))
      expect((await rowsAfter(store)).length).toBe(3)
    })

    it('publishes a deleted version again', async () => {
      const store = await open()
      const first = await store.publish(fresh('io.x/a', '1', { claims: { org: 'a' } }))
      const dead = await only(store.setStatus({ source: 'own', name: 'io.x/a', version: '1', status: 'deleted', statusMessage: 'oops' }))
      expect(dead).toEqual({
        ...first,
        status: 'deleted',
        statusMessage: 'oops',
        updatedAt: dead.updatedAt,
        statusChangedAt: dead.updatedAt,
        revision: first.revision + 1,
      })
      expect((await sourceOf(store, 'own')).sync.serverCount).toBe(0)
      await refused(store, 'conflict', () => store.publish(fresh('io.x/a', '1', { claims: { org: 'b' } })))
      const again = await store.publish(fresh('io.x/a', '1', { text: '{"new":true}' }))
      expect(again).toEqual({
        source: 'own',
        name: 'io.x/a',
        version: '1',
        text: '{"new":true}',
        status: 'active',
        claims: { org: 'a' },
        publishedAt: again.updatedAt,
        updatedAt: again.updatedAt,
        statusChangedAt: again.updatedAt,
        revision: dead.revision + 1,
      })
      expect(again.updatedAt > dead.updatedAt).toBe(true)
      expect(await rowsAfter(store)).toEqual([again])
      expect((await sourceOf(store, 'own')).sync.serverCount).toBe(1)
    })

    it('writes only if the name still has the claims that it was decided by', async () => {
      const store = await open()
      const claims = { org: 'a' }
      await refused(store, 'conflict', () => store.publish(fresh('io.x/a', '1', { ifClaims: claims })))
      await store.publish(fresh('io.x/a', '1', { claims, ifClaims: null }))
      await refused(store, 'conflict', () => store.publish(fresh('io.x/a', '2', { ifClaims: null })))
      await refused(store, 'conflict', () => store.replaceDocument(fresh('io.x/a', '1', { text: '{"n":2}', ifClaims: null })))
      await refused(store, 'conflict', () => store.replaceDocument(fresh('io.x/a', '1', { text: '{"n":2}', ifClaims: { org: 'b' } })))
      expect((await store.publish(fresh('io.x/a', '2', { ifClaims: claims }))).claims).toEqual(claims)
      expect((await store.replaceDocument(fresh('io.x/a', '1', { text: '{"n":2}', ifClaims: claims }))).text).toBe('{"n":2}')
      await store.publish(fresh('io.x/b', '1', { ifClaims: null }))
      expect((await store.publish(fresh('io.x/b', '2', { ifClaims: null }))).claims).toBeUndefined()
    })

    it('replaces a document, and its status only if asked to', async () => {
      const store = await open()
      await refused(store, 'not_found', () => store.replaceDocument(fresh('io.x/a', '1')))
      const first = await store.publish(fresh('io.x/a', '1', { status: 'deprecated', statusMessage: 'old' }))
      expect(await store.replaceDocument(fresh('io.x/a', '1'))).toEqual(first)
      expect((await store.revision()).data).toBe(first.revision)
      const second = await store.replaceDocument(fresh('io.x/a', '1', { text: '{"n":2}' }))
      expect(second).toEqual({ ...first, text: '{"n":2}', updatedAt: second.updatedAt, revision: first.revision + 1 })
      expect(second.updatedAt > first.updatedAt).toBe(true)
      const third = await store.replaceDocument(fresh('io.x/a', '1', { text: '{"n":3}', status: 'active' }))
      expect(third).toMatchObject({ text: '{"n":3}', status: 'active', statusChangedAt: third.updatedAt, publishedAt: first.publishedAt })
      expect(third).not.toHaveProperty('statusMessage')
      await refused(store, 'not_found', () => store.replaceDocument(fresh('io.x/a', '2')))
      await store.setStatus({ source: 'own', name: 'io.x/a', version: '1', status: 'deleted' })
      expect(await store.replaceDocument(fresh('io.x/a', '1', { text: '{"n":4}' }))).toMatchObject({ text: '{"n":4}', status: 'deleted' })
      expect((await sourceOf(store, 'own')).sync.serverCount).toBe(0)
    })

    it('changes the status of one version', async () => {
      const store = await open()
      const first = await store.publish(fresh('io.x/a', '1'))
      const other = await store.publish(fresh('io.x/a', '2'))
      const one = { source: 'own', name: 'io.x/a', version: '1' }
      const second = await only(store.setStatus({ ...one, status: 'deprecated', statusMessage: 'old' }))
      expect(second).toEqual({
        ...first,
        status: 'deprecated',
        statusMessage: 'old',
        updatedAt: second.updatedAt,
        statusChangedAt: second.updatedAt,
        revision: other.revision + 1,
      })
      expect(await only(store.setStatus({ ...one, status: 'deprecated', statusMessage: 'old' }))).toEqual(second)
      const third = await only(store.setStatus({ ...one, status: 'deprecated' }))
      expect(third).not.toHaveProperty('statusMessage')
      expect(third.statusChangedAt).toBe(second.statusChangedAt)
      expect(third.updatedAt > second.updatedAt).toBe(true)
      expect(await store.versionsOf('own', 'io.x/a')).toEqual([third, other])
      await refused(store, 'not_found', () => store.setStatus({ ...one, version: '3', status: 'active' }))
      await refused(store, 'not_found', () => store.setStatus({ source: 'own', name: 'io.x/b', status: 'active' }))
    })

    it('changes the status of all versions in one revision', async () => {
      const store = await open()
      for (const version of ['2', '10', '1']) await store.publish(fresh('io.x/a', version))
      const bystander = await store.publish(fresh('io.x/ab', '1'))
      const [dead] = await store.setStatus({ source: 'own', name: 'io.x/a', version: '2', status: 'deleted', statusMessage: 'bad' })
      const all = { source: 'own', name: 'io.x/a' }
      const gone = await store.setStatus({ ...all, status: 'deleted', statusMessage: 'all' })
      expect(gone.map(({ version, status, statusMessage }) => [version, status, statusMessage])).toEqual([
        ['1', 'deleted', 'all'],
        ['10', 'deleted', 'all'],
      ])
      expect(new Set(gone.map((row) => row.revision))).toEqual(new Set([(dead?.revision ?? 0) + 1]))
      expect(new Set(gone.map((row) => row.updatedAt)).size).toBe(1)
      expect((await store.versionsOf('own', 'io.x/a'))[2]).toEqual(dead)
      expect(await store.setStatus({ ...all, status: 'deleted' })).toEqual([])
      expect((await sourceOf(store, 'own')).sync.serverCount).toBe(1)
      const back = await store.setStatus({ ...all, status: 'active' })
      expect(back.map(({ version, status }) => [version, status])).toEqual([
        ['1', 'active'],
        ['10', 'active'],
        ['2', 'active'],
      ])
      expect((await sourceOf(store, 'own')).sync.serverCount).toBe(4)
      expect(await store.versionsOf('own', 'io.x/ab')).toEqual([bystander])
    })

    it('has one set of claims for all versions of a name', async () => {
      const store = await open()
      const first = await store.publish(fresh('io.x/a', '1', { claims: { org: 'a', team: ['x', 'y'] } }))
      expect(first.claims).toEqual({ org: 'a', team: ['x', 'y'] })
      expect((await store.publish(fresh('io.x/a', '2'))).claims).toEqual(first.claims)
      expect((await store.publish(fresh('io.x/a', '3', { claims: { team: ['x', 'y'], org: 'a' } }))).claims).toEqual(first.claims)
      await refused(store, 'conflict', () => store.publish(fresh('io.x/a', '4', { claims: { org: 'b' } })))
      await refused(store, 'conflict', () => store.replaceDocument(fresh('io.x/a', '1', { claims: { org: 'b' } })))
      expect(await store.claimsOf('own', 'io.x/a')).toEqual(first.claims)
      await store.publish(fresh('io.x/b', '1'))
      expect(await store.claimsOf('own', 'io.x/b')).toBeUndefined()
      await refused(store, 'conflict', () => store.publish(fresh('io.x/b', '2', { claims: { org: 'b' } })))
    })

    it('sets claims of all versions of a name', async () => {
      const store = await open()
      for (const version of ['1', '2']) await store.publish(fresh('io.x/a', version))
      await store.setStatus({ source: 'own', name: 'io.x/a', version: '2', status: 'deleted' })
      const { data } = await store.revision()
      await store.setClaims({ source: 'own', name: 'io.x/a', claims: { org: 'a' } })
      expect(await store.claimsOf('own', 'io.x/a')).toEqual({ org: 'a' })
      const rows = await rowsAfter(store, data)
      expect(rows.map(({ version, claims, revision }) => [version, claims, revision]).sort()).toEqual([
        ['1', { org: 'a' }, data + 1],
        ['2', { org: 'a' }, data + 1],
      ])
      await store.setClaims({ source: 'own', name: 'io.x/a', claims: { org: 'a' } })
      expect((await store.revision()).data).toBe(data + 1)
      await store.setClaims({ source: 'own', name: 'io.x/a', claims: undefined })
      expect(await store.claimsOf('own', 'io.x/a')).toBeUndefined()
      expect((await store.versionsOf('own', 'io.x/a'))[0]).not.toHaveProperty('claims')
    })

    it('changes status and claims only if everything is as it was decided by', async () => {
      const store = await open()
      const own = { source: 'own', name: 'io.x/a' }
      const [deprecated, claims] = [{ ...own, status: 'deprecated' } as const, { org: 'a' }]
      await store.publish(fresh('io.x/a', '1'))
      await store.publish(fresh('io.x/a', '2'))
      for (const version of [undefined, '1']) {
        const change = { ...deprecated, ...(version && { version }) }
        await refused(store, 'conflict', () => store.setStatus({ ...change, ifClaims: claims }))
      }
      await refused(store, 'conflict', () => store.setClaims({ ...own, claims, ifClaims: claims }))
      await store.setClaims({ ...own, claims, ifClaims: null })
      await refused(store, 'conflict', () => store.setStatus({ ...deprecated, ifClaims: null }))
      await refused(store, 'conflict', () => store.setClaims({ ...own, claims: undefined, ifClaims: null }))
      await only(store.setStatus({ ...deprecated, version: '1', statusMessage: 'old', ifClaims: claims, ifOther: true, ifLiving: true }))
      await refused(store, 'bad_request', () => store.setStatus({ ...deprecated, version: '1', statusMessage: 'old', ifOther: true }))
      // One of them is another, in its status or in its message.
      expect(await store.setStatus({ ...deprecated, ifOther: true })).toHaveLength(2)
      await refused(store, 'bad_request', () => store.setStatus({ ...deprecated, ifOther: true }))
      await store.setStatus({ ...own, version: '1', status: 'deleted', ifLiving: true })
      await refused(store, 'not_found', () => store.setStatus({ ...own, version: '1', status: 'active', ifLiving: true }))
      await refused(store, 'not_found', () =>
        store.setStatus({ ...own, version: '1', status: 'deleted', statusMessage: 'x', ifLiving: true }),
      )
      await store.setClaims({ ...own, claims: { org: 'b' }, ifClaims: claims, ifLiving: true })
      await store.setStatus({ ...own, status: 'deleted', ifOther: true, ifLiving: true })
      await refused(store, 'bad_request', () => store.setStatus({ ...own, status: 'deleted', ifOther: true }))
      await refused(store, 'not_found', () => store.setStatus({ ...own, status: 'deleted', ifLiving: true }))
      await refused(store, 'not_found', () => store.setClaims({ ...own, claims, ifLiving: true }))
    })

    it('lets one of many succeed who want a change by what they have all seen', async () => {
      const { store, second } = await use()
      await store.putSource(managed('own'))
      const stores = [store, ...(second ? [await second()] : [])]
      const own = { source: 'own', name: 'io.x/a' }
      await store.publish(fresh('io.x/a', '1'))
      const codes = async (change: (store: RegistryStore, n: number) => Promise<unknown>) => {
        const calls = Array.from({ length: 12 }, (_, n) =>
          change(stores[n % stores.length] ?? store, n).then(
            () => 'done',
            (e) => e.code,
          ),
        )
        return (await Promise.all(calls)).sort()
      }
      const but = (code: string) => [...Array.from({ length: 11 }, () => code), 'done'].sort()
      expect(await codes((one, n) => one.setClaims({ ...own, claims: { org: `${n}` }, ifClaims: null }))).toEqual(but('conflict'))
      expect(await codes((one) => one.setStatus({ ...own, status: 'deprecated', ifOther: true }))).toEqual(but('bad_request'))
      const gone = { ...own, version: '1', status: 'deleted', ifLiving: true } as const
      expect(await codes((one) => one.setStatus(gone))).toEqual(but('not_found'))
    })

    it('knows no claims of what is not there, but those of what is deleted', async () => {
      const store = await open()
      await refused(store, 'not_found', () => store.claimsOf('own', 'io.x/a'))
      await refused(store, 'not_found', () => store.setClaims({ source: 'own', name: 'io.x/a', claims: { org: 'a' } }))
      await store.publish(fresh('io.x/a', '1', { claims: { org: 'a' } }))
      await store.setStatus({ source: 'own', name: 'io.x/a', status: 'deleted' })
      expect(await store.claimsOf('own', 'io.x/a')).toEqual({ org: 'a' })
      await store.setClaims({ source: 'own', name: 'io.x/a', claims: { org: 'b' } })
      expect((await store.publish(fresh('io.x/a', '2', { claims: { org: 'b' } }))).claims).toEqual({ org: 'b' })
      await refused(store, 'not_found', () => store.claimsOf('none', 'io.x/a'))
    })

    it('is the only one that is written to', async () => {
      const store = await open()
      await sync(store, 'synced', changed([entry('io.x/a', '1')]))
      const there = { source: 'synced', name: 'io.x/a', version: '1', text: '{}' }
      await refused(store, 'bad_request', () => store.publish(there))
      await refused(store, 'bad_request', () => store.replaceDocument(there))
      await refused(store, 'bad_request', () => store.setStatus({ ...there, status: 'deleted' }))
      await refused(store, 'bad_request', () => store.setClaims({ source: 'synced', name: 'io.x/a', claims: { org: 'a' } }))
      const nowhere = { ...there, source: 'none' }
      await refused(store, 'not_found', () => store.publish(nowhere))
      await refused(store, 'not_found', () => store.replaceDocument(nowhere))
      await refused(store, 'not_found', () => store.setStatus({ ...nowhere, status: 'deleted' }))
      await refused(store, 'not_found', () => store.setClaims({ source: 'none', name: 'io.x/a', claims: undefined }))
    })

    it('lets one of many who publish the same version succeed', async () => {
      const { store, second } = await use()
      await store.putSource(managed('own'))
      const stores = [store, ...(second ? [await second()] : [])]
      const results = await Promise.allSettled(
        Array.from({ length: 12 }, (_, n) => (stores[n % stores.length] ?? store).publish(fresh('io.x/a', '1', { text: `{"n":${n}}` }))),
      )
      expect(results.filter(({ status }) => status === 'fulfilled').length).toBe(1)
      for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'version_exists' })
      expect((await rowsAfter(store)).length).toBe(1)
      expect((await sourceOf(store, 'own')).sync.serverCount).toBe(1)
    })
  })
}
