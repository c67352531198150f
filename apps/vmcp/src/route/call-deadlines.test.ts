import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { CallDeadlines, type TimedCall } from './call-deadlines.ts'

function timed(dueAt: number, log: string[], name: string, onDue: (call: { dueAt: number } & TimedCall) => void) {
  const call = {
    dueAt,
    place: -1,
    due(now: number) {
      log.push(`${name} at ${now}`)
      onDue(call)
    },
  }
  return call
}

describe('deadlines of calls', () => {
  it('are met to the moment, in any order, with one timer', async () => {
    const clock = new TestClock()
    const deadlines = new CallDeadlines(clock)
    const log: string[] = []
    const start = clock.monotonic()
    const ends = (call: TimedCall) => deadlines.delete(call)
    const moves = (call: { dueAt: number }) => {
      call.dueAt += 1_000
    }
    for (const [name, ms, onDue] of [
      ['late', 3_000, ends],
      ['early', 1_000, ends],
      ['moves', 1_500, moves],
      ['gone', 1_200, ends],
    ] as const) {
      const call = timed(start + ms, log, name, onDue)
      deadlines.add(call)
      if (name === 'gone') deadlines.delete(call)
    }
    expect(clock.pending).toBe(1)
    await clock.advance(999)
    expect(log).toEqual([])
    await clock.advance(2_001)
    expect(log.map((line) => line.replace(/\d+$/, (at) => String(Number(at) - start)))).toEqual([
      'early at 1000',
      'moves at 1500',
      'moves at 2500',
      'late at 3000',
    ])
    deadlines.close()
    expect(clock.pending).toBe(0)
  })
})
