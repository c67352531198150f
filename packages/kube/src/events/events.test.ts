import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { beforeEach, describe, expect, it } from 'vitest'
import type { CallOptions, KubeClient, Patch } from '../client/client.ts'
import { KubeApiError } from '../client/kube-api-error.ts'
import type { KubeEvent } from '../objects/builtin-kinds.ts'
import { configMaps } from '../objects/resource-types.ts'
import type { KubeObject, KubeStatus, ObjectKey, ResourceType } from '../objects/types.ts'
import { createEventRecorder, type EventRecorderOptions } from './events.ts'

const object: KubeObject = { metadata: { name: 'web', namespace: 'team', uid: 'u1' } }
const warning = { type: 'Warning', reason: 'Broken', note: 'it is broken' } as const

/** The server's side of Events: names are unique, a patch needs its Event. */
class EventApi {
  readonly stored = new Map<string, KubeEvent>()
  readonly calls: { verb: 'create' | 'patch'; at: number; count: number }[] = []
  readonly failures: unknown[] = []
  /** Fails all calls as long as it is set. */
  down: unknown
  /** The write is carried out, the answer is lost. */
  loseAnswers = 0
  hold: Promise<void> | undefined
  readonly #clock: TestClock

  constructor(clock: TestClock) {
    this.#clock = clock
  }

  readonly client: Pick<KubeClient, 'create' | 'patch'> = {
    create: async <T extends KubeObject>(_type: ResourceType<T>, event: T, opts: CallOptions = {}) => {
      await this.#before('create', (event as KubeEvent).series?.count ?? 1, opts.signal)
      if (this.stored.has(event.metadata.name)) throw refusal('create', 409, { reason: 'AlreadyExists' })
      this.stored.set(event.metadata.name, structuredClone(event) as KubeEvent)
      this.#after()
      return event
    },
    patch: async <T extends KubeObject>(_type: ResourceType<T>, { name }: ObjectKey, patch: Patch, opts: CallOptions = {}) => {
      const { series } = (patch.kind === 'merge' ? patch.body : {}) as Pick<KubeEvent, 'series'>
      await this.#before('patch', series?.count ?? 0, opts.signal)
      const event = this.stored.get(name)
      if (event === undefined || series === undefined) throw refusal('patch', 404, { reason: 'NotFound' })
      event.series = series
      this.#after()
      return event as unknown as T
    },
  }

  async #before(verb: 'create' | 'patch', count: number, signal: AbortSignal | undefined): Promise<void> {
    this.calls.push({ verb, at: this.#clock.monotonic(), count })
    await this.hold
    signal?.throwIfAborted()
    if (this.down) throw this.down
    if (this.failures.length > 0) throw this.failures.shift()
  }

  #after(): void {
    if (this.loseAnswers-- > 0) throw unreachable()
  }

  get events(): KubeEvent[] {
    return [...this.stored.values()]
  }
}

function refusal(verb: string, status: number, body: KubeStatus): KubeApiError {
  return new KubeApiError({ call: { verb, target: 'events' }, status, body })
}

const unreachable = () => new ThvError('kube_unreachable', 'connection refused')
const never = new AbortController().signal

describe('createEventRecorder', () => {
  let clock: TestClock
  let api: EventApi
  let errors: unknown[]
  beforeEach(() => {
    clock = new TestClock()
    api = new EventApi(clock)
    errors = []
  })

  const recorder = (options: Partial<EventRecorderOptions> = {}) =>
    createEventRecorder({
      client: api.client,
      controller: 'test.dev/unit',
      instance: 'pod-1',
      clock,
      onError: (error) => errors.push(error),
      random: () => 0.5,
      ...options,
    })

  it('sends an event without making the caller wait', async () => {
    const events = recorder()
    events.record(configMaps, object, warning)
    expect(api.events).toEqual([])
    await clock.advance(0)
    expect(api.events).toMatchObject([{ reason: 'Broken', type: 'Warning', note: 'it is broken', regarding: { name: 'web', uid: 'u1' } }])
    expect(api.events[0]?.series).toBeUndefined()
    expect(events.stats).toMatchObject({ recorded: 1, created: 1, pending: 0 })
  })

  it('makes one Event of a thousand repeats, with one patch per interval', async () => {
    const events = recorder({ seriesIntervalMs: 30_000 })
    for (let n = 0; n < 1_000; n++) {
      events.record(configMaps, object, warning)
      await clock.advance(100)
    }
    await clock.advance(60_000)
    expect(api.events).toHaveLength(1)
    expect(api.events[0]?.series?.count).toBe(1_000)
    expect(api.events[0]?.series?.lastObservedTime).toMatch(/\.\d{6}Z$/)
    const patches = api.calls.filter(({ verb }) => verb === 'patch')
    expect(patches.length).toBeLessThanOrEqual(5)
    expect(events.stats).toMatchObject({ recorded: 1_000, aggregated: 999, created: 1, pending: 0 })
  })

  it('spreads the patches of many series by jitter', async () => {
    let n = 0
    const events = recorder({ random: () => (n++ % 10) / 10 })
    const many = Array.from({ length: 10 }, (_, i) => ({ metadata: { ...object.metadata, uid: `u${i}` } }))
    for (const each of [...many, ...many]) {
      events.record(configMaps, each, warning)
      await clock.advance(0)
    }
    await clock.advance(60_000)
    const times = new Set(api.calls.filter(({ verb }) => verb === 'patch').map(({ at }) => at))
    expect(times.size).toBe(10)
  })

  it('starts another Event when the last one is long ago', async () => {
    const events = recorder({ windowMs: 600_000 })
    for (const wait of [599_000, 599_000, 601_000]) {
      events.record(configMaps, object, warning)
      await clock.advance(wait)
    }
    events.record(configMaps, object, warning)
    await clock.advance(0)
    expect(api.events.map(({ series }) => series?.count)).toEqual([3, undefined])
  })

  it('keeps apart what differs in a word', async () => {
    const events = recorder()
    events.record(configMaps, object, warning)
    events.record(configMaps, object, { ...warning, note: 'it is broken too' })
    events.record(configMaps, { metadata: { ...object.metadata, uid: 'u2' } }, warning)
    await clock.advance(0)
    expect(api.events).toHaveLength(3)
  })

  it('drops and counts what has no room, and lets nothing else be lost', async () => {
    api.hold = new Promise(() => {})
    const events = recorder({ maxPending: 10 })
    for (let n = 0; n < 25; n++) events.record(configMaps, { metadata: { ...object.metadata, uid: `u${n}` } }, warning)
    await clock.advance(0)
    expect(events.stats).toMatchObject({ recorded: 25, dropped: 15, pending: 10 })
  })

  it('forgets the oldest series when there are too many', async () => {
    const events = recorder({ maxSeries: 3 })
    for (const uid of ['a', 'b', 'c', 'd', 'a']) {
      events.record(configMaps, { metadata: { ...object.metadata, uid } }, warning)
      await clock.advance(0)
    }
    expect(api.events.map(({ regarding }) => regarding?.uid)).toEqual(['a', 'b', 'c', 'd', 'a'])
  })

  it('keeps to its rate', async () => {
    const events = recorder({ rate: { perSecond: 10, burst: 5 } })
    for (let n = 0; n < 25; n++) events.record(configMaps, { metadata: { ...object.metadata, uid: `u${n}` } }, warning)
    await clock.advance(0)
    expect(api.events).toHaveLength(5)
    await clock.advance(1_000)
    expect(api.events).toHaveLength(15)
  })

  it('waits for a server that is away, and carries the repeats of that time along', async () => {
    api.down = unreachable()
    const events = recorder()
    events.record(configMaps, object, warning)
    await clock.advance(5_000)
    events.record(configMaps, object, warning)
    events.record(configMaps, object, warning)
    api.down = undefined
    await clock.advance(31_000)
    expect(api.events.map(({ series }) => series?.count)).toEqual([3])
    expect(errors).toEqual([])
  })

  it('takes its own Event for created when only the answer was lost', async () => {
    api.loseAnswers = 1
    const events = recorder()
    events.record(configMaps, object, warning)
    await clock.advance(31_000)
    expect(api.events).toHaveLength(1)
    expect(events.stats).toMatchObject({ created: 1, failed: 0 })
  })

  it('drops Events of a namespace that is being deleted without an error', async () => {
    const causes = [{ reason: 'NamespaceTerminating', message: 'is being terminated' }]
    api.failures.push(refusal('create', 403, { reason: 'Forbidden', details: { causes } }), refusal('create', 404, { reason: 'NotFound' }))
    const events = recorder()
    events.record(configMaps, object, warning)
    await clock.advance(0)
    events.record(configMaps, object, warning)
    await clock.advance(0)
    expect(events.stats).toMatchObject({ terminating: 2, failed: 0, pending: 0 })
    expect(errors).toEqual([])
  })

  it('reports what the server refuses, once, and goes on', async () => {
    api.failures.push(refusal('create', 422, { reason: 'Invalid' }), refusal('create', 403, { reason: 'Forbidden' }))
    const events = recorder({
      onError: (error) => {
        errors.push(error)
        throw new Error('a listener that throws')
      },
    })
    for (const uid of ['a', 'b', 'c']) events.record(configMaps, { metadata: { ...object.metadata, uid } }, warning)
    await clock.advance(0)
    expect(errors).toHaveLength(2)
    expect(api.events.map(({ regarding }) => regarding?.uid)).toEqual(['c'])
  })

  it('does not throw at an object that is none', async () => {
    const events = recorder()
    events.record(configMaps, { metadata: {} } as KubeObject, warning)
    expect(events.stats).toMatchObject({ failed: 1, pending: 0 })
    expect(errors).toHaveLength(1)
  })

  it('gives an event up after some attempts', async () => {
    api.down = unreachable()
    const events = recorder({ maxAttempts: 3 })
    events.record(configMaps, object, warning)
    await clock.advance(120_000)
    expect(api.calls).toHaveLength(3)
    expect(events.stats).toMatchObject({ failed: 1, pending: 0 })
    expect(errors).toHaveLength(1)
  })

  it('writes a deleted Event again, with its count', async () => {
    const events = recorder()
    events.record(configMaps, object, warning)
    await clock.advance(0)
    const first = api.events[0]?.metadata.name
    api.stored.clear()
    events.record(configMaps, object, warning)
    await clock.advance(60_000)
    expect(api.events.map(({ series }) => series?.count)).toEqual([2])
    expect(api.events[0]?.metadata.name).not.toBe(first)
    expect(api.events[0]?.metadata.name).toMatch(/^web\./)
  })

  it('flushes what waits, counts of repeats too, without keeping to the rate', async () => {
    const stop = new AbortController()
    const events = recorder({ rate: { perSecond: 1, burst: 1 }, signal: stop.signal })
    for (let n = 0; n < 20; n++) events.record(configMaps, { metadata: { ...object.metadata, uid: `u${n}` } }, warning)
    await clock.advance(0)
    events.record(configMaps, { metadata: { ...object.metadata, uid: 'u0' } }, warning)
    stop.abort()
    await clock.advance(60_000)
    expect(api.events).toHaveLength(1)
    events.record(configMaps, { metadata: { ...object.metadata, uid: 'late' } }, warning)
    await events.flush(never)
    expect(api.events).toHaveLength(21)
    expect(api.events[0]?.series?.count).toBe(2)
    expect(events.stats.pending).toBe(0)
    expect(clock.pending).toBe(0)
  })

  it('ends a flush when its signal aborts, and a request that hangs with it', async () => {
    api.down = unreachable()
    const events = recorder()
    events.record(configMaps, object, warning)
    await clock.advance(0)
    const stop = new AbortController()
    const flushed = events.flush(stop.signal)
    await clock.advance(1_000)
    stop.abort()
    await flushed
    expect(events.stats.pending).toBe(1)
    api.down = undefined
    await clock.advance(60_000)
    expect(api.events).toHaveLength(1)
  })
})
