import { KindWatch } from '@thv/catalog/cluster/kind-watch'
import { type Clock, systemClock, TestClock } from '@thv/kernel/clock'
import type { KubeClient, KubeObject, ResourceType } from '@thv/kube'
import { KubeApiError } from '@thv/kube'
import { FakeApi, things } from '@thv/kube/testing/fake-api'
import { expect, it } from 'vitest'
import { until } from '../testing/until.ts'

const failure = (status: number) => new KubeApiError({ status, call: { verb: 'list', target: 'things' }, body: { message: 'no' } })

/** A kind that can be absent or forbidden for every call. */
class FickleApi extends FakeApi {
  status = 200
  /** Of the watch alone. */
  watchStatus = 200
  /** After the first page of a list. */
  pageStatus = 200
  override async list<T extends KubeObject>(...args: Parameters<FakeApi['list']>) {
    if (this.status !== 200) throw failure(this.status)
    return await super.list<T>(...(args as [ResourceType<T>]))
  }
  override async *listPages<T extends KubeObject>(...args: Parameters<FakeApi['listPages']>) {
    if (this.status !== 200) throw failure(this.status)
    yield* super.listPages<T>(...(args as [ResourceType<T>]))
    if (this.pageStatus !== 200) throw failure(this.pageStatus)
  }
  override async *watch<T extends KubeObject>(...args: Parameters<FakeApi['watch']>) {
    if (this.status !== 200) throw failure(this.status)
    if (this.watchStatus !== 200) throw failure(this.watchStatus)
    yield* super.watch<T>(...(args as unknown as Parameters<typeof FakeApi.prototype.watch<T>>))
  }
}

interface Settings {
  clock?: Clock
  probeMs?: number
  checkMs?: number
}

function follow(api: FickleApi, signal: AbortSignal, { clock = systemClock, probeMs = 20, checkMs = 3_600_000 }: Settings = {}) {
  const names = new Set<string>()
  const watch = new KindWatch({
    client: api as unknown as KubeClient,
    clock,
    random: Math.random,
    kind: [things],
    keep: (object) => object,
    checkMs,
    probeMs,
    onEvent: ({ type, object }) => void (type === 'DELETED' ? names.delete(object.metadata.name) : names.add(object.metadata.name)),
    onState: () => {},
  })
  return { watch, names, ended: watch.run(signal) }
}

it('finds a kind that is installed later, forgets its objects when it goes, and finds it again', async () => {
  const api = new FickleApi()
  const over = new AbortController()
  api.status = 404
  const { watch, names, ended } = follow(api, over.signal)
  await until(() => watch.state === 'absent')
  api.put('a', 1)
  api.status = 200
  await until(() => watch.state === 'synced' && names.has('a'))
  api.status = 404
  api.endWatches()
  await until(() => watch.state === 'absent')
  expect([...names]).toEqual([])
  api.drop('a')
  api.put('b', 1)
  api.status = 200
  await until(() => watch.state === 'synced')
  expect([...names]).toEqual(['b'])
  over.abort()
  await ended
})

it('forgets also what the beginning of a list told, when the kind goes before its end', async () => {
  const api = new FickleApi()
  const over = new AbortController()
  api.put('a', 1)
  api.pageStatus = 403
  const { watch, names, ended } = follow(api, over.signal)
  await until(() => watch.state === 'forbidden' && names.has('a'))
  api.drop('a')
  api.put('b', 1)
  await until(() => names.has('b'))
  expect([...names].sort()).toEqual(['a', 'b'])
  api.status = 404
  await until(() => watch.state === 'absent')
  expect([...names]).toEqual([])
  over.abort()
  await ended
})

it('keeps what it knows while the kind may not be read, and drops what went meanwhile', async () => {
  const api = new FickleApi()
  const over = new AbortController()
  api.put('a', 1)
  api.put('b', 1)
  const { watch, names, ended } = follow(api, over.signal)
  await until(() => watch.state === 'synced')
  api.status = 403
  api.endWatches()
  await until(() => watch.state === 'forbidden')
  expect([...names].sort()).toEqual(['a', 'b'])
  expect(watch.problem).toContain('list things: no (403')
  api.drop('a')
  api.status = 200
  await until(() => watch.state === 'synced' && !names.has('a'))
  expect([...names]).toEqual(['b'])
  over.abort()
  await ended
})

it('lists a kind that may be listed and not watched only as often as it looks for a right', async () => {
  const api = new FickleApi()
  api.watchStatus = 403
  const over = new AbortController()
  const waits: number[] = []
  const clock: Clock = {
    now: () => systemClock.now(),
    monotonic: () => systemClock.monotonic(),
    setTimer: (ms, fire) => systemClock.setTimer(ms, fire),
    sleep(ms, signal) {
      waits.push(ms)
      return systemClock.sleep(Math.min(ms, 1_000), signal)
    },
  }
  const { watch, ended } = follow(api, over.signal, { clock, probeMs: 600_000 })
  // The reflector waits too, for other times.
  const isLong = (ms: number) => ms >= 480_000 && ms <= 720_000
  await until(() => waits.some((ms) => ms === 500 || isLong(ms)))
  expect(watch.state).toBe('forbidden')
  expect(waits.some(isLong)).toBe(true)
  over.abort()
  await ended
})

it('lists nothing between two checks, and a check finds what the watch did not bring [001-083] [001-088]', async () => {
  const api = new FickleApi()
  api.put('a', 1)
  const over = new AbortController()
  const clock = new TestClock()
  const { watch, names, ended } = follow(api, over.signal, { clock, checkMs: 300_000 })
  const settle = async (ms: number) => {
    for (let left = ms; left > 0; left -= 10_000) await clock.advance(Math.min(left, 10_000))
  }
  await settle(1_000)
  expect([watch.state, ...names]).toEqual(['synced', 'a'])
  const lists = api.listCalls().length
  await settle(200_000)
  expect(api.listCalls()).toHaveLength(lists)
  api.lose = () => true
  api.put('b', 1)
  await settle(1_000)
  expect([...names]).toEqual(['a'])
  await settle(200_000)
  expect([...names].sort()).toEqual(['a', 'b'])
  expect(api.listCalls().length).toBeGreaterThan(lists)
  over.abort()
  await settle(60_000)
  await ended
})

it('opens a broken watch again with growing waits, and misses no change [001-089]', async () => {
  const api = new FickleApi()
  const over = new AbortController()
  const clock = new TestClock()
  const { names, ended } = follow(api, over.signal, { clock })
  await clock.advance(1_000)
  for (let i = 0; i < 6; i++) api.watchErrors.push(failure(503))
  const opened = api.watchCalls().length
  api.endWatches()
  api.put('while away', 1)
  await clock.advance(1_000)
  const early = api.watchCalls().length - opened
  await clock.advance(120_000)
  const tries = api.watchCalls().length - opened
  expect([early < tries, api.watchErrors.length]).toEqual([true, 0])
  expect([...names]).toEqual(['while away'])
  over.abort()
  await clock.advance(60_000)
  await ended
})
