import { TestClock } from '@thv/kernel/clock'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createTokenBucket } from './token-bucket.ts'
import { WorkQueue, type WorkQueueOptions } from './work-queue.ts'

function create(options: WorkQueueOptions = {}) {
  const clock = new TestClock()
  const queue = new WorkQueue({ clock, backoff: { baseMs: 100, maxMs: 1_000, jitter: 0 }, ...options })
  return { clock, queue }
}

/** Keys that the queue would give out now. */
async function peek(queue: WorkQueue): Promise<string | undefined> {
  const impatient = new AbortController()
  const taken = queue.take(impatient.signal)
  impatient.abort('nothing')
  return await taken.catch(() => undefined)
}

describe('adding and taking', () => {
  test('keys come in order of arrival, each once however often it was added', async () => {
    const { queue } = create()
    for (const key of ['a', 'b', 'a', 'c', 'b']) queue.add(key)
    expect(queue.depth).toBe(3)
    expect([await queue.take(), await queue.take(), await queue.take()]).toEqual(['a', 'b', 'c'])
    expect(await peek(queue)).toBeUndefined()
  })

  test('a key added while it is out comes again after done, exactly once', async () => {
    const { queue } = create()
    queue.add('a')
    expect(await queue.take()).toBe('a')
    queue.add('a')
    queue.add('a')
    expect(queue.depth).toBe(0)
    expect(await peek(queue)).toBeUndefined()
    queue.done('a')
    expect(await queue.take()).toBe('a')
    queue.done('a')
    expect(await peek(queue)).toBeUndefined()
    expect(queue).toMatchObject({ depth: 0, delayed: 0, processing: 0, failing: 0 })
  })

  test('waiting takers are served in order; one that gave up is passed over', async () => {
    const { queue } = create()
    const tired = new AbortController()
    const first = queue.take(tired.signal)
    const second = queue.take()
    tired.abort(new Error('tired'))
    await expect(first).rejects.toThrow('tired')
    queue.add('a')
    expect(await second).toBe('a')
    await expect(queue.take(tired.signal)).rejects.toThrow('tired')
  })

  test('done for a key that is not out is a mistake of the caller', () => {
    const { queue } = create()
    queue.add('a')
    expect(() => queue.done('a')).toThrow(TypeError)
  })
})

describe('delays', () => {
  test('the earlier time wins, whichever was asked for first', async () => {
    const { queue, clock } = create()
    queue.addAfter('a', 500)
    queue.addAfter('a', 100)
    queue.addAfter('a', 900)
    expect(queue.delayed).toBe(1)
    await clock.advance(99)
    expect(queue.depth).toBe(0)
    await clock.advance(1)
    expect(queue.depth).toBe(1)
    expect(await queue.take()).toBe('a')
    queue.done('a')
    await clock.advance(10_000)
    expect(queue.depth).toBe(0)
    expect(clock.pending).toBe(0)
  })

  test('no delay, or one that is over, is an add', async () => {
    const { queue } = create()
    queue.addAfter('a', 0)
    queue.addAfter('b', -5)
    expect(queue.depth).toBe(2)
  })

  test('a key whose time comes while it is out comes again after done', async () => {
    const { queue, clock } = create()
    queue.add('a')
    await queue.take()
    queue.addAfter('a', 100)
    await clock.advance(100)
    expect(queue.depth).toBe(0)
    queue.done('a')
    expect(queue.depth).toBe(1)
  })

  test('failures of a key in a row wait longer and longer, up to the limit; forget resets the delay', async () => {
    const { queue, clock } = create()
    const delays: number[] = []
    for (let n = 0; n < 6; n++) {
      delays.push(queue.addRateLimited('a'))
      expect(queue.failures('a')).toBe(n + 1)
      await clock.advance(delays.at(-1) ?? 0)
      expect(await queue.take()).toBe('a')
      queue.done('a')
    }
    expect(delays).toEqual([100, 200, 400, 800, 1_000, 1_000])
    expect(queue.addRateLimited('b')).toBe(100)
    queue.forget('a')
    expect(queue.failures('a')).toBe(0)
    expect(queue.addRateLimited('a')).toBe(100)
  })

  test('delays are spread when many fail together', () => {
    const queue = new WorkQueue({ clock: new TestClock() })
    const delays = new Set(Array.from({ length: 50 }, (_, n) => queue.addRateLimited(`k${n}`)))
    expect(delays.size).toBeGreaterThan(10)
    void queue.shutdown({ drain: false })
  })

  test('the overall limit spaces out retries of different keys', () => {
    const { queue } = create({ overall: { perSecond: 2, burst: 3 }, backoff: { baseMs: 100, maxMs: 100, jitter: 0 } })
    const delays = ['a', 'b', 'c', 'd', 'e'].map((key) => queue.addRateLimited(key))
    expect(delays).toEqual([100, 100, 100, 500, 1_000])
  })

  test('nothing is kept of keys that are finished', async () => {
    const { queue, clock } = create()
    for (let n = 0; n < 1_000; n++) {
      queue.addRateLimited(`k${n}`)
      await clock.advance(100)
      const key = (await queue.take()) ?? ''
      queue.forget(key)
      queue.done(key)
    }
    expect(queue).toMatchObject({ depth: 0, delayed: 0, processing: 0, failing: 0 })
    expect(clock.pending).toBe(0)
  })
})

describe('shutdown', () => {
  test('without drain: waiting keys and delays are dropped, takers are released, adds are ignored', async () => {
    const { queue, clock } = create()
    queue.add('out')
    await queue.take()
    const waiting = queue.take()
    queue.add('x')
    expect(await waiting).toBe('x')
    queue.add('y')
    queue.addAfter('z', 100)
    queue.add('out')
    let isIdle = false
    const idle = queue.shutdown({ drain: false }).then(() => {
      isIdle = true
    })
    expect(await queue.take()).toBeUndefined()
    queue.add('late')
    queue.addAfter('late', 1)
    queue.addRateLimited('late')
    await clock.advance(1_000)
    expect(queue).toMatchObject({ depth: 0, delayed: 0, failing: 0 })
    queue.done('x')
    await clock.advance(0)
    expect(isIdle).toBe(false)
    queue.done('out')
    await idle
    expect(queue.depth).toBe(0)
  })

  test('with drain: what is ready still goes out, also what was wanted again; then takers are released', async () => {
    const { queue } = create()
    queue.add('a')
    queue.add('b')
    await queue.take()
    queue.add('a')
    queue.addAfter('c', 100)
    const idle = queue.shutdown({ drain: true })
    expect(await queue.take()).toBe('b')
    const last = queue.take()
    const none = queue.take()
    queue.done('b')
    queue.done('a')
    expect(await last).toBe('a')
    queue.done('a')
    expect(await none).toBeUndefined()
    await idle
    expect(await queue.take()).toBeUndefined()
  })

  test('an idle queue ends at once', async () => {
    const { queue } = create()
    const waiting = queue.take()
    await queue.shutdown({ drain: true })
    expect(await waiting).toBeUndefined()
  })
})

describe('property: against a model', () => {
  const key = fc.constantFrom('a', 'b', 'c')
  const operation = fc.oneof(
    fc.record({
      do: fc.constantFrom('add', 'rateLimited', 'forget', 'done') as fc.Arbitrary<'add' | 'rateLimited' | 'forget' | 'done'>,
      key,
    }),
    fc.record({ do: fc.constant('after' as const), key, ms: fc.nat(300) }),
    fc.record({ do: fc.constant('take' as const) }),
    fc.record({ do: fc.constant('advance' as const), ms: fc.nat(300) }),
  )

  test('no key is out twice, nothing that was wanted is lost, nothing comes unasked', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 60 }), async (operations) => {
        const { queue, clock } = create()
        const out = new Set<string>()
        /** A wish that no take has answered since it fell due. */
        const wanted = new Set<string>()
        const due = new Map<string, number>()
        let now = 0
        const wishAt = (name: string, at: number) => {
          if (at <= now) wanted.add(name)
          else due.set(name, Math.min(due.get(name) ?? Number.POSITIVE_INFINITY, at))
        }
        const pass = async (ms: number) => {
          await clock.advance(ms)
          now += ms
          for (const [name, at] of [...due]) {
            if (at > now) continue
            due.delete(name)
            wanted.add(name)
          }
        }
        const take = async () => {
          const name = await peek(queue)
          const takeable = [...wanted].filter((candidate) => !out.has(candidate))
          if (name === undefined) {
            expect(takeable).toEqual([])
            return
          }
          expect(takeable).toContain(name)
          wanted.delete(name)
          out.add(name)
        }
        const finish = (name: string) => {
          if (!out.delete(name)) return
          queue.done(name)
        }
        for (const step of operations) {
          if (step.do === 'add') {
            queue.add(step.key)
            wishAt(step.key, now)
          } else if (step.do === 'after') {
            queue.addAfter(step.key, step.ms)
            wishAt(step.key, now + step.ms)
          } else if (step.do === 'rateLimited') wishAt(step.key, now + queue.addRateLimited(step.key))
          else if (step.do === 'forget') queue.forget(step.key)
          else if (step.do === 'done') finish(step.key)
          else if (step.do === 'take') await take()
          else if (step.do === 'advance') await pass(step.ms)
          expect(queue.processing).toBe(out.size)
          expect(queue.delayed).toBe(due.size)
          expect(queue.depth).toBe([...wanted].filter((name) => !out.has(name)).length)
        }
        for (const name of [...out]) finish(name)
        await pass(2_000)
        while (wanted.size > 0) {
          await take()
          for (const name of [...out]) finish(name)
        }
        expect(queue).toMatchObject({ depth: 0, delayed: 0, processing: 0 })
        expect(clock.pending).toBe(0)
      }),
      { numRuns: 300 },
    )
  })
})

test('a token bucket fills up to its burst', async () => {
  const clock = new TestClock()
  const bucket = createTokenBucket({ perSecond: 10, burst: 2 }, clock)
  expect([bucket.reserve(), bucket.reserve(), bucket.reserve(), bucket.reserve()]).toEqual([0, 0, 100, 200])
  await clock.advance(60_000)
  expect([bucket.reserve(), bucket.reserve(), bucket.reserve()]).toEqual([0, 0, 100])
  expect(() => createTokenBucket({ perSecond: 0, burst: 1 }, clock)).toThrow(RangeError)
})
