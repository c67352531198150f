import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatPiece, LineCutter, MAX_PIECE, parseLine } from './log-line.ts'

describe('LineCutter', () => {
  it('gives back all that was put in, however it is cut', () => {
    const text = fc.array(fc.constantFrom('a', 'bc', '\n', '\n\n', 'x'.repeat(MAX_PIECE), 'y'.repeat(MAX_PIECE + 1), 'ü'), {
      maxLength: 12,
    })
    fc.assert(
      fc.property(text, fc.array(fc.nat(40_000), { maxLength: 4 }), (pieces, cuts) => {
        const bytes = Buffer.from(pieces.join(''))
        let out = ''
        const cutter = new LineCutter((line, isWhole) => {
          expect(line.length).toBeLessThanOrEqual(MAX_PIECE)
          out += Buffer.from(line).toString('latin1') + (isWhole ? '\n' : '')
        })
        const places = [...new Set([0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length])].sort((a, b) => a - b)
        for (const [index, end] of places.slice(1).entries()) cutter.push(bytes.subarray(places[index], end))
        cutter.end()
        const whole = bytes.toString('latin1')
        expect(out).toBe(whole === '' || whole.endsWith('\n') ? whole : `${whole}\n`)
      }),
    )
  })
})

describe('a line of the log', () => {
  it('is read as it was written', () => {
    const line = formatPiece('stderr', Date.UTC(2026, 0, 2, 3, 4, 5, 6), Buffer.from('a b'), false)
    expect(line.toString()).toBe('2026-01-02T03:04:05.006000000Z stderr P a b\n')
    expect(parseLine(line.subarray(0, -1))).toEqual({
      time: '2026-01-02T03:04:05.006000000Z',
      stream: 'stderr',
      isWhole: false,
      text: Buffer.from('a b'),
    })
    for (const broken of ['', 'x', '2026-01-02T03:04:05.006000000Z', '2026-01-02T03:04:05.006000000Z stdxxx F a']) {
      expect(parseLine(Buffer.from(broken))).toBeUndefined()
    }
  })
})
