import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { createPlaces, type Places, type SyncPlace } from './places.ts'

const never = new AbortController().signal
const LONG = 10_000

describe('places', () => {
  it('are lost by who waits for long, and not by who waits for a moment', async () => {
    const { clock, places } = rigOf(2)
    const [slow, quick] = [places.open(), places.open()]
    expect(places.free).toBe(0)
    slow.leave()
    quick.leave()
    await clock.advance(1_000)
    await quick.take(never)
    await clock.advance(LONG)
    expect(places.free).toBe(1)
    await slow.take(never)
    expect(places.free).toBe(0)
    for (const place of [slow, quick]) place.end()
    expect(places.free).toBe(2)
    expect(clock.pending).toBe(0)
  })

  it('are given to those that come back before anybody begins, in their order', async () => {
    const { clock, places, away } = rigOf(1)
    const [first, second] = [await away(), await away()]
    const busy = places.open()
    const order: string[] = []
    const back = (place: SyncPlace, name: string) => place.take(never).then(() => order.push(name))
    const both = [back(second, 'second'), back(first, 'first')]
    expect(places.free).toBe(0)
    busy.end()
    await clock.advance(0)
    expect(order).toEqual(['second'])
    expect(places.free).toBe(0)
    second.end()
    await Promise.all(both)
    expect(order).toEqual(['second', 'first'])
    first.end()
    expect(places.free).toBe(1)
  })

  it('do not count callers that give up while waiting, or are aborted', async () => {
    const { clock, places, away } = rigOf(1)
    const [one, other] = [await away(), await away()]
    const busy = places.open()
    const stop = new AbortController()
    const waits = [one.take(stop.signal), one.take(stop.signal)]
    void other.take(never)
    stop.abort(new Error('enough'))
    for (const wait of waits) await expect(wait).rejects.toThrow('enough')
    one.end()
    other.end()
    busy.end()
    await clock.advance(0)
    expect(places.free).toBe(1)
    one.leave()
    await one.take(never)
    await clock.advance(LONG)
    expect(places.free).toBe(1)
  })

  it('are kept by those that are too many to be away, until there is room', async () => {
    const { clock, places, away } = rigOf(1)
    const gone: SyncPlace[] = []
    while (gone.length < 64) gone.push(await away())
    const last = places.open()
    last.leave()
    await clock.advance(LONG)
    expect(places.free).toBe(0)
    gone[0]?.end()
    await clock.advance(LONG)
    expect(places.free).toBe(1)
  })

  it('follow the bound when it changes', async () => {
    const rig = rigOf(1)
    const waiting = [await rig.away(), await rig.away()]
    rig.places.open()
    let back = 0
    for (const place of waiting) void place.take(never).then(() => back++)
    rig.bound = 3
    const another = rig.places.open()
    another.end()
    await rig.clock.advance(0)
    expect(back).toBe(2)
  })
})

interface Rig {
  readonly clock: TestClock
  readonly places: Places
  bound: number
  away(): Promise<SyncPlace>
}

function rigOf(bound: number): Rig {
  const clock = new TestClock()
  const rig: Rig = {
    clock,
    bound,
    places: createPlaces({ clock, bound: () => rig.bound, onFree: () => undefined }),
    async away() {
      const place = rig.places.open()
      place.leave()
      await clock.advance(LONG)
      return place
    },
  }
  return rig
}
