import { describe, expect, it } from 'vitest'
import { until } from '../../../testing/until.ts'
import type { StoredEntry } from '../../registry-store.ts'
import {
  changed,
  contents,
  entry,
  file,
  fingerprintsOf,
  lease,
  managed,
  never,
  rowsAfter,
  sourceOf,
  sync,
  textOf,
} from './contract-tools.ts'
import type { OpenStore } from './store-contract.ts'

/** All of them are legal somewhere: whatever a source gives must come back as it was. */
const ODD = [
  'io.x/a',
  'io.x/A',
  'IO.X/a',
  "o'brien/--; DROP TABLE entry",
  'a/b"c\\d%_',
  'münchen/straße',
  'mu\u0308nchen/strasse',
  '漢字/かな',
  'emoji/👩‍👩‍👧‍👦🏳️‍🌈',
  '\u{10ffff}/\uffff',
  ' leading/trailing ',
  'tab\t/new\nline',
  '1e5',
  '007',
  'NULL',
  '',
  'x'.repeat(1_000),
]

export function describeEntries(use: OpenStore): void {
  describe('entries', () => {
    it('come in order of revision, each row once, and later only what is new', async () => {
      const { store } = await use()
      for (const name of ['a', 'b']) await store.putSource(file(name))
      await store.putSource(managed('own'))
      await sync(store, 'b', changed([entry('io.x/1'), entry('io.x/2')]))
      await sync(store, 'a', changed([entry('io.x/2'), entry('io.x/3')]))
      await store.publish({ source: 'own', name: 'io.x/4', version: '1', text: '{}' })
      await sync(store, 'b', changed([entry('io.x/1', '1.0.0', { text: '{"other":1}' })]))
      const rows = await rowsAfter(store)
      const revisions = rows.map((row) => row.revision)
      expect(revisions).toEqual(revisions.toSorted((x, y) => x - y))
      expect(rows.map(({ source, name, revision }) => `${revision} ${source} ${name}`).sort()).toEqual([
        '1 b io.x/2',
        '2 a io.x/2',
        '2 a io.x/3',
        '3 own io.x/4',
        '4 b io.x/1',
      ])
      const { data } = await store.revision()
      expect(data).toBe(4)
      for (let after = 0; after <= data; after++) {
        expect((await rowsAfter(store, after)).map((row) => row.revision)).toEqual(revisions.filter((revision) => revision > after))
      }
      const times = new Map(rows.map((row) => [row.revision, row.updatedAt]))
      expect([...times.values()]).toEqual([...times.values()].toSorted())
      expect(new Set(times.values()).size).toBe(times.size)
    })

    it('keep odd names, versions and texts as they are', async () => {
      const { store } = await use()
      await store.putSource(file('a'))
      const upserts = ODD.flatMap((odd) => [
        entry(odd, '1', { text: textOf(odd, '1', { nul: '\u0000', sep: '\u2028', lone: '\ud800' }), statusMessage: odd || 'none' }),
        entry('io.x/a', `1+${odd}`),
      ])
      await sync(store, 'a', changed(upserts, { message: ODD.join(''), hash: ODD.join(''), state: { odd: ODD } }))
      const key = ({ name, version }: { name: string; version: string }) => JSON.stringify([name, version])
      const rows = new Map((await rowsAfter(store)).map((row) => [key(row), row]))
      expect(rows.size).toBe(upserts.length)
      const hashes = new Map((await fingerprintsOf(store, 'a')).map((print) => [key(print), print.hash]))
      for (const upsert of upserts) {
        const row = rows.get(key(upsert))
        expect([row?.text, row?.statusMessage]).toEqual([upsert.text, upsert.statusMessage])
        expect(hashes.get(key(upsert))).toBe(upsert.hash)
        expect(await store.versionsOf('a', upsert.name)).toContainEqual(row)
      }
      const others = ODD.filter((odd) => odd !== 'io.x/a')
      const named = (await fingerprintsOf(store, 'a', [...others, 'io.x/none'])).map(key)
      expect(new Set(named)).toEqual(new Set(others.map((odd) => key({ name: odd, version: '1' }))))
      expect(await fingerprintsOf(store, 'a', [])).toEqual([])
      expect(await fingerprintsOf(store, 'none', [...ODD])).toEqual([])
      expect((await sourceOf(store, 'a')).sync).toMatchObject({ message: ODD.join(''), hash: ODD.join(''), serverCount: upserts.length })
      expect((await lease(store, 'a')).state).toEqual({ odd: ODD })
    })

    it('keep documents of 256 KiB', async () => {
      const { store } = await use()
      await store.putSource(file('a'))
      const text = textOf('io.x/a', '1', { long: 'ü"\\ '.repeat(50_000) })
      expect(text.length).toBeGreaterThan(256 * 1024)
      await sync(store, 'a', changed(Array.from({ length: 40 }, (_, n) => entry('io.x/a', `${n}`, { text }))))
      const rows = await rowsAfter(store)
      expect(rows.length).toBe(40)
      expect(rows.every((row) => row.text === text)).toBe(true)
    })

    it('come in batches, many thousands of one revision too', async () => {
      const { store } = await use()
      await store.putSource(file('a'))
      const upserts = Array.from({ length: 5_000 }, (_, n) => entry(`io.x/${n % 2_500}`, `${n}`))
      expect(await sync(store, 'a', changed(upserts))).toEqual({ revision: 1, serverCount: 5_000 })
      const seen = new Set<string>()
      let batches = 0
      for await (const batch of store.entriesAfter(0, never)) {
        batches++
        expect(batch.length).toBeGreaterThan(0)
        for (const row of batch) seen.add(`${row.name} ${row.version}`)
      }
      expect(batches).toBeGreaterThan(1)
      expect(seen.size).toBe(5_000)
      expect(new Set((await fingerprintsOf(store, 'a')).map((print) => `${print.name} ${print.version}`))).toEqual(seen)
      const some = Array.from({ length: 1_200 }, (_, n) => `io.x/${n}`)
      const named = await fingerprintsOf(store, 'a', some)
      expect([named.length, new Set(named.map(({ name }) => name)).size]).toEqual([2_400, 1_200])
      const gone = upserts.slice(0, 4_000)
      expect(await sync(store, 'a', changed([entry('io.x/new', '1')], { gone }))).toEqual({ revision: 2, serverCount: 1_001 })
      expect((await rowsAfter(store, 1)).length).toBe(4_001)
    })

    it('stop coming when the reader has had enough', async () => {
      const { store } = await use()
      await store.putSource(file('a'))
      await sync(store, 'a', changed(Array.from({ length: 5_000 }, (_, n) => entry('io.x/a', `${n}`))))
      const stop = new AbortController()
      const reason = new Error('enough')
      const drain = async (rows: AsyncIterable<unknown>) => {
        for await (const _ of rows) stop.abort(reason)
      }
      await expect(drain(store.entriesAfter(0, stop.signal))).rejects.toBe(reason)
      await expect(drain(store.entriesAfter(0, stop.signal))).rejects.toBe(reason)
      await expect(drain(store.fingerprints('a', stop.signal))).rejects.toBe(reason)
      for await (const _ of store.entriesAfter(0, never)) break
      expect((await rowsAfter(store)).length).toBe(5_000)
    })

    it('are complete for who reads while others write', async () => {
      const { store, second } = await use()
      const writer = second ? await second() : store
      await store.putSource(managed('own'))
      await store.putSource(file('a'))
      await sync(store, 'a', changed(Array.from({ length: 3_000 }, (_, n) => entry('io.x/a', `${n}`))))
      const copy = new Map<string, StoredEntry>()
      let [seen, last, writes] = [0, 0, 0]
      const read = async () => {
        const { data } = await store.revision()
        for await (const batch of store.entriesAfter(seen, never)) {
          for (const row of batch) {
            expect(row.revision).toBeGreaterThanOrEqual(last)
            last = row.revision
            copy.set(`${row.source} ${row.name} ${row.version}`, row)
          }
          await writer.publish({ source: 'own', name: 'io.x/w', version: `${writes++}`, text: '{}' })
        }
        seen = Math.max(data, last)
      }
      const changes = (async () => {
        for (let n = 0; n < 20; n++) {
          await sync(writer, 'a', changed([entry('io.x/a', `${n * 140}`, { text: `{"n":${n}}` })]))
        }
      })()
      await read()
      await changes
      const { data } = await store.revision()
      for (let turn = 0; seen < data && turn < 5; turn++) {
        for await (const batch of store.entriesAfter(seen, never)) {
          for (const row of batch) copy.set(`${row.source} ${row.name} ${row.version}`, row)
        }
        seen = data
      }
      const all = await rowsAfter(store)
      expect(copy.size).toBe(all.length)
      for (const row of all) expect(copy.get(`${row.source} ${row.name} ${row.version}`)).toEqual(row)
    })

    it('of what is not there are none', async () => {
      const { store } = await use()
      expect(await rowsAfter(store, 17)).toEqual([])
      expect(await fingerprintsOf(store, 'none')).toEqual([])
      expect(await store.versionsOf('none', 'io.x/a')).toEqual([])
    })
  })
}

export function describeReopening(use: OpenStore): void {
  describe('entries', () => {
    it('are all there when the store is opened again', async () => {
      const { store, reopen } = await use()
      if (!reopen) throw new Error('it cannot be opened again')
      await store.reconcileConfig({ sources: [file('a', { claims: { org: 'x' } })], registries: [{ name: 'r', sources: ['a'] }] })
      await store.putSource(managed('own'))
      await store.publish({ source: 'own', name: 'io.x/a', version: '1', text: '{}', claims: { org: 'x' } })
      await sync(store, 'a', changed([entry('io.x/a'), entry('io.x/b')], { state: { etag: '"1"' } }))
      await sync(store, 'a', changed([], { gone: [{ name: 'io.x/b', version: '1.0.0' }], state: { etag: '"2"' } }))
      const before = await contents(store)
      const again = await reopen()
      expect(await contents(again)).toEqual(before)
      expect((await lease(again, 'a')).state).toEqual({ etag: '"2"' })
      const next = await again.publish({ source: 'own', name: 'io.x/a', version: '2', text: '{}' })
      expect(next.revision).toBe(before.revision.data + 1)
      expect(before.rows.every((row) => row.updatedAt < next.updatedAt)).toBe(true)
    })
  })
}

export function describeSharing(use: OpenStore): void {
  describe('a store of several processes', () => {
    it('shows the changes of one to the other', async () => {
      const { store, second } = await use()
      if (!second) throw new Error('it cannot be opened twice')
      const other = await second()
      let calls = 0
      other.onChange(() => calls++)
      await store.putSource(managed('own'))
      await until(() => calls > 0)
      calls = 0
      const row = await store.publish({ source: 'own', name: 'io.x/a', version: '1', text: '{}' })
      await until(() => calls > 0)
      expect(await other.revision()).toEqual(await store.revision())
      expect(await rowsAfter(other)).toEqual([row])
      expect(await contents(other)).toEqual(await contents(store))
    })
  })
}
