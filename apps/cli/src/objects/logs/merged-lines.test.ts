import { describe, expect, it, vi } from 'vitest'
import { createOrderedPrinter, createStampReader, mergedLines, type TimedLine } from './merged-lines.ts'

async function* log(...times: number[]): AsyncGenerator<TimedLine> {
  for (const time of times) yield { time, text: String(time) }
}

describe('mergedLines', () => {
  it('gives lines of all logs in the order of time', async () => {
    const lines: number[] = []
    for await (const { time } of mergedLines([log(1, 4, 5), log(), log(2, 3, 9), log(0)])) lines.push(time)
    expect(lines).toEqual([0, 1, 2, 3, 4, 5, 9])
  })

  it('ends all logs when the reader leaves', async () => {
    const ended = vi.fn()
    async function* endless(): AsyncGenerator<TimedLine> {
      try {
        for (let time = 0; ; time++) yield { time, text: '' }
      } finally {
        ended()
      }
    }
    for await (const { time } of mergedLines([endless(), endless()])) if (time === 3) break
    expect(ended).toHaveBeenCalledTimes(2)
  })
})

describe('createStampReader', () => {
  it('takes the time off, and lends it to lines without one', () => {
    const read = createStampReader()
    expect(read('2026-01-01T00:00:01.500000000Z one two')).toEqual({ time: Date.UTC(2026, 0, 1, 0, 0, 1, 500), text: 'one two' })
    expect(read('no time')).toEqual({ time: Date.UTC(2026, 0, 1, 0, 0, 1, 500), text: 'no time' })
    expect(read('2026-01-01T02:00:02+02:00 ')).toEqual({ time: Date.UTC(2026, 0, 1, 0, 0, 2), text: '' })
  })
})

describe('createOrderedPrinter', () => {
  it('prints what came together in the order of time, by itself', async () => {
    const printed: string[] = []
    const printer = createOrderedPrinter((text) => printed.push(text), 1)
    for (const time of [3, 1, 2]) printer.add({ time, text: String(time) })
    expect(printed).toEqual([])
    await vi.waitFor(() => expect(printed).toEqual(['1', '2', '3']))
    printer.add({ time: 0, text: 'late' })
    printer.flush()
    expect(printed.at(-1)).toBe('late')
  })
})
