import { TestClock } from '@thv/kernel/clock'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import type { Member } from './member.ts'
import { MemberLists } from './member-lists.ts'

/** A backend that announces changes but refuses the first attempts to listen. */
function backend(refusals: number) {
  const attempts: number[] = []
  const clock = new TestClock()
  const listen = async () => {
    attempts.push(clock.monotonic())
    if (attempts.length <= refusals) throw new Error('not now')
    return { honoured: {}, done: new Promise<void>(() => {}), close: async () => {} }
  }
  const shared = { capabilities: { tools: { listChanged: true } }, connect: async () => {}, request: async () => ({ tools: [] }), listen }
  const member = { name: 'one', shared, observed: (work: () => Promise<void>) => work() } as unknown as Member
  return { attempts, clock, lists: new MemberLists({ member, clock, log: new CollectingLog(), onChange: () => {} }) }
}

describe('the lists of a backend', () => {
  it('are listened to again after a refusal, further and further apart, until it works', async () => {
    const { attempts, clock, lists } = backend(3)
    void lists.run()
    await lists.attempted
    for (let i = 0; i < 40; i++) await clock.advance(500)
    expect(attempts).toHaveLength(4)
    const gaps = attempts.slice(1).map((at, i) => at - (attempts[i] ?? 0))
    expect(gaps[0]).toBeGreaterThanOrEqual(500)
    expect(gaps[1]).toBeGreaterThanOrEqual(1_000)
    expect(gaps[2]).toBeGreaterThanOrEqual(2_000)
    await lists.close()
  })

  it('are loaded again when the time is over for which the backend lets them be kept, else after half a minute', async () => {
    for (const [ttlMs, within] of [
      [undefined, 30_000],
      [0, 30_000],
      [4_000, 4_000],
    ] as const) {
      const clock = new TestClock()
      let loads = 0
      const request = async () => {
        loads++
        return { tools: [], ttlMs }
      }
      const shared = { capabilities: { tools: {} }, connect: async () => {}, request }
      const member = { name: 'one', shared, observed: (work: () => Promise<void>) => work() } as unknown as Member
      const lists = new MemberLists({ member, clock, log: new CollectingLog(), onChange: () => {} })
      void lists.run()
      await lists.attempted
      await clock.advance(0)
      expect(lists.freshForMs).toBeLessThanOrEqual(within)
      await clock.advance(within * 0.89)
      expect(loads).toBe(1)
      await clock.advance(within * 0.11)
      expect(loads).toBe(2)
      await lists.close()
    }
  })

  it('of a backend that announces changes without end are loaded a fifth of the time', async () => {
    const clock = new TestClock()
    let loads = 0
    let announce = () => {}
    const listen = async (_: unknown, { onNotification }: { onNotification: (notification: object) => void }) => {
      announce = () => onNotification({ method: 'notifications/tools/list_changed' })
      return { honoured: {}, done: new Promise<void>(() => {}), close: async () => {} }
    }
    const request = async () => {
      loads++
      await clock.sleep(500)
      return { tools: [] }
    }
    const shared = { capabilities: { tools: { listChanged: true } }, connect: async () => {}, request, listen }
    const member = { name: 'one', shared, observed: (work: () => Promise<void>) => work() } as unknown as Member
    const lists = new MemberLists({ member, clock, log: new CollectingLog(), onChange: () => {} })
    void lists.run()
    for (let i = 0; i < 1_000; i++) {
      announce()
      await clock.advance(50)
    }
    // 50 s, in which a load and the rest after it take 2.5 s.
    expect(loads).toBeGreaterThanOrEqual(15)
    expect(loads).toBeLessThanOrEqual(22)
    await lists.close()
  })

  it('of a backend that lets them be kept for a moment only are loaded a fifth of the time, however long that takes', async () => {
    for (const [tookMs, most] of [
      [100, 300],
      [1_000, 62],
      [10_000, 8],
    ] as const) {
      const clock = new TestClock()
      let loads = 0
      const request = async () => {
        loads++
        await clock.sleep(tookMs)
        return { tools: [], ttlMs: 1 }
      }
      const shared = { capabilities: { tools: {} }, connect: async () => {}, request }
      const member = { name: 'one', shared, observed: (work: () => Promise<void>) => work() } as unknown as Member
      const lists = new MemberLists({ member, clock, log: new CollectingLog(), onChange: () => {} })
      void lists.run()
      for (let i = 0; i < 3_000; i++) await clock.advance(100)
      // Five minutes. The first load does not count, because it connects.
      expect(loads).toBeLessThanOrEqual(most)
      expect(loads).toBeGreaterThanOrEqual(most * 0.8)
      await lists.close()
    }
  })

  it('follow an announcement at once when the last listing, however slow, is long over, and are not reported while they are the same', async () => {
    const clock = new TestClock()
    let announce = () => {}
    let [loads, changes, tools] = [0, 0, [{ name: 'one' }]]
    const listen = async (_: unknown, { onNotification }: { onNotification: (notification: object) => void }) => {
      announce = () => onNotification({ method: 'notifications/tools/list_changed' })
      return { honoured: {}, done: new Promise<void>(() => {}), close: async () => {} }
    }
    const request = async () => {
      loads++
      await clock.sleep(1_000)
      return { tools: tools.map((tool) => ({ ...tool })) }
    }
    const shared = { capabilities: { tools: { listChanged: true } }, connect: async () => {}, request, listen }
    const member = { name: 'one', shared, observed: (work: () => Promise<void>) => work() } as unknown as Member
    const lists = new MemberLists({ member, clock, log: new CollectingLog(), onChange: () => void changes++ })
    void lists.run()
    for (let i = 0; i < 40; i++) await clock.advance(500)
    expect({ loads, changes }).toEqual({ loads: 2, changes: 1 }) // the second because it listens now
    tools = [...tools, { name: 'two' }]
    announce()
    await clock.advance(50)
    expect(loads).toBe(3)
    await clock.advance(1_000)
    expect(changes).toBe(2)
    expect(lists.lists?.tools).toHaveLength(2)
    // Now it rests.
    announce()
    await clock.advance(3_000)
    expect(loads).toBe(3)
    await clock.advance(1_000)
    expect(loads).toBe(4)
    await lists.close()
  })

  it('of a backend that flaps stay, and are asked for seldom and not in step with those of another', async () => {
    const clock = new TestClock()
    const start = () => {
      const attempts: number[] = []
      const request = async () => {
        attempts.push(clock.monotonic())
        // Up for seven seconds, down for five.
        if (clock.monotonic() % 12_000 >= 7_000) throw new Error('down')
        return { tools: [{ name: 'work' }] }
      }
      const shared = { capabilities: { tools: {} }, connect: async () => {}, request }
      const member = { name: 'one', shared, observed: (work: () => Promise<void>) => work() } as unknown as Member
      const lists = new MemberLists({ member, clock, log: new CollectingLog(), onChange: () => {} })
      void lists.run()
      return { attempts, lists }
    }
    const [one, two] = [start(), start()]
    await one.lists.attempted
    for (let i = 0; i < 1_200; i++) {
      await clock.advance(500)
      expect(one.lists.lists?.tools).toHaveLength(1)
    }
    // Ten minutes. Every half a minute while it is up, and a few attempts that come further and further apart while it is down.
    for (const { attempts } of [one, two]) {
      expect(attempts.length).toBeGreaterThan(15)
      expect(attempts.length).toBeLessThan(150)
    }
    expect(one.attempts.filter((at) => at > 0 && two.attempts.includes(at)).length).toBeLessThan(one.attempts.length / 2)
    await Promise.all([one.lists.close(), two.lists.close()])
  })

  it('are not asked for in vain once they are closed', async () => {
    const { attempts, clock, lists } = backend(1_000)
    void lists.run()
    await lists.attempted
    await clock.advance(2_000)
    await lists.close()
    const before = attempts.length
    for (let i = 0; i < 10; i++) await clock.advance(60_000)
    expect(attempts).toHaveLength(before)
  })

  /** Down until a moment, then up. */
  function starting(upAt: number) {
    const clock = new TestClock()
    const attempts: number[] = []
    const request = async () => {
      attempts.push(clock.monotonic())
      if (clock.monotonic() < upAt) throw new Error('down')
      return { tools: [{ name: 'work' }] }
    }
    const shared = { capabilities: { tools: {} }, connect: async () => {}, request }
    const member = { name: 'one', shared, observed: (work: () => Promise<void>) => work() } as unknown as Member
    const lists = new MemberLists({ member, clock, log: new CollectingLog(), onChange: () => {} })
    return { clock, attempts, lists }
  }

  it('of a backend that starts together with the server come soon after it is up', async () => {
    const { clock, attempts, lists } = starting(60_000)
    void lists.run()
    for (let i = 0; i < 600; i++) await clock.advance(100)
    expect(lists.lists).toBeUndefined()
    await clock.advance(5_000)
    expect(lists.lists?.tools).toHaveLength(1)
    // One every five seconds, or a little less.
    expect(attempts.length).toBeLessThan(35)
    await lists.close()
  })

  it('of a backend that is away for long are asked for every half a minute at most, and with jitter', async () => {
    const { clock, attempts, lists } = starting(Number.POSITIVE_INFINITY)
    void lists.run()
    for (let i = 0; i < 5_000; i++) await clock.advance(200)
    const late = attempts.filter((at) => at > 300_000)
    const gaps = late.slice(1).map((at, i) => at - (late[i] ?? 0))
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(15_000)
    expect(Math.max(...gaps)).toBeLessThanOrEqual(30_200)
    expect(new Set(gaps).size).toBeGreaterThan(5)
    await lists.close()
  })

  it('are asked for at once when something says that the backend serves, and soon again if that came a little early', async () => {
    const { clock, attempts, lists } = starting(400_000)
    void lists.run()
    // Long enough for the longest delay.
    for (let i = 0; i < 3_000; i++) await clock.advance(100)
    while (clock.monotonic() - (attempts.at(-1) ?? 0) > 100) await clock.advance(100)
    const before = attempts.length
    lists.look()
    await clock.advance(50)
    expect(attempts).toHaveLength(before + 1)
    for (let i = 0; i < 20; i++) await clock.advance(100)
    expect(attempts.length).toBeGreaterThan(before + 2)
    while (clock.monotonic() < 399_000) await clock.advance(100)
    await clock.advance(1_000)
    lists.look()
    await clock.advance(50)
    expect(lists.lists?.tools).toHaveLength(1)
    const loaded = attempts.length
    // It is known now: there is nothing to look for.
    lists.look()
    await clock.advance(1_000)
    expect(attempts).toHaveLength(loaded)
    await lists.close()
  })

  it('are asked for once more when that is said during an attempt that fails', async () => {
    const clock = new TestClock()
    let [attempts, isUp] = [0, false]
    const request = async () => {
      attempts++
      const wasUp = isUp
      await clock.sleep(10_000)
      if (!wasUp) throw new Error('down')
      return { tools: [{ name: 'work' }] }
    }
    const shared = { capabilities: { tools: {} }, connect: async () => {}, request }
    const member = { name: 'one', shared, observed: (work: () => Promise<void>) => work() } as unknown as Member
    const lists = new MemberLists({ member, clock, log: new CollectingLog(), onChange: () => {} })
    void lists.run()
    await clock.advance(5_000)
    isUp = true
    // An answer may be that of the attempt itself, so it says nothing.
    lists.answered()
    lists.look()
    await clock.advance(5_000)
    await clock.advance(50)
    expect(attempts).toBe(2)
    await clock.advance(10_000)
    expect(lists.lists?.tools).toHaveLength(1)
    await lists.close()
  })

  it('of a backend that is said to serve without end, and does not, are asked for every few seconds', async () => {
    const { clock, attempts, lists } = starting(Number.POSITIVE_INFINITY)
    void lists.run()
    for (let i = 0; i < 6_000; i++) {
      lists.look()
      await clock.advance(50)
    }
    // Five minutes.
    expect(attempts.length).toBeLessThan(140)
    const late = attempts.filter((at) => at > 60_000)
    const gaps = late.slice(1).map((at, i) => at - (late[i] ?? 0))
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(2_500)
    await lists.close()
  })

  it('are asked for again with other credentials, and the old ones stay until then', async () => {
    const clock = new TestClock()
    let [shown, isUp, loads, changes] = ['old', true, 0, 0]
    const request = async () => {
      loads++
      const now = shown
      await clock.sleep(100)
      if (!isUp) throw new Error('down')
      return { tools: [{ name: now }], ttlMs: 300_000 }
    }
    const shared = { capabilities: { tools: {} }, connect: async () => {}, request }
    const member = { name: 'one', shared, observed: (work: () => Promise<void>) => work() } as unknown as Member
    const lists = new MemberLists({ member, clock, log: new CollectingLog(), onChange: () => void changes++ })
    const names = () => lists.lists?.tools.map(({ name }) => name)
    void lists.run()
    await clock.advance(10_000)
    expect({ loads, changes }).toEqual({ loads: 1, changes: 1 })
    shown = 'new'
    lists.renew()
    await clock.advance(100)
    expect(names()).toEqual(['old'])
    await clock.advance(100)
    expect(names()).toEqual(['new'])
    // One that comes while the backend is asked with the ones before.
    await clock.advance(10_000)
    lists.renew()
    await clock.advance(60)
    shown = 'newest'
    lists.renew()
    await clock.advance(100)
    expect(names()).toEqual(['new'])
    await clock.advance(1_000)
    expect(names()).toEqual(['newest'])
    expect(changes).toBe(3)
    // Credentials that do not work take nothing away.
    isUp = false
    lists.renew()
    await clock.advance(10_000)
    expect(names()).toEqual(['newest'])
    await lists.close()
  })
})
