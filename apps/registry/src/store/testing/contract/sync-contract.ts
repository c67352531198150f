import { describe, expect, it } from 'vitest'
import { UNCHANGED_MESSAGE } from '../../registry-store.ts'
import { changed, contents, entry, file, fingerprintsOf, lease, only, rowsAfter, sourceOf, sync, unchanged } from './contract-tools.ts'
import type { OpenStore } from './store-contract.ts'

const ORIGIN_TIME = '2025-03-01T12:00:00.123456789+02:00'

export function describeSync(use: OpenStore): void {
  const open = async () => {
    const { store } = await use()
    await store.putSource(file('a'))
    return store
  }

  describe('finishSync', () => {
    it('writes what changed and how it went', async () => {
      const store = await open()
      const problems = [{ entry: 'io.x/bad', pointer: '/name', message: 'is missing', severity: 'dropped' as const }]
      const outcome = changed(
        [entry('io.x/a'), entry('io.x/b', '2', { status: 'deprecated', statusMessage: 'old', publishedAt: ORIGIN_TIME })],
        {
          hash: 'h1',
          state: { etag: '"1"', deep: [{ n: null }, 1.5, true] },
          message: 'Sync completed successfully',
          problems,
          problemCount: 1_234,
        },
      )
      expect(await sync(store, 'a', outcome)).toEqual({ revision: 1, serverCount: 2 })
      const { sync: status } = await sourceOf(store, 'a')
      expect(status).toEqual({
        phase: 'complete',
        attemptCount: 0,
        lastAttempt: expect.stringMatching(/Z$/),
        lastSuccess: expect.stringMatching(/Z$/),
        serverCount: 2,
        message: 'Sync completed successfully',
        problems,
        problemCount: 1_234,
        hash: 'h1',
      })
      const b = await only(store.versionsOf('a', 'io.x/b'))
      expect(b).toEqual({
        source: 'a',
        name: 'io.x/b',
        version: '2',
        text: outcome.upserts[1]?.text,
        status: 'deprecated',
        statusMessage: 'old',
        publishedAt: ORIGIN_TIME,
        updatedAt: b.updatedAt,
        statusChangedAt: b.updatedAt,
        revision: 1,
      })
      const a = await only(store.versionsOf('a', 'io.x/a'))
      expect(a.publishedAt).toBe(a.updatedAt)
      expect(a).not.toHaveProperty('statusMessage')
      expect(a).not.toHaveProperty('claims')
      expect(await fingerprintsOf(store, 'a')).toEqual(
        expect.arrayContaining(outcome.upserts.map(({ name, version, hash, status: s }) => ({ name, version, hash, status: s }))),
      )
      const { state, sync: before } = await lease(store, 'a')
      expect(state).toEqual(outcome.state)
      expect(before).toMatchObject({ phase: 'complete', hash: 'h1' })
    })

    it('keeps at most 100 problems', async () => {
      const store = await open()
      const problems = Array.from({ length: 150 }, (_, n) => ({ entry: `${n}`, pointer: '', message: 'bad', severity: 'dropped' as const }))
      await sync(store, 'a', changed([], { problems, problemCount: 150 }))
      expect((await sourceOf(store, 'a')).sync).toMatchObject({ problems: problems.slice(0, 100), problemCount: 150 })
    })

    it('touches only what really changed', async () => {
      const store = await open()
      const upserts = ['a', 'b', 'c'].map((name) => entry(`io.x/${name}`))
      await sync(store, 'a', changed(upserts))
      const before = await rowsAfter(store)
      expect(await sync(store, 'a', changed(upserts, { hash: 'h2' }))).toEqual({ revision: 1, serverCount: 3 })
      expect(await rowsAfter(store)).toEqual(before)
      expect((await store.revision()).data).toBe(1)
      expect((await sourceOf(store, 'a')).sync.hash).toBe('h2')
      const other = entry('io.x/b', '1.0.0', { text: '{"other":true}' })
      await sync(store, 'a', changed([...upserts.filter(({ name }) => name !== other.name), other]))
      const row = await only(rowsAfter(store, 1))
      const old = before.find(({ name }) => name === other.name)
      expect(row).toEqual({ ...old, text: other.text, revision: 2, updatedAt: row.updatedAt })
      expect(row.updatedAt > (old?.updatedAt ?? '')).toBe(true)
      expect((await rowsAfter(store)).filter(({ name }) => name !== other.name)).toEqual(before.filter(({ name }) => name !== other.name))
    })

    it('follows status, message and time of publication of the origin', async () => {
      const store = await open()
      await sync(store, 'a', changed([entry('io.x/a')]))
      const first = await only(rowsAfter(store))
      await sync(store, 'a', changed([entry('io.x/a', '1.0.0', { status: 'deprecated', statusMessage: 'old' })]))
      const second = await only(rowsAfter(store))
      expect(second).toMatchObject({ status: 'deprecated', statusMessage: 'old', publishedAt: first.publishedAt })
      expect(second.statusChangedAt).toBe(second.updatedAt)
      await sync(store, 'a', changed([entry('io.x/a', '1.0.0', { status: 'deprecated', publishedAt: ORIGIN_TIME })]))
      const third = await only(rowsAfter(store))
      expect(third).toMatchObject({ status: 'deprecated', publishedAt: ORIGIN_TIME, statusChangedAt: second.statusChangedAt })
      expect(third).not.toHaveProperty('statusMessage')
      await sync(store, 'a', changed([entry('io.x/a', '1.0.0', { text: '{}' })]))
      expect(await only(rowsAfter(store))).toMatchObject({ status: 'active', publishedAt: ORIGIN_TIME, text: '{}' })
      expect(await sync(store, 'a', changed([entry('io.x/a', '1.0.0', { status: 'deleted' })]))).toMatchObject({ serverCount: 0 })
    })

    it('makes tombstones of what is gone, and raises what comes back', async () => {
      const store = await open()
      await sync(store, 'a', changed([entry('io.x/a', '1', { statusMessage: 'note' }), entry('io.x/b')]))
      const first = await only(store.versionsOf('a', 'io.x/a'))
      const gone = [
        { name: 'io.x/a', version: '1' },
        { name: 'io.x/a', version: 'never there' },
      ]
      expect(await sync(store, 'a', changed([], { gone }))).toEqual({ revision: 2, serverCount: 1 })
      const dead = await only(rowsAfter(store, 1))
      const { statusMessage: _, ...rest } = first
      expect(dead).toEqual({ ...rest, status: 'deleted', updatedAt: dead.updatedAt, statusChangedAt: dead.updatedAt, revision: 2 })
      expect((await fingerprintsOf(store, 'a')).find(({ name }) => name === 'io.x/a')?.status).toBe('deleted')
      expect(await sync(store, 'a', changed([], { gone }))).toEqual({ revision: 2, serverCount: 1 })
      expect(await sync(store, 'a', changed([entry('io.x/a', '1', { statusMessage: 'note' })]))).toEqual({ revision: 3, serverCount: 2 })
      const back = await only(rowsAfter(store, 2))
      expect(back).toEqual({ ...first, updatedAt: back.updatedAt, statusChangedAt: back.updatedAt, revision: 3 })
    })

    it('can begin with an entry that is deleted already', async () => {
      const store = await open()
      expect(await sync(store, 'a', changed([entry('io.x/a', '1', { status: 'deleted' })]))).toEqual({ revision: 1, serverCount: 0 })
      expect(await only(rowsAfter(store))).toMatchObject({ status: 'deleted', revision: 1 })
    })

    it('leaves entries of other sources alone', async () => {
      const store = await open()
      await store.putSource(file('b'))
      await sync(store, 'a', changed([entry('io.x/a')]))
      const other = await only(rowsAfter(store))
      await sync(store, 'b', changed([entry('io.x/a', '1.0.0', { text: '{}' })]))
      await sync(store, 'b', changed([], { gone: [{ name: 'io.x/a', version: '1.0.0' }] }))
      expect(await store.versionsOf('a', 'io.x/a')).toEqual([other])
      expect((await store.sources()).map((source) => source.sync.serverCount)).toEqual([1, 0])
    })

    it('of an unchanged source changes no row, no hash and no problems, but says so', async () => {
      const store = await open()
      const problems = [{ entry: 'x', pointer: '', message: 'bad', severity: 'warning' as const }]
      await sync(store, 'a', changed([entry('io.x/a')], { problems, problemCount: 1 }))
      const before = await contents(store)
      expect(await sync(store, 'a', { kind: 'unchanged', nextInMs: 60_000, state: { etag: '"2"' } })).toEqual({
        revision: 1,
        serverCount: 1,
      })
      const after = await contents(store)
      expect([after.rows, after.revision]).toEqual([before.rows, before.revision])
      expect(after.sources[0]?.sync).toEqual({
        ...before.sources[0]?.sync,
        message: UNCHANGED_MESSAGE,
        lastAttempt: expect.any(String),
        lastSuccess: expect.any(String),
      })
      expect((await lease(store, 'a')).state).toEqual({ etag: '"2"' })
    })

    it('of an unchanged source takes other problems where it has some', async () => {
      const store = await open()
      await sync(store, 'a', changed([entry('io.x/a')]))
      const problems = [{ entry: 'x', pointer: '', message: 'bad', severity: 'warning' as const }]
      await sync(store, 'a', { kind: 'unchanged', nextInMs: 60_000, state: {}, problems, problemCount: 7 })
      expect((await sourceOf(store, 'a')).sync).toMatchObject({ problems, problemCount: 7, serverCount: 1, hash: 'hash' })
    })

    it('writes the claims of entries that have some, and leaves those of others as they are', async () => {
      const store = await open()
      const claims = { team: ['a', 'b'] }
      const claimsNow = async () => (await only(store.versionsOf('a', 'io.x/a'))).claims
      await sync(store, 'a', changed([entry('io.x/a', '1.0.0', { hash: '1', claims })]))
      expect(await claimsNow()).toEqual(claims)
      await sync(store, 'a', changed([entry('io.x/a', '1.0.0', { hash: '2' })]))
      expect(await claimsNow()).toEqual(claims)
      await sync(store, 'a', changed([entry('io.x/a', '1.0.0', { hash: '3', claims: null })]))
      expect(await claimsNow()).toBeUndefined()
    })

    it('of a failed attempt keeps everything of the last success, and counts', async () => {
      const store = await open()
      await sync(store, 'a', { kind: 'failed', nextInMs: 60_000, message: 'no network' })
      expect((await sourceOf(store, 'a')).sync).toEqual({
        phase: 'failed',
        attemptCount: 1,
        lastAttempt: expect.any(String),
        serverCount: 0,
        message: 'no network',
        problems: [],
        problemCount: 0,
      })
      await sync(store, 'a', changed([entry('io.x/a')], { state: { etag: '"1"' } }))
      const before = await contents(store)
      for (let n = 1; n <= 3; n++) {
        expect(await sync(store, 'a', { kind: 'failed', nextInMs: 60_000, message: `failure ${n}` })).toEqual({
          revision: 1,
          serverCount: 1,
        })
        const { sync: status } = await sourceOf(store, 'a')
        expect(status).toEqual({
          ...before.sources[0]?.sync,
          phase: 'failed',
          attemptCount: n,
          message: `failure ${n}`,
          lastAttempt: expect.any(String),
        })
      }
      expect((await rowsAfter(store)).length).toBe(1)
      const leased = await lease(store, 'a')
      expect(leased).toMatchObject({ state: { etag: '"1"' }, sync: { phase: 'failed', attemptCount: 3, hash: 'hash' } })
      await store.finishSync(leased.lease, unchanged())
      expect((await sourceOf(store, 'a')).sync).toMatchObject({ phase: 'complete', attemptCount: 0, message: UNCHANGED_MESSAGE })
    })
  })
}
