import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { TestClock } from '@thv/kernel/clock'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { createMemorySessionStore, type MemorySessionStoreOptions } from './memory-session-store.ts'
import type { SessionStore } from './session-store.ts'

type Value = { readonly n: number }

const opened: SessionStore<Value>[] = []
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
})

function open(options: MemorySessionStoreOptions = {}): { store: SessionStore<Value>; clock: TestClock } {
  const clock = new TestClock()
  const store = createMemorySessionStore<Value>({ clock, ...options })
  opened.push(store)
  return { store, clock }
}

/** Sessions that were reported as ended, with the reason. */
function endsOf(store: SessionStore<Value>): (readonly [string, string])[] {
  const ended: (readonly [string, string])[] = []
  store.onEnded(({ id }, why) => ended.push([id, why]))
  return ended
}

const alice = { id: 's1', owner: 'alice' }
const bob = { id: 's1', owner: 'bob' }
const minute = 60_000

it('prolongs a session at once, without a promise, as `touch` does', async () => {
  const { store, clock } = open()
  await store.create({ ...alice, value: { n: 1 } }, minute)
  await clock.advance(minute - 1)
  expect([store.touchNow?.(alice), store.touchNow?.(bob)]).toEqual([true, false])
  await clock.advance(minute - 1)
  expect([store.touchNow?.(alice, 2 * minute), await store.touch(alice)]).toEqual([true, true])
  await clock.advance(2 * minute - 1)
  expect(await store.get(alice)).toBeDefined()
  await clock.advance(1)
  expect(store.touchNow?.(alice)).toBe(false)
})

describe('the end of a session', () => {
  it('is reported once when it expires, with its data, and not when it was deleted', async () => {
    const { store, clock } = open()
    const ended: unknown[] = []
    store.onEnded((session, why) => ended.push([session, why]))
    await store.create({ ...alice, value: { n: 1 } }, minute)
    await store.create({ id: 's2', owner: 'alice', value: { n: 2 } }, minute)
    await store.update(alice, { n: 7 }, 1)
    await store.delete({ id: 's2', owner: 'alice' })
    await clock.advance(2 * minute)
    expect(ended).toEqual([[{ ...alice, value: { n: 7 }, version: 2 }, 'expired']])
    await clock.advance(2 * minute)
    expect(ended).toHaveLength(1)
  })

  it('is reported once too when its id is used again before the memory was released', async () => {
    const { store, clock } = open()
    const ended = endsOf(store)
    await store.create({ ...alice, value: { n: 1 } }, 1_500)
    await clock.advance(1_500)
    expect(await store.create({ ...bob, value: { n: 2 } }, minute)).toBe('created')
    expect(ended).toEqual([['s1', 'expired']])
    await clock.advance(minute / 2)
    expect(ended).toHaveLength(1)
  })

  it('is not reported once the store is closed', async () => {
    const { store, clock } = open()
    const ended = endsOf(store)
    await store.create({ ...alice, value: { n: 1 } }, minute)
    await store.close()
    await clock.advance(2 * minute)
    expect(ended).toEqual([])
  })
})

describe('memory session store', () => {
  it('keeps a session with its version', async () => {
    const { store } = open()
    expect(await store.create({ ...alice, value: { n: 1 } }, minute)).toBe('created')
    expect(await store.get(alice)).toEqual({ ...alice, value: { n: 1 }, version: 1 })
    expect(await store.update(alice, { n: 2 }, 1)).toEqual({ outcome: 'updated', session: { ...alice, value: { n: 2 }, version: 2 } })
    expect(await store.get(alice)).toEqual({ ...alice, value: { n: 2 }, version: 2 })
    expect(await store.size()).toBe(1)
  })

  it('lets one of two writers win, and shows the other what is there', async () => {
    const { store } = open()
    await store.create({ ...alice, value: { n: 1 } }, minute)
    const [first, second] = await Promise.all([store.update(alice, { n: 2 }, 1), store.update(alice, { n: 3 }, 1)])
    expect(first.outcome).toBe('updated')
    expect(second).toEqual({ outcome: 'conflict', session: { ...alice, value: { n: 2 }, version: 2 } })
  })

  it('does not exist for another owner', async () => {
    const { store } = open()
    await store.create({ ...alice, value: { n: 1 } }, minute)
    expect(await store.get(bob)).toBeUndefined()
    expect(await store.touch(bob)).toBe(false)
    expect(await store.update(bob, { n: 9 }, 1)).toEqual({ outcome: 'missing' })
    expect(await store.delete(bob)).toBe(false)
    expect(await store.create({ ...bob, value: { n: 9 } }, minute)).toBe('exists')
    expect(await store.get(alice)).toMatchObject({ value: { n: 1 }, version: 1 })
  })

  it('is gone after its lifetime, to the millisecond, unless it was used', async () => {
    const { store, clock } = open()
    await store.create({ ...alice, value: { n: 1 } }, minute)
    await clock.advance(minute - 1)
    expect(await store.touch(alice)).toBe(true)
    await clock.advance(minute - 1)
    expect(await store.get(alice)).toBeDefined() // looking does not prolong
    await clock.advance(1)
    expect(await store.get(alice)).toBeUndefined()
    expect(await store.touch(alice)).toBe(false)
    expect(await store.size()).toBe(0)
    expect(await store.create({ ...bob, value: { n: 2 } }, minute)).toBe('created')
  })

  it('has the lifetime that it was last given', async () => {
    const { store, clock } = open()
    await store.create({ ...alice, value: { n: 1 } }, minute)
    await clock.advance(minute - 1)
    expect(await store.touch(alice, 10 * minute)).toBe(true)
    await clock.advance(10 * minute - 1)
    expect(await store.get(alice)).toBeDefined()
    await clock.advance(1)
    expect(await store.get(alice)).toBeUndefined()
  })

  it('does not come back after it was deleted', async () => {
    const { store } = open()
    await store.create({ ...alice, value: { n: 1 } }, minute)
    expect(await store.delete(alice)).toBe(true)
    expect(await store.delete(alice)).toBe(false)
    expect(await store.get(alice)).toBeUndefined()
    expect(await store.update(alice, { n: 2 }, 1)).toEqual({ outcome: 'missing' })
  })

  it('does not mind a wall clock that jumps', async () => {
    const { store, clock } = open()
    await store.create({ ...alice, value: { n: 1 } }, minute)
    clock.jump(10 * minute)
    expect(await store.get(alice)).toBeDefined()
  })

  it('has one timer, and none when it is empty', async () => {
    const { store, clock } = open()
    for (let i = 0; i < 100; i++) await store.create({ id: `s${i}`, owner: 'a', value: { n: i } }, minute)
    expect(clock.pending).toBe(1)
    await clock.advance(2 * minute)
    expect(clock.pending).toBe(0)
    await store.create({ ...alice, value: { n: 1 } }, minute)
    expect(clock.pending).toBe(1)
    await store.delete(alice)
    expect(clock.pending).toBe(0)
  })

  it('watches a session that was used until it is gone', async () => {
    const { store, clock } = open()
    await store.create({ ...alice, value: { n: 1 } }, minute)
    for (let i = 0; i < 5; i++) {
      await clock.advance(minute / 2)
      await store.touch(alice)
    }
    await clock.advance(minute - 1)
    expect(clock.pending).toBe(1)
    await clock.advance(minute)
    expect(clock.pending).toBe(0)
  })

  it('refuses a lifetime that is none', async () => {
    const { store } = open()
    await expect(store.create({ ...alice, value: { n: 1 } }, 0)).rejects.toThrow(RangeError)
    await expect(store.create({ ...alice, value: { n: 1 } }, Number.NaN)).rejects.toThrow(RangeError)
    expect(() => open({ maxSessions: 0 })).toThrow(RangeError)
  })
})

describe('a full store', () => {
  const ref = (id: string) => ({ id, owner: 'a' })
  const make = (store: SessionStore<Value>, id: string, ttlMs = 60 * minute) => store.create({ ...ref(id), value: { n: 0 } }, ttlMs)

  it('refuses a new session while all are in use', async () => {
    const { store } = open({ maxSessions: 2 })
    await make(store, '1')
    await make(store, '2')
    expect(await store.create({ ...ref('3'), value: { n: 0 } }, minute, () => true)).toBe('full')
    expect(await store.size()).toBe(2)
  })

  it('gives the place of the one that was idle for longest', async () => {
    const { store, clock } = open({ maxSessions: 3 })
    const ended = endsOf(store)
    for (const id of ['1', '2', '3']) await make(store, id)
    await clock.advance(1)
    await store.touch(ref('1'))
    expect(await store.create({ ...ref('4'), value: { n: 0 } }, minute, (id) => id === '2')).toBe('created')
    expect(ended).toEqual([['3', 'evicted']])
    expect(await store.get(ref('1'))).toBeDefined()
  })

  it('takes it from the party that holds the most, and from no other', async () => {
    const { store, clock } = open({ maxSessions: 4 })
    const ended = endsOf(store)
    const of = (party: string, id: string, isBusy?: (id: string) => boolean) =>
      store.create({ ...ref(id), party, value: { n: 0 } }, minute, isBusy)
    await of('small', 's')
    for (const id of ['l1', 'l2', 'l3']) await of('large', id)
    await clock.advance(1)
    expect(await of('new', 'n1')).toBe('created')
    expect(ended).toEqual([['l1', 'evicted']])
    expect(await of('new', 'n2', (id) => id.startsWith('l'))).toBe('full')
    expect(await store.get(ref('s'))).toBeDefined()
  })

  it('does not count what has expired, nor call it evicted', async () => {
    const { store, clock } = open({ maxSessions: 1 })
    const ended = endsOf(store)
    await make(store, '1', 1_500)
    await clock.advance(1_500)
    expect(await make(store, '2')).toBe('created')
    expect(ended).toEqual([['1', 'expired']])
  })

  it('still answers "exists" for what it has', async () => {
    const { store } = open({ maxSessions: 1 })
    await make(store, '1')
    expect(await make(store, '1')).toBe('exists')
  })
})

describe('memory', () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  const used = () => {
    collect()
    return getHeapStatistics().used_heap_size
  }

  it('costs less than 1 KB a session beside its value', async () => {
    const { store } = open({ maxSessions: 100_000 })
    const count = 20_000
    const value = { n: 1 }
    const before = used()
    for (let i = 0; i < count; i++)
      await store.create({ id: `3f2b8c1e-9d4a-4f6b-8e2d-${String(i).padStart(12, '0')}`, owner: 'alice', value }, 120 * minute)
    expect((used() - before) / count).toBeLessThan(1_024)
    expect(await store.size()).toBe(count)
  })

  it('does not grow with sessions that come and go', async () => {
    const { store } = open()
    const cycle = async (rounds: number) => {
      for (let i = 0; i < rounds; i++) {
        await store.create({ id: `s${i}`, owner: 'alice', value: { n: i } }, 120 * minute)
        await store.delete({ id: `s${i}`, owner: 'alice' })
      }
    }
    await cycle(1_000)
    const before = used()
    await cycle(20_000)
    expect(used() - before).toBeLessThan(1_000_000)
  })
})

/** A session store without any thought of cost, as the model. */
class Model {
  readonly sessions = new Map<string, { owner: string; n: number; version: number; ttl: number; usedAt: number }>()
  now = 0
  live(id: string, owner: string) {
    const found = this.sessions.get(id)
    return found && found.owner === owner && this.now < found.usedAt + found.ttl ? found : undefined
  }
  taken(id: string): boolean {
    const found = this.sessions.get(id)
    return found !== undefined && this.now < found.usedAt + found.ttl
  }
  get size(): number {
    return [...this.sessions.keys()].filter((id) => this.taken(id)).length
  }
}

const ids = fc.constantFrom('a', 'b', 'c', 'd')
const owners = fc.constantFrom('alice', 'bob')
const step = fc.oneof(
  fc.record({
    op: fc.constant('create' as const),
    id: ids,
    owner: owners,
    n: fc.nat(9),
    ttl: fc.constantFrom(1, 900, 4_000, 4_001, 60_000),
  }),
  fc.record({ op: fc.constantFrom('get' as const, 'touch' as const, 'delete' as const), id: ids, owner: owners }),
  fc.record({ op: fc.constant('update' as const), id: ids, owner: owners, n: fc.nat(9), version: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ op: fc.constant('advance' as const), ms: fc.constantFrom(1, 899, 1_000, 3_999, 30_000) }),
)

describe('against a model', () => {
  it('behaves the same, whatever is done in whatever order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const clock = new TestClock()
        const store = createMemorySessionStore<Value>({ clock })
        const model = new Model()
        for (const one of steps) {
          if (one.op === 'advance') {
            await clock.advance(one.ms)
            model.now += one.ms
            continue
          }
          const ref = { id: one.id, owner: one.owner }
          const found = model.live(one.id, one.owner)
          if (one.op === 'create') {
            const expected = model.taken(one.id) ? 'exists' : 'created'
            expect(await store.create({ ...ref, value: { n: one.n } }, one.ttl)).toBe(expected)
            if (expected === 'created')
              model.sessions.set(one.id, { owner: one.owner, n: one.n, version: 1, ttl: one.ttl, usedAt: model.now })
          } else if (one.op === 'update') {
            const expected = found === undefined ? 'missing' : found.version === one.version ? 'updated' : 'conflict'
            expect((await store.update(ref, { n: one.n }, one.version)).outcome).toBe(expected)
            if (found && expected === 'updated') Object.assign(found, { n: one.n, version: found.version + 1, usedAt: model.now })
          } else if (one.op === 'get') {
            expect(await store.get(ref)).toEqual(found && { ...ref, value: { n: found.n }, version: found.version })
          } else if (one.op === 'touch') {
            expect(await store.touch(ref)).toBe(found !== undefined)
            if (found) found.usedAt = model.now
          } else {
            expect(await store.delete(ref)).toBe(found !== undefined)
            if (found) model.sessions.delete(one.id)
          }
          expect(await store.size()).toBe(model.size)
        }
        await clock.advance(200_000)
        expect(await store.size()).toBe(0)
        expect(clock.pending).toBe(0)
      }),
      { numRuns: 200 },
    )
  })

  it('is never over its bound, and full only when it is', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(20), fc.nat(3_000)), { maxLength: 60 }), async (steps) => {
        const clock = new TestClock()
        const busyMs = 4_000
        const store = createMemorySessionStore<Value>({ clock, maxSessions: 3 })
        const usedAt = new Map<string, number>()
        for (const [id, ms] of steps) {
          await clock.advance(ms)
          const ref = { id: `s${id}`, owner: 'a' }
          if (await store.touch(ref)) {
            usedAt.set(ref.id, clock.monotonic())
            continue
          }
          const alive = [...usedAt.values()].filter((at) => clock.monotonic() - at < 10_000)
          const busy = alive.filter((at) => clock.monotonic() - at < busyMs)
          const isBusy = (other: string) => clock.monotonic() - (usedAt.get(other) ?? -Infinity) < busyMs
          const outcome = await store.create({ ...ref, value: { n: 0 } }, 10_000, isBusy)
          expect(outcome).toBe(busy.length >= 3 ? 'full' : 'created')
          if (outcome === 'created') {
            if (alive.length >= 3)
              usedAt.delete([...usedAt].filter(([, at]) => alive.includes(at)).sort((a, b) => a[1] - b[1])[0]?.[0] ?? '')
            usedAt.set(ref.id, clock.monotonic())
          }
          expect(await store.size()).toBeLessThanOrEqual(3)
        }
        await store.close()
      }),
      { numRuns: 100 },
    )
  })
})
