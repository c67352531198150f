import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { afterEach, describe, expect, test } from 'vitest'
import { Reflector } from '../cache/reflector.ts'
import { formatKey } from '../objects/object-key.ts'
import type { ObjectKey } from '../objects/types.ts'
import { FakeApi, type Thing, things, unreachable } from '../testing/fake-api.ts'
import { type ControllerOptions, createController, done, type ReconcileReport, requeueAfter, retry } from './controller.ts'
import { generationChanged } from './predicates.ts'
import { watchMapped, watchOwned, watchSelf } from './sources.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

type Setup = Partial<ControllerOptions> & {
  api?: FakeApi
  clock?: TestClock
  source?: (reflector: Reflector<Thing>) => ControllerOptions['sources']
}

function setUp({ api = new FakeApi(), clock = new TestClock(), source = (reflector) => [watchSelf(reflector)], ...options }: Setup = {}) {
  const reflector = new Reflector<Thing>({ client: api, type: things, clock, safetyRelistMs: 0 })
  const stopCache = new AbortController()
  const caching = reflector.run(stopCache.signal)
  const calls: string[] = []
  const errors: { error: unknown; key?: ObjectKey | undefined }[] = []
  const reports: ReconcileReport[] = []
  const controller = createController({
    name: 'things',
    reconcile: async (key) => {
      calls.push(formatKey(key))
      return done
    },
    sources: source(reflector),
    queue: { backoff: { baseMs: 100, maxMs: 1_000, jitter: 0 } },
    clock,
    onError: (error, key) => errors.push({ error, key }),
    onReconcile: (report) => reports.push(report),
    ...options,
  })
  const stop = new AbortController()
  let settled: 'ended' | { error: unknown } | undefined
  const running = controller.run(stop.signal).then(
    () => {
      settled = 'ended'
    },
    (error: unknown) => {
      settled = { error }
    },
  )
  cleanups.push(async () => {
    stop.abort()
    stopCache.abort()
    await clock.advance(60_000)
    await running
    await caching
  })
  return {
    api,
    clock,
    controller,
    calls,
    errors,
    reports,
    stop,
    running,
    reflector,
    settled: () => settled,
    settle: () => clock.advance(0),
  }
}

describe('outcomes', () => {
  test('done: nothing more until something changes', async () => {
    const { api, calls, clock, reports } = setUp()
    api.put('a', 1)
    await clock.advance(600_000)
    expect(calls).toEqual(['ns/a'])
    api.put('a', 2)
    await clock.advance(600_000)
    expect(calls).toEqual(['ns/a', 'ns/a'])
    expect(reports[0]).toEqual({ key: { namespace: 'ns', name: 'a' }, attempt: 1, result: 'done', durationMs: 0 })
  })

  test('requeueAfter: again after that time', async () => {
    const at: number[] = []
    const clock = new TestClock()
    const { api, controller } = setUp({
      clock,
      reconcile: async () => {
        at.push(clock.monotonic())
        return at.length < 3 ? requeueAfter('15s') : done
      },
    })
    api.put('a', 1)
    await clock.advance(60_000)
    expect(at).toEqual([0, 15_000, 30_000])
    expect(controller.stats).toMatchObject({ reconciles: 3, failures: 0, depth: 0, delayed: 0, active: 0 })
  })

  test('retry and exceptions: again with growing delays, counted as attempts, until a success resets them', async () => {
    const seen: { at: number; attempt: number }[] = []
    const clock = new TestClock()
    const { api, controller, errors, reports } = setUp({
      clock,
      reconcile: async (_key, { attempt }) => {
        seen.push({ at: clock.monotonic(), attempt })
        if (seen.length === 1) return retry('not yet')
        if (seen.length === 2) throw new Error('broken')
        return done
      },
    })
    api.put('a', 1)
    await clock.advance(10_000)
    api.put('a', 2)
    await clock.advance(10_000)
    expect(seen).toEqual([
      { at: 0, attempt: 1 },
      { at: 100, attempt: 2 },
      { at: 300, attempt: 3 },
      { at: 10_000, attempt: 1 },
    ])
    expect(errors).toEqual([{ error: new Error('broken'), key: { namespace: 'ns', name: 'a' } }])
    expect(reports.map(({ result }) => result)).toEqual(['retry', 'error', 'done', 'done'])
    expect(reports[0]?.reason).toBe('not yet')
    expect(controller.stats).toMatchObject({ reconciles: 4, failures: 1 })
  })

  test('requeueAfter takes durations and milliseconds, nothing else', () => {
    expect(requeueAfter('1m30s')).toEqual({ kind: 'requeueAfter', ms: 90_000 })
    expect(requeueAfter(5)).toEqual({ kind: 'requeueAfter', ms: 5 })
    expect(() => requeueAfter(-1)).toThrow(RangeError)
    expect(() => requeueAfter(Number.NaN)).toThrow(RangeError)
    expect(() => requeueAfter('-2m')).toThrow(RangeError)
    expect(() => requeueAfter('soon')).toThrow()
  })

  test('errors of hooks are reported and change nothing', async () => {
    const { api, clock, calls, errors } = setUp({
      onReconcile: () => {
        throw new Error('bad hook')
      },
    })
    api.put('a', 1)
    await clock.advance(10_000)
    expect(calls).toEqual(['ns/a'])
    expect(errors).toMatchObject([{ error: { message: 'bad hook' } }])
    const worse = setUp({
      reconcile: async () => {
        throw new Error('x')
      },
      onError: () => {
        throw new Error('cannot report')
      },
    })
    worse.api.put('a', 1)
    await worse.clock.advance(1_000)
    expect(worse.reports.length).toBeGreaterThan(2)
  })
})

describe('concurrency', () => {
  test('as many keys at a time as asked for, one key never twice, changes meanwhile bring it again', async () => {
    const clock = new TestClock()
    const active = new Set<string>()
    let most = 0
    const calls: string[] = []
    const { api } = setUp({
      clock,
      concurrency: 2,
      reconcile: async (key) => {
        const text = formatKey(key)
        expect(active.has(text)).toBe(false)
        active.add(text)
        calls.push(text)
        most = Math.max(most, active.size)
        await clock.sleep(100)
        active.delete(text)
        return done
      },
    })
    for (const name of ['a', 'b', 'c']) api.put(name, 1)
    await clock.advance(50)
    api.put('a', 2)
    api.put('a', 3)
    await clock.advance(1_000)
    expect(most).toBe(2)
    expect(calls.sort()).toEqual(['ns/a', 'ns/a', 'ns/b', 'ns/c'])
  })

  test('a reconcile over its time limit is aborted, counted and tried again', async () => {
    const clock = new TestClock()
    let tries = 0
    const { api, controller, errors, reports } = setUp({
      clock,
      reconcileTimeoutMs: 1_000,
      reconcile: async (_key, { signal }) => {
        if (++tries === 1) await clock.sleep(1e9, signal)
        return done
      },
    })
    api.put('a', 1)
    await clock.advance(2_000)
    expect(tries).toBe(2)
    expect(reports.map(({ result }) => result)).toEqual(['timeout', 'done'])
    expect(errors).toMatchObject([{ error: { code: 'timeout', message: expect.stringContaining('ns/a') } }])
    expect(controller.stats).toMatchObject({ timeouts: 1, failures: 0, stuck: 0 })
  })

  test('one that ignores the abort blocks its own key only, until it ends', async () => {
    const clock = new TestClock()
    const calls: string[] = []
    const hang = Promise.withResolvers<void>()
    const { api, controller } = setUp({
      clock,
      reconcileTimeoutMs: 1_000,
      reconcile: async (key) => {
        calls.push(key.name)
        if (key.name === 'bad' && calls.filter((name) => name === 'bad').length === 1) await hang.promise
        return done
      },
    })
    api.put('bad', 1)
    await clock.advance(10)
    api.put('good', 1)
    api.put('bad', 2)
    await clock.advance(60_000)
    expect(calls).toEqual(['bad', 'good'])
    expect(controller.stats.stuck).toBe(1)
    hang.resolve()
    await clock.advance(10)
    expect(calls).toEqual(['bad', 'good', 'bad'])
    expect(controller.stats).toMatchObject({ stuck: 0, active: 0 })
  })
})

describe('start and stop', () => {
  test('no reconcile before every cache has its first list', async () => {
    const slow = new FakeApi()
    const clock = new TestClock()
    slow.beforePage = () => clock.sleep(5_000)
    const other = new Reflector<Thing>({ client: slow, type: things, clock, safetyRelistMs: 0 })
    const stop = new AbortController()
    const running = other.run(stop.signal)
    cleanups.push(async () => {
      stop.abort()
      await running
    })
    const { api, calls } = setUp({ clock, source: (reflector) => [watchSelf(reflector), watchMapped(other, () => [])] })
    api.put('a', 1)
    await clock.advance(4_999)
    expect(calls).toEqual([])
    await clock.advance(1)
    expect(calls).toEqual(['ns/a'])
  })

  test('a cache that does not come up is named', async () => {
    const api = new FakeApi()
    api.listErrors.push(...Array.from({ length: 1_000 }, unreachable))
    const { clock, settled } = setUp({ api, syncTimeoutMs: 10_000 })
    await clock.advance(9_999)
    expect(settled()).toBeUndefined()
    await clock.advance(1)
    expect(settled()).toMatchObject({
      error: { code: 'timeout', message: 'controller things: after 10000 ms these caches had no complete list: things' },
    })
  })

  test('a stop while waiting for caches is no error', async () => {
    const api = new FakeApi()
    api.listErrors.push(unreachable())
    const { stop, settled, settle } = setUp({ api })
    await settle()
    stop.abort()
    await settle()
    expect(settled()).toBe('ended')
  })

  test('a stop lets running reconciles end, starts no others, and leaves no timer', async () => {
    const clock = new TestClock()
    const finished: string[] = []
    const { api, stop, settled } = setUp({
      clock,
      reconcile: async (key) => {
        await clock.sleep(3_000)
        finished.push(key.name)
        return requeueAfter(1)
      },
    })
    api.put('a', 1)
    api.put('b', 1)
    await clock.advance(1_000)
    stop.abort()
    await clock.advance(1_000)
    expect(settled()).toBeUndefined()
    await clock.advance(1_000)
    expect(settled()).toBe('ended')
    api.put('c', 1)
    await clock.advance(60_000)
    expect(finished).toEqual(['a'])
    expect(clock.pending).toBe(0)
  })

  test('after the limit running reconciles are aborted; one that ignores that is left behind and reported', async () => {
    const clock = new TestClock()
    const hang = Promise.withResolvers<void>()
    const ends: string[] = []
    const { api, stop, settled, errors } = setUp({
      clock,
      concurrency: 2,
      drainMs: 1_000,
      reconcile: async (key, { signal }) => {
        if (key.name === 'deaf') await hang.promise
        else await clock.sleep(1e9, signal).catch((reason: unknown) => ends.push(String(reason)))
        return done
      },
    })
    api.put('deaf', 1)
    api.put('polite', 1)
    await clock.advance(10)
    stop.abort()
    await clock.advance(1_000)
    expect(ends).toEqual([expect.stringContaining('stopping')])
    expect(settled()).toBeUndefined()
    await clock.advance(5_000)
    expect(settled()).toBe('ended')
    expect(errors).toMatchObject([{ error: { code: 'shutdown_timeout' } }])
    hang.resolve()
  })

  test('running reconciles are aborted at once when the lease is lost', async () => {
    const clock = new TestClock()
    const ends: string[] = []
    const { api, stop, settled } = setUp({
      clock,
      reconcile: async (_, { signal }) => {
        await clock.sleep(1e9, signal).catch((reason: unknown) => ends.push(String(reason)))
        return done
      },
    })
    api.put('a', 1)
    await clock.advance(10)
    stop.abort(new ThvError('lease_lost', 'taken by another'))
    await clock.advance(0)
    expect(ends).toEqual([expect.stringContaining('stopping')])
    await expect.poll(settled).toBe('ended')
  })

  test('cannot be started twice', async () => {
    const { controller } = setUp()
    await expect(controller.run(new AbortController().signal)).rejects.toThrow('started twice')
  })

  test('wishes from outside are served', async () => {
    const { controller, calls, settle } = setUp()
    controller.enqueue({ name: 'somewhere' })
    await settle()
    expect(calls).toEqual(['somewhere'])
  })
})

describe('sources', () => {
  test('predicates keep events out', async () => {
    const { api, calls, settle } = setUp({ source: (reflector) => [watchSelf(reflector, generationChanged)] })
    api.put('a', 1, { generation: 1 })
    await settle()
    api.put('a', 2, { generation: 1 })
    await settle()
    expect(calls).toHaveLength(1)
    api.put('a', 3, { generation: 2 })
    await settle()
    expect(calls).toHaveLength(2)
    api.drop('a')
    await settle()
    expect(calls).toHaveLength(3)
  })

  test('an owned object wakes its controller in its namespace, no other owner', async () => {
    const ref = (kind: string, name: string, controller: boolean) => ({ apiVersion: 'g/v1', kind, name, uid: name, controller })
    const { api, calls, settle } = setUp({ source: (reflector) => [watchOwned(reflector, { ownerKind: 'Boss', group: 'g' })] })
    api.put('a', 1, { ownerReferences: [ref('Boss', 'one', true), ref('Boss', 'two', false), ref('Other', 'three', false)] })
    await settle()
    expect(calls).toEqual(['ns/one'])
    api.drop('a')
    await settle()
    expect(calls).toEqual(['ns/one', 'ns/one'])
  })

  test('a reference that was taken away wakes its former user too', async () => {
    const users = (object: Thing) => (object.metadata.labels?.user ? [{ name: object.metadata.labels.user }] : [])
    const { api, calls, settle } = setUp({ source: (reflector) => [watchMapped(reflector, users)] })
    api.put('a', 1, { labels: { user: 'first' } })
    await settle()
    expect(calls.splice(0)).toEqual(['first'])
    api.put('a', 2, { labels: { user: 'second' } })
    await settle()
    expect(calls.splice(0).sort()).toEqual(['first', 'second'])
    api.put('a', 3, {})
    await settle()
    expect(calls.splice(0)).toEqual(['second'])
  })
})
