import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { SessionStore } from '../session-store.ts'

export type ContractValue = { readonly n: number }

const MINUTE = 60_000
/** Long enough for a few steps of a busy machine. */
const SHORT = 3_000

/** The behavior that every session store has. `passed`: resolves when that much time has passed for the store. */
export function describeSessionStore(
  name: string,
  open: () => Promise<{ store: SessionStore<ContractValue>; passed(ms: number): Promise<void> }>,
) {
  describe(`${name}: a session store`, () => {
    const ref = () => ({ id: randomUUID(), owner: 'alice' })

    it('gives a session to its owner alone, with its version', async () => {
      const { store } = await open()
      const alice = ref()
      expect(await store.create({ ...alice, value: { n: 1 } }, MINUTE)).toBe('created')
      expect(await store.get(alice)).toEqual({ ...alice, value: { n: 1 }, version: 1 })
      const bob = { ...alice, owner: 'bob' }
      expect([await store.get(bob), await store.touch(bob), await store.delete(bob)]).toEqual([undefined, false, false])
      expect(await store.update(bob, { n: 9 }, 1)).toEqual({ outcome: 'missing' })
      expect(await store.create({ ...bob, value: { n: 2 } }, MINUTE)).toBe('exists')
      expect(await store.get(alice)).toMatchObject({ value: { n: 1 } })
    })

    it('updates what was read, and shows the current one otherwise', async () => {
      const { store } = await open()
      const alice = ref()
      await store.create({ ...alice, value: { n: 1 } }, MINUTE)
      expect(await store.update(alice, { n: 2 }, 1)).toEqual({ outcome: 'updated', session: { ...alice, value: { n: 2 }, version: 2 } })
      expect(await store.update(alice, { n: 3 }, 1)).toEqual({ outcome: 'conflict', session: { ...alice, value: { n: 2 }, version: 2 } })
      expect(await store.get(alice)).toMatchObject({ value: { n: 2 }, version: 2 })
    })

    it('lets one of many concurrent updates win', async () => {
      const { store } = await open()
      const alice = ref()
      await store.create({ ...alice, value: { n: 0 } }, MINUTE)
      const outcomes = await Promise.all(Array.from({ length: 20 }, (_, n) => store.update(alice, { n }, 1)))
      expect(outcomes.filter(({ outcome }) => outcome === 'updated')).toHaveLength(1)
    })

    it('forgets a deleted session', async () => {
      const { store } = await open()
      const alice = ref()
      await store.create({ ...alice, value: { n: 1 } }, MINUTE)
      expect([await store.delete(alice), await store.delete(alice)]).toEqual([true, false])
      expect([await store.get(alice), await store.touch(alice)]).toEqual([undefined, false])
      expect(await store.update(alice, { n: 2 }, 1)).toEqual({ outcome: 'missing' })
      expect(await store.create({ ...alice, value: { n: 3 } }, MINUTE)).toBe('created')
    })

    it('ends a session that is not used, and counts it no longer', async () => {
      const { store, passed } = await open()
      const alice = ref()
      await store.create({ ...alice, value: { n: 1 } }, SHORT)
      expect(await store.size()).toBe(1)
      await passed(SHORT)
      expect([await store.get(alice), await store.touch(alice), await store.size()]).toEqual([undefined, false, 0])
      expect(await store.update(alice, { n: 2 }, 1)).toEqual({ outcome: 'missing' })
      expect(await store.create({ ...alice, value: { n: 2 } }, MINUTE)).toBe('created')
    })

    it('takes another lifetime with a touch', async () => {
      const { store, passed } = await open()
      const alice = ref()
      await store.create({ ...alice, value: { n: 1 } }, SHORT)
      if (!(await store.touch(alice, MINUTE))) throw new Error('too slow for the first lifetime')
      await passed(SHORT)
      expect(await store.get(alice)).toMatchObject({ value: { n: 1 } })
      expect(await store.touch(alice, SHORT)).toBe(true)
      await passed(SHORT)
      expect(await store.get(alice)).toBeUndefined()
    })

    it('needs a lifetime', async () => {
      const { store } = await open()
      await expect(store.create({ ...ref(), value: { n: 1 } }, 0)).rejects.toThrow(RangeError)
    })
  })
}
