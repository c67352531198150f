import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareCodePoints, cutAtWord, timestampProblem, uriProblem } from './text.ts'

describe('cutAtWord', () => {
  it.each([
    ['short', 10, 'short'],
    ['exactly ten', 11, 'exactly ten'],
    ['one two three', 9, 'one two…'],
    ['one two three', 8, 'one two…'],
    ['one two, three', 10, 'one two…'],
    ['incomprehensibilities', 8, 'incompr…'],
    ['a incomprehensibilities', 10, 'a incompr…'],
  ])('%j at %i', (text, max, cut) => {
    expect(cutAtWord(text, max)).toBe(cut)
  })

  it('never exceeds the limit, and what it keeps is the beginning', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), fc.integer({ min: 2, max: 40 }), (text, max) => {
        const cut = cutAtWord(text, max)
        expect(Array.from(cut).length).toBeLessThanOrEqual(max)
        expect(cut === text || text.startsWith(cut.slice(0, -1))).toBe(true)
      }),
    )
  })
})

it.each(['2026-01-31T00:00:00Z', '2024-02-29T23:59:59.123456+05:30'])('%s is a timestamp', (text) => {
  expect(timestampProblem(text)).toBeUndefined()
})

it.each(['2026-01-31', '2026-02-29T00:00:00Z', '2026-13-01T00:00:00Z', '2026-01-01T24:00:00Z', '2026-01-01 00:00:00Z', 'x'])(
  '%s is none',
  (text) => {
    expect(timestampProblem(text)).toBeDefined()
  },
)

it('takes absolute URIs only', () => {
  expect(['https://h/a?b#c', 'urn:x:y', 'https://h/%20'].map(uriProblem)).toEqual([undefined, undefined, undefined])
  for (const text of ['', '/a', 'h', 'https://h/a b', 'https://h/<x>', 'https://h/%2', 'https://ü/'])
    expect(uriProblem(text)).toBe('must be an absolute URI')
})

it('orders by code point where UTF-16 would not', () => {
  expect(compareCodePoints('\u{1f600}', '\uffff')).toBeGreaterThan(0)
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '\u{d7ff}', '\u{e000}', '\u{ffff}', '\u{10000}', '\u{10ffff}') })
  const codes = (text: string) => Array.from(text, (point) => point.codePointAt(0) ?? 0)
  fc.assert(
    fc.property(text, text, (a, b) => {
      const [x, y] = [codes(a), codes(b)]
      const i = x.findIndex((code, at) => code !== y[at])
      const expected = i === -1 ? x.length - y.length : (x[i] ?? 0) - (y[i] ?? -1)
      expect(Math.sign(compareCodePoints(a, b))).toBe(Math.sign(expected))
    }),
  )
})
