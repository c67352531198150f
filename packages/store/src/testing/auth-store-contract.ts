import { randomUUID } from 'node:crypto'
import { describe, it } from 'vitest'
import type { AuthStore } from '../auth/auth-store.ts'

const MINUTE = 60_000
/** Long enough for a few steps of a busy machine. The tests wait for it side by side. */
const SHORT = 5_000

/** The behavior that every store of an authorization server has. `passed`: resolves when that much time has passed for the store. */
export function describeAuthStore(name: string, open: () => Promise<{ store: AuthStore; passed(ms: number): Promise<void> }>) {
  describe.concurrent(`${name}: a store of an authorization server`, () => {
    it('keeps a record of one kind under its id until it expires', async ({ expect }) => {
      const { store, passed } = await open()
      const id = randomUUID()
      await store.put('code', id, { value: { a: [1, { b: null }] }, ttlMs: SHORT })
      expect(await store.get('code', id)).toEqual({ value: { a: [1, { b: null }] }, consumedAt: undefined })
      expect(await store.get('refresh', id)).toBeUndefined()
      await store.put('code', id, { value: { a: 2 }, ttlMs: SHORT })
      expect((await store.get('code', id))?.value).toEqual({ a: 2 })
      await passed(SHORT + 1)
      expect(await store.get('code', id)).toBeUndefined()
      expect(await store.consume('code', id, { graceMs: 0 })).toBe('missing')
    })

    it('removes a record', async ({ expect }) => {
      const { store } = await open()
      const id = randomUUID()
      await store.put('login', id, { value: {}, ttlMs: MINUTE })
      await store.remove('login', id)
      await store.remove('login', id)
      expect(await store.get('login', id)).toBeUndefined()
    })

    it('keeps the changes of all who update a record at once', async ({ expect }) => {
      const { store, passed } = await open()
      const [id, family] = [randomUUID(), randomUUID()]
      const add = (n: number) => store.update('login', id, { ttlMs: SHORT, family }, (value) => ({ all: [...listOf(value?.['all']), n] }))
      const numbers = Array.from({ length: 10 }, (_, n) => n)
      await Promise.all(numbers.map(add))
      expect(listOf((await store.get('login', id))?.value['all']).toSorted((a, b) => a - b)).toEqual(numbers)
      await store.update('login', id, { ttlMs: MINUTE, family }, () => undefined)
      await passed(SHORT + 1)
      expect(await store.get('login', id)).toBeUndefined()
      await add(1)
      expect((await store.get('login', id))?.value).toEqual({ all: [1] })
      await store.revokeFamily(family, MINUTE)
      await add(2)
      expect(await store.get('login', id)).toBeUndefined()
    })

    it('updates a record that was consumed or taken as it is put', async ({ expect }) => {
      const { store } = await open()
      const [consumed, taken] = [randomUUID(), randomUUID()]
      await store.put('refresh', consumed, { value: { n: 1 }, ttlMs: MINUTE })
      await store.consume('refresh', consumed, { graceMs: 0 })
      await store.update('refresh', consumed, { ttlMs: MINUTE }, (value) => ({ ...value, m: 2 }))
      expect(await store.get('refresh', consumed)).toEqual({ value: { n: 1, m: 2 }, consumedAt: expect.any(Number) })
      await store.put('pending', taken, { value: { n: 1 }, ttlMs: MINUTE })
      await store.take('pending', taken)
      await store.update('pending', taken, { ttlMs: MINUTE }, (value) => ({ ...value, m: 2 }))
      expect((await store.get('pending', taken))?.value).toEqual({ m: 2 })
    })

    it('gives a record to one of many who take it', async ({ expect }) => {
      const { store } = await open()
      const id = randomUUID()
      await store.put('pending', id, { value: { n: 1 }, ttlMs: MINUTE })
      const taken = await Promise.all(Array.from({ length: 20 }, () => store.take('pending', id)))
      expect(taken.filter((value) => value !== undefined)).toEqual([{ n: 1 }])
    })

    it('lets one of many be the first to consume, and keeps saying so after another put', async ({ expect }) => {
      const { store, passed } = await open()
      const id = randomUUID()
      await store.put('refresh', id, { value: { n: 1 }, ttlMs: 10 * MINUTE })
      const outcomes = await Promise.all(Array.from({ length: 50 }, () => store.consume('refresh', id, { graceMs: MINUTE })))
      expect(outcomes.toSorted()).toEqual([...Array.from({ length: 49 }, () => 'again'), 'first'])
      expect((await store.get('refresh', id))?.consumedAt).toEqual(expect.any(Number))
      await store.put('refresh', id, { value: { n: 2 }, ttlMs: 10 * MINUTE })
      expect(await store.consume('refresh', id, { graceMs: 0 })).toBe('reused')
      await passed(SHORT)
      expect(await store.consume('refresh', id, { graceMs: SHORT - 1 })).toBe('reused')
    })

    it('replaces a record by another one in one step, for one of many, and prolongs the records of the family', async ({ expect }) => {
      const { store, passed } = await open()
      const [family, from] = [randomUUID(), randomUUID()]
      await store.put('login', family, { value: { user: 1 }, ttlMs: SHORT, family })
      await store.put('code', from, { value: { n: 1 }, ttlMs: MINUTE, family })
      const replace = (id: string, graceMs: number) =>
        store.replace({
          from: { kind: 'code', id: from, graceMs, keptMs: SHORT },
          to: { kind: 'refresh', id, value: { id }, ttlMs: 10 * MINUTE, family },
          prolonged: ['login'],
        })
      const ids = Array.from({ length: 20 }, () => randomUUID())
      const outcomes = await Promise.all(ids.map((id) => replace(id, 0)))
      expect(outcomes.toSorted()).toEqual(['first', ...Array.from({ length: 19 }, () => 'reused')])
      const made = await Promise.all(ids.map((id) => store.get('refresh', id)))
      expect(made.map((record) => record !== undefined)).toEqual(outcomes.map((outcome) => outcome === 'first'))
      const second = randomUUID()
      expect(await replace(second, MINUTE)).toBe('again')
      expect((await store.get('refresh', second))?.value).toEqual({ id: second })
      await passed(SHORT + 1)
      expect(await store.get('code', from)).toBeUndefined()
      expect((await store.get('login', family))?.value).toEqual({ user: 1 })
      expect(await replace(randomUUID(), MINUTE)).toBe('missing')
    })

    it('replaces nothing for a family that is revoked', async ({ expect }) => {
      const { store } = await open()
      const [family, from, id] = [randomUUID(), randomUUID(), randomUUID()]
      await store.put('refresh', from, { value: {}, ttlMs: MINUTE })
      await store.revokeFamily(family, MINUTE)
      const to = { kind: 'refresh', id, value: {}, ttlMs: MINUTE, family } as const
      expect(await store.replace({ from: { kind: 'refresh', id: from, graceMs: MINUTE, keptMs: MINUTE }, to, prolonged: [] })).toBe(
        'missing',
      )
      expect(await store.get('refresh', id)).toBeUndefined()
      expect((await store.get('refresh', from))?.consumedAt).toBeUndefined()
    })

    it('adds an id once', async ({ expect }) => {
      const { store, passed } = await open()
      const id = randomUUID()
      const added = await Promise.all(Array.from({ length: 20 }, () => store.addOnce('assertion', id, SHORT)))
      expect(added.filter(Boolean)).toHaveLength(1)
      await passed(SHORT + 1)
      expect(await store.addOnce('assertion', id, SHORT)).toBe(true)
    })

    it('gives a lock to one of many, until it is released or over', async ({ expect }) => {
      const { store, passed } = await open()
      const name = randomUUID()
      const locks = await Promise.all(Array.from({ length: 20 }, () => store.lock(name, SHORT)))
      const [held, ...others] = locks.filter((lock) => lock !== undefined)
      expect(others).toEqual([])
      await passed(SHORT + 1)
      const next = await store.lock(name, MINUTE)
      expect(next).toBeDefined()
      await held?.[Symbol.asyncDispose]() // too late: it is another one's
      expect(await store.lock(name, MINUTE)).toBeUndefined()
      await next?.[Symbol.asyncDispose]()
      expect(await store.lock(name, MINUTE)).toBeDefined()
    })

    it('ends a family with all its records, those included that come later, and tells observers', async ({ expect }) => {
      const { store } = await open()
      const [family, other, late] = [randomUUID(), randomUUID(), randomUUID()]
      await store.put('grant', family, { value: {}, ttlMs: MINUTE, family })
      await store.put('refresh', family, { value: {}, ttlMs: MINUTE, family })
      await store.put('refresh', other, { value: {}, ttlMs: MINUTE, family: other })
      const seen: string[] = []
      using _observer = store.observeRevocations((revoked) => seen.push(revoked))
      await store.revokeFamily(family, MINUTE)
      await store.put('refresh', late, { value: {}, ttlMs: MINUTE, family })
      const found = await Promise.all([store.get('grant', family), store.get('refresh', family), store.get('refresh', late)])
      expect(found).toEqual([undefined, undefined, undefined])
      expect(await store.consume('refresh', family, { graceMs: MINUTE })).toBe('missing')
      expect(await store.get('refresh', other)).toBeDefined()
      expect([await store.isRevoked(family), await store.isRevoked(other)]).toEqual([true, false])
      expect(seen).toContain(family)
      expect(seen).not.toContain(other)
      const before: string[] = []
      using _later = store.observeRevocations((revoked) => before.push(revoked))
      await expect.poll(() => before, { timeout: 10_000 }).toContain(family)
    })
  })
}

function listOf(value: unknown): number[] {
  return Array.isArray(value) ? (value as number[]) : []
}
