import { TestClock } from '@thv/kernel/clock'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLineLog } from './line-log.ts'

const setUp = (options: { maxLineLength?: number; linesPerSecond?: number; burst?: number } = {}) => {
  const lines: string[] = []
  const clock = new TestClock()
  const log = createLineLog({ write: (line) => lines.push(line), clock, ...options })
  return { lines, clock, log, push: (text: string) => log.push(Buffer.from(text)) }
}

describe('createLineLog', () => {
  it('gives the same lines, however the bytes are cut', () => {
    const text = 'first\r\n\nzweite Zeile mit ü und 🙂\nlast'
    fc.assert(
      fc.property(fc.array(fc.nat(text.length + 8), { maxLength: 6 }), (cuts) => {
        const { lines, log } = setUp()
        const bytes = Buffer.from(text)
        const places = [...new Set([0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length])].sort((a, b) => a - b)
        places.slice(1).forEach((end, index) => {
          log.push(bytes.subarray(places[index], end))
        })
        log.end()
        expect(lines).toEqual(['first', 'zweite Zeile mit ü und 🙂', 'last'])
      }),
    )
  })

  it('cuts a line that is too long and keeps nothing of the rest', () => {
    const { lines, push, log } = setUp({ maxLineLength: 5 })
    push('123')
    push('4567890')
    push('1234567890\nok\n')
    log.end()
    expect(lines).toEqual(['12345…', 'ok'])
  })

  it('leaves out lines that are too many, says how many, and goes on when there is room', async () => {
    const { lines, push, log, clock } = setUp({ linesPerSecond: 1, burst: 2 })
    push('a\nb\nc\nd\n')
    expect(lines).toEqual(['a', 'b'])
    await clock.advance(1_000)
    push('e\nf\n')
    log.end()
    expect(lines).toEqual(['a', 'b', '(2 lines were left out: too many)', 'e', '(1 lines were left out: too many)'])
    expect(log.dropped).toBe(3)
  })

  it('takes colours and control characters out', () => {
    const { lines, push } = setUp()
    push('\u001b[31mred\u001b[0m \u0007bell\u2028fake line\n')
    expect(lines).toEqual(['red  bell fake line'])
  })
})
