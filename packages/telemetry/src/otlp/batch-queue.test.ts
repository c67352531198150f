import { createHook } from 'node:async_hooks'
import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { BatchQueue, type SendResult } from './batch-queue.ts'

type Answer = SendResult | Error | 'hang'

/** A queue of numbers whose sends are answered from a list; the last answer stays. */
function queueOf(
  answers: Answer[],
  limits: { maxItems?: number; batchItems?: number; maxBytes?: number; bytesOf?: (item: number) => number } = {},
) {
  const clock = new TestClock()
  const sent: number[][] = []
  const dropped: string[] = []
  const failures: string[] = []
  const queue = new BatchQueue<number>({
    clock,
    async send(items) {
      sent.push([...items])
      const answer = answers.length > 1 ? answers.shift() : answers[0]
      if (answer instanceof Error) throw answer
      if (answer === 'hang') return await new Promise(() => {})
      return answer ?? { status: 200 }
    },
    onDropped: (count, why) => dropped.push(`${count} ${why}`),
    onFailure: (why) => failures.push(why),
    ...limits,
  })
  return { queue, clock, sent, dropped, failures }
}
const OK = { status: 200 }

describe('a batch queue', () => {
  it('sends after its interval, or at once when a batch is full', async () => {
    const { queue, clock, sent } = queueOf([OK], { batchItems: 3 })
    queue.add(1)
    await clock.advance(4_999)
    expect(sent).toEqual([])
    await clock.advance(1)
    expect(sent).toEqual([[1]])
    for (const item of [2, 3, 4]) queue.add(item)
    await clock.advance(0)
    expect(sent).toEqual([[1], [2, 3, 4]])
  })

  it.each([429, 502, 503, 504])('tries again after %i', async (status) => {
    const { queue, clock, sent, dropped, failures } = queueOf([{ status }, { status }, OK])
    queue.add(1)
    await clock.advance(60_000)
    expect(sent).toEqual([[1], [1], [1]])
    expect([dropped, failures]).toEqual([[], [`status ${status}`]])
  })

  it('waits as long as the collector asks, but not for hours', async () => {
    const { queue, clock, sent } = queueOf([{ status: 429, retryAfterMs: 20_000 }, { status: 503, retryAfterMs: 86_400_000 }, OK])
    queue.add(1)
    await clock.advance(5_000)
    await clock.advance(19_999)
    expect(sent).toHaveLength(1)
    await clock.advance(1)
    expect(sent).toHaveLength(2)
    await clock.advance(60_000)
    expect(sent).toHaveLength(3)
  })

  it('drops what the collector refuses, and what it does not answer after several attempts', async () => {
    const refused = queueOf([{ status: 400 }])
    refused.queue.add(1)
    await refused.clock.advance(60_000)
    expect([refused.sent.length, refused.dropped]).toEqual([1, ['1 refused']])
    const down = queueOf([new Error('ECONNREFUSED 10.0.0.1')])
    down.queue.add(1)
    await down.clock.advance(600_000)
    expect([down.sent.length, down.dropped, down.failures]).toEqual([6, ['1 unsent'], ['no answer']])
  })

  it('halves a batch that is too large, down to a single item', async () => {
    const { queue, clock, sent, dropped } = queueOf([{ status: 413 }, OK, { status: 413 }, OK, { status: 413 }], { batchItems: 4 })
    for (const item of [1, 2, 3, 4]) queue.add(item)
    await clock.advance(0)
    expect(sent).toEqual([[1, 2, 3, 4], [1, 2], [3, 4], [3], [4]])
    expect(dropped).toEqual(['1 refused'])
  })

  it('is bounded while the collector hangs', async () => {
    const { queue, clock, dropped } = queueOf(['hang'], { maxItems: 10, batchItems: 5 })
    for (let i = 0; i < 100; i++) queue.add(i)
    await clock.advance(0)
    expect(queue.size).toBeLessThanOrEqual(10)
    expect(dropped).toHaveLength(85) // five are on their way
  })

  it('is bounded in bytes too, and takes more when some have been sent', async () => {
    const { queue, clock, sent, dropped } = queueOf([OK], { maxBytes: 10, bytesOf: (item) => item })
    for (const item of [6, 5, 4, 1]) queue.add(item)
    expect([queue.size, dropped]).toEqual([2, ['1 full', '1 full']])
    await clock.advance(5_000)
    expect(sent).toEqual([[6, 4]])
    queue.add(10)
    queue.add(11)
    expect([queue.size, dropped.length]).toEqual([1, 3])
  })

  it('sends everything when it closes', async () => {
    const { queue, sent } = queueOf([OK], { batchItems: 2 })
    for (const item of [1, 2, 3, 4, 5]) queue.add(item)
    await queue.close(new AbortController().signal)
    expect(sent.flat()).toEqual([1, 2, 3, 4, 5])
    expect(queue.size).toBe(0)
  })

  it('stops trying when its time to close is over', async () => {
    const { queue, clock, dropped } = queueOf(['hang'], { batchItems: 2 })
    for (const item of [1, 2, 3]) queue.add(item)
    await clock.advance(0)
    const stop = new AbortController()
    const closing = queue.close(stop.signal)
    stop.abort()
    await closing
    expect(dropped).toEqual(['1 unsent'])
  })

  it('makes nothing asynchronous for an item', () => {
    const { queue } = queueOf([OK])
    queue.add(0) // sets the timer
    const made: string[] = []
    const hook = createHook({ init: (_id, type) => void made.push(type) }).enable()
    for (let i = 0; i < 100; i++) queue.add(i)
    hook.disable()
    expect(made).toEqual([])
  })
})
