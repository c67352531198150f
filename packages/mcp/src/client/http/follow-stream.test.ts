import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { followStream, type StreamEnd } from './follow-stream.ts'

const OPEN: StreamEnd = { status: 200, headers: {}, isStream: true, lastEventId: '', retry: undefined }
const REFUSED: StreamEnd = { ...OPEN, status: 405, isStream: false }
const BROKEN: StreamEnd = { ...OPEN, status: 0, isStream: false, error: new Error('reset') }

describe('followStream', () => {
  it('waits as long as the server says before it comes back, and brings the last id', async () => {
    const { clock, gets, done } = follow([{ ...OPEN, lastEventId: 'b', retry: 2_000 }, { ...OPEN }, REFUSED], {
      from: { lastEventId: 'a', retry: 500 },
    })
    await clock.advance(499)
    expect(gets).toEqual([])
    await clock.advance(1)
    expect(gets).toEqual(['a'])
    await clock.advance(1_999)
    expect(gets).toEqual(['a'])
    await clock.advance(1)
    expect(gets).toEqual(['a', 'b'])
    await clock.advance(2_000)
    expect(await done).toBe(REFUSED)
    expect(gets).toEqual(['a', 'b', 'b'])
  })

  it('begins at once where nothing broke off, and comes back after a second where nothing was said', async () => {
    const { clock, gets, done } = follow([OPEN, REFUSED])
    await clock.advance(0)
    expect(gets).toEqual([''])
    await clock.advance(999)
    expect(gets).toHaveLength(1)
    await clock.advance(1)
    await done
    expect(gets).toEqual(['', ''])
  })

  it('gives up after so many failures in a row, but not after connections that ended well', async () => {
    const few = follow([BROKEN, BROKEN, OPEN, BROKEN, BROKEN, REFUSED], { maxFailures: 2 })
    await few.clock.advance(600_000)
    expect(await few.done).toBe(REFUSED)
    const many = follow([BROKEN, { ...REFUSED, status: 503 }, BROKEN], { maxFailures: 2 })
    const outcome = expect(many.done).rejects.toMatchObject({ code: 'mcp_stream_broken' })
    await many.clock.advance(600_000)
    await outcome
    expect(many.gets).toHaveLength(3)
  })

  it('waits longer after each failure', async () => {
    const { clock, gets } = follow(Array.from({ length: 50 }, () => BROKEN))
    await clock.advance(600_000)
    expect(gets.length).toBeGreaterThan(15)
    expect(gets.length).toBeLessThan(50)
  })

  it('ends when it is done, even if the stream goes on, and when the signal aborts', async () => {
    const { clock, done } = follow([OPEN, OPEN], { isDone: () => true })
    await clock.advance(0)
    expect(await done).toBe(OPEN)
    const controller = new AbortController()
    const aborted = follow([OPEN, OPEN], { signal: controller.signal })
    await aborted.clock.advance(10)
    controller.abort(new Error('enough'))
    await expect(aborted.done).rejects.toThrow('enough')
  })

  it('does not take "never" and "at once" by the word', async () => {
    const greedy = follow(
      Array.from({ length: 1_000 }, () => OPEN),
      { from: { lastEventId: 'a', retry: 0 } },
    )
    await greedy.clock.advance(1_000)
    expect(greedy.gets.length).toBeLessThanOrEqual(50)
    const lazy = follow([REFUSED], { from: { lastEventId: 'a', retry: Number.MAX_SAFE_INTEGER } })
    await lazy.clock.advance(3_600_000)
    expect(await lazy.done).toBe(REFUSED)
  })
})

function follow(ends: readonly StreamEnd[], options: Partial<Parameters<typeof followStream>[0]> = {}) {
  const clock = new TestClock()
  const gets: string[] = []
  const get = async (lastEventId: string) => {
    gets.push(lastEventId)
    return ends[gets.length - 1] ?? REFUSED
  }
  const done = followStream({ get, clock, signal: new AbortController().signal, maxFailures: Number.POSITIVE_INFINITY, ...options })
  done.catch(() => {})
  return { clock, gets, done }
}
