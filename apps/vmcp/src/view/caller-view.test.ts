import { TestClock } from '@thv/kernel/clock'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import type { BackendLists } from '../aggregate/backend-lists.ts'
import type { Member } from '../members/member.ts'
import type { BuiltView } from './built-view.ts'
import { CallerView } from './caller-view.ts'
import { Pool } from './pool.ts'

describe('the lists of one caller', () => {
  it('are loaded a fifth of the time at most, however short the time for which the backend lets them be kept', async () => {
    const clock = new TestClock()
    let loads = 0
    const request = async () => {
      loads++
      await clock.sleep(1_000)
      return { tools: [], ttlMs: 1 }
    }
    const shared = { capabilities: { tools: {} }, connect: async () => {}, request }
    const { signal } = new AbortController()
    const member = { name: 'one', shared, signal, observed: (work: () => Promise<void>) => work() } as unknown as Member
    const view = new CallerView({
      ...{ party: 'ada', user: 'ada', clock, log: new CollectingLog(), members: () => [member], beforeLogin: () => undefined },
      ...{ lists: new Pool<BackendLists>(() => 1), views: new Pool<BuiltView>(() => 1), generation: () => 0 },
      ...{ build: () => ({}) as BuiltView, onChange: () => {} },
    })
    // Asked all the time, for a minute.
    for (let i = 0; i < 600; i++) {
      void view.refresh()
      await clock.advance(100)
    }
    expect(loads).toBeGreaterThanOrEqual(11)
    expect(loads).toBeLessThanOrEqual(14)
    view.close()
  })

  it('are loaded again when the backend is asked with other credentials, and the old ones stay until then', async () => {
    const clock = new TestClock()
    let [loads, revision] = [0, 0]
    const request = async () => {
      const name = `tool ${revision}`
      loads++
      await clock.sleep(1_000)
      return { tools: [{ name, inputSchema: {} }], ttlMs: 300_000 }
    }
    const shared = { capabilities: { tools: {} }, connect: async () => {}, request }
    const { signal } = new AbortController()
    const member = {
      ...{ name: 'one', shared, signal, observed: (work: () => Promise<void>) => work() },
      get revision() {
        return revision
      },
    } as unknown as Member
    let shown: readonly unknown[] = []
    const view = new CallerView({
      ...{ party: 'ada', user: 'ada', clock, log: new CollectingLog(), members: () => [member], beforeLogin: () => undefined },
      ...{ lists: new Pool<BackendLists>(() => 1), views: new Pool<BuiltView>(() => 1), generation: () => 0 },
      build: (own) => {
        shown = own.flatMap(({ tools }) => tools.map(({ name }) => name))
        return {} as BuiltView
      },
      onChange: () => {},
    })
    const serve = async () => {
      void view.refresh()
      await clock.advance(1_000)
    }
    await serve()
    await serve()
    expect([loads, shown]).toEqual([1, ['tool 0']])
    expect(view.freshForMs).toBeGreaterThan(0)
    revision++
    expect([view.freshForMs, shown]).toEqual([0, ['tool 0']])
    void view.refresh()
    // The credentials change once more while it is asked with those.
    await clock.advance(500)
    revision++
    await clock.advance(500)
    expect([loads, shown]).toEqual([2, ['tool 1']])
    await serve()
    await serve()
    expect([loads, shown]).toEqual([3, ['tool 2']])
    view.close()
  })
})
