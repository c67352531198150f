import { describe, expect, it } from 'vitest'
import { until } from '../../../testing/until.ts'
import { changed, entry, file, lease, managed, refused, sourceOf, unchanged } from './contract-tools.ts'
import type { OpenStore } from './store-contract.ts'

export function describeLeases(use: OpenStore): void {
  describe('leases', () => {
    it('are given for what is due: new sources at once, managed ones never', async () => {
      const { store } = await use()
      await store.putSource(managed('own'))
      expect(await store.nextDueInMs()).toBeUndefined()
      for (const name of ['b', 'a', 'c']) await store.putSource(file(name))
      expect(await store.nextDueInMs()).toBe(0)
      const claimed = await store.claimDue({ owner: 'one', leaseMs: 60_000, limit: 10 })
      expect(claimed.map((one) => one.lease.source).sort()).toEqual(['a', 'b', 'c'])
      expect(claimed.find((one) => one.lease.source === 'a')).toEqual({
        lease: { source: 'a', owner: 'one', token: expect.any(String) },
        config: file('a'),
        sync: { phase: 'pending', attemptCount: 0, serverCount: 0, message: '', problems: [], problemCount: 0 },
        state: undefined,
        manual: false,
      })
      expect(new Set(claimed.map((one) => one.lease.token)).size).toBe(3)
      expect((await sourceOf(store, 'a')).sync.phase).toBe('syncing')
      expect(await store.claimDue({ owner: 'one', leaseMs: 60_000, limit: 10 })).toEqual([])
      expect(await store.claimDue({ owner: 'two', leaseMs: 60_000, limit: 10 })).toEqual([])
      const next = await store.nextDueInMs()
      expect(next).toBeGreaterThan(0)
      expect(next).toBeLessThanOrEqual(60_000)
    })

    it('are limited in number, what has waited longest first', async () => {
      const { store } = await use()
      const names = ['d', 'b', 'c', 'a']
      for (const name of names) {
        await store.putSource(file(name))
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      const order: string[] = []
      for (let turn = 0; turn < 2; turn++) {
        const claimed = await store.claimDue({ owner: 'one', leaseMs: 60_000, limit: 2 })
        expect(claimed.length).toBe(2)
        order.push(...claimed.map((one) => one.lease.source))
      }
      expect(order).toEqual(names)
      expect(await store.claimDue({ owner: 'one', leaseMs: 60_000, limit: 0 })).toEqual([])
    })

    it('end with the attempt; then the source is due after its time', async () => {
      const { store } = await use()
      await store.putSource(file('a'))
      const { lease: held } = await lease(store, 'a')
      await store.finishSync(held, unchanged(50_000))
      const next = await store.nextDueInMs()
      expect(next).toBeGreaterThan(30_000)
      expect(next).toBeLessThanOrEqual(50_000)
      expect(await store.claimDue({ owner: 'one', leaseMs: 1_000, limit: 1 })).toEqual([])
      expect(await store.renewLease(held, 60_000)).toBe(false)
      await refused(store, 'lease_lost', () => store.finishSync(held, changed([entry('io.x/a')])))
      await store.finishSync((await lease(store, 'a')).lease, unchanged(30))
      await until(async () => (await store.claimDue({ owner: 'one', leaseMs: 60_000, limit: 1 })).length === 1)
    })

    it('are over after their time: somebody else takes the source, and the first one can write nothing', async () => {
      const { store, second } = await use()
      const other = second ? await second() : store
      await store.putSource(file('a'))
      const [first] = await store.claimDue({ owner: 'one', leaseMs: 100, limit: 1 })
      if (!first) throw new Error('nothing was due')
      let taken: typeof first | undefined
      await until(async () => {
        ;[taken] = await other.claimDue({ owner: 'two', leaseMs: 60_000, limit: 1 })
        return taken !== undefined
      })
      expect(taken?.lease).toMatchObject({ source: 'a', owner: 'two' })
      expect(taken?.lease.token).not.toBe(first.lease.token)
      expect(taken?.sync.phase).toBe('pending')
      expect(await store.renewLease(first.lease, 60_000)).toBe(false)
      await refused(store, 'lease_lost', () => store.finishSync(first.lease, changed([entry('io.x/a')])))
      await refused(store, 'lease_lost', () => store.finishSync(first.lease, { kind: 'failed', nextInMs: 1, message: 'x' }))
      await refused(store, 'lease_lost', () => store.finishSync(first.lease, unchanged()))
      if (taken) expect(await other.finishSync(taken.lease, changed([entry('io.x/a')]))).toEqual({ revision: 1, serverCount: 1 })
    })

    it('last as long as they are renewed', async () => {
      const { store } = await use()
      await store.putSource(file('a'))
      const [held] = await store.claimDue({ owner: 'one', leaseMs: 50, limit: 1 })
      if (!held) throw new Error('nothing was due')
      expect(await store.renewLease(held.lease, 60_000)).toBe(true)
      await new Promise((resolve) => setTimeout(resolve, 100))
      expect(await store.claimDue({ owner: 'two', leaseMs: 60_000, limit: 1 })).toEqual([])
      expect((await sourceOf(store, 'a')).sync.phase).toBe('syncing')
    })

    it('that have expired but were not taken are still good', async () => {
      const { store } = await use()
      await store.putSource(file('a'))
      const [held] = await store.claimDue({ owner: 'one', leaseMs: 20, limit: 1 })
      if (!held) throw new Error('nothing was due')
      await until(async () => (await sourceOf(store, 'a')).sync.phase === 'pending')
      expect(await store.nextDueInMs()).toBe(0)
      expect(await store.renewLease(held.lease, 20)).toBe(true)
      await until(async () => (await sourceOf(store, 'a')).sync.phase === 'pending')
      await store.finishSync(held.lease, changed([entry('io.x/a')]))
      expect((await sourceOf(store, 'a')).sync).toMatchObject({ phase: 'complete', serverCount: 1 })
    })

    it('belong to who has the token', async () => {
      const { store } = await use()
      await store.putSource(file('a'))
      const { lease: held } = await lease(store, 'a')
      for (const wrong of [
        { ...held, token: 'another' },
        { ...held, source: 'b' },
      ]) {
        expect(await store.renewLease(wrong, 60_000)).toBe(false)
        await refused(store, 'lease_lost', () => store.finishSync(wrong, changed([])))
      }
      expect(await store.renewLease(held, 60_000)).toBe(true)
      await store.deleteSource('a')
      expect(await store.renewLease(held, 60_000)).toBe(false)
      await refused(store, 'lease_lost', () => store.finishSync(held, changed([])))
      await store.putSource(file('a'))
      expect(await store.renewLease(held, 60_000)).toBe(false)
    })

    it('are never given twice, however many ask at once', async () => {
      const { store, second } = await use()
      const stores = [store, ...(second ? [await second()] : [])]
      for (let n = 0; n < 20; n++) await store.putSource(file(`s${n}`))
      const claims = await Promise.all(
        Array.from({ length: 12 }, (_, n) => (stores[n % stores.length] ?? store).claimDue({ owner: `o${n}`, leaseMs: 60_000, limit: 3 })),
      )
      const given = claims.flat().map((one) => one.lease.source)
      expect(new Set(given).size).toBe(given.length)
      for (;;) {
        const more = await store.claimDue({ owner: 'last', leaseMs: 60_000, limit: 3 })
        if (more.length === 0) break
        given.push(...more.map((one) => one.lease.source))
      }
      expect(new Set(given).size).toBe(20)
      expect(given.length).toBe(20)
    })
  })

  describe('requestSync', () => {
    it('makes a source due, once', async () => {
      const { store } = await use()
      for (const name of ['a', 'b']) {
        await store.putSource(file(name))
        await store.finishSync((await lease(store, name)).lease, unchanged())
      }
      expect(await store.claimDue({ owner: 'one', leaseMs: 60_000, limit: 5 })).toEqual([])
      await store.requestSync('b')
      await store.requestSync('b')
      expect(await store.nextDueInMs()).toBe(0)
      const claimed = await store.claimDue({ owner: 'one', leaseMs: 60_000, limit: 5 })
      expect(claimed.map((one) => [one.lease.source, one.manual])).toEqual([['b', true]])
      for (const one of claimed) await store.finishSync(one.lease, unchanged())
      expect(await store.claimDue({ owner: 'one', leaseMs: 60_000, limit: 5 })).toEqual([])
    })

    it('during an attempt makes it due again after that', async () => {
      const { store } = await use()
      await store.putSource(file('a'))
      const { lease: held } = await lease(store, 'a')
      await store.requestSync('a')
      expect(await store.claimDue({ owner: 'two', leaseMs: 60_000, limit: 5 })).toEqual([])
      expect(await store.renewLease(held, 60_000)).toBe(true)
      await store.finishSync(held, changed([entry('io.x/a')]))
      const [again] = await store.claimDue({ owner: 'two', leaseMs: 60_000, limit: 5 })
      expect(again).toMatchObject({ manual: true })
      if (again) await store.finishSync(again.lease, unchanged())
      expect(await store.claimDue({ owner: 'two', leaseMs: 60_000, limit: 5 })).toEqual([])
    })

    it('refuses what cannot be synced', async () => {
      const { store } = await use()
      await store.putSource(managed('own'))
      await refused(store, 'not_found', () => store.requestSync('none'))
      await refused(store, 'bad_request', () => store.requestSync('own'))
    })
  })
}
