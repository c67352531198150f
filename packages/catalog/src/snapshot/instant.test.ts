import { runAtOnce, sortInSteps } from '@thv/kernel/steps'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareCodePoints } from '../text.ts'
import { createInstantParser, parseInstant } from './instant.ts'

describe('parseInstant', () => {
  it.each([
    ['2025-08-07T13:15:04.280Z', 1_754_572_504_280, 0],
    ['2025-08-07T15:15:04.28+02:00', 1_754_572_504_280, 0],
    ['2025-08-07t13:15:04.280000999z', 1_754_572_504_280, 999],
    ['2016-12-31T23:59:60Z', 1_483_228_800_000, 0],
    ['1969-12-31T23:59:59.9999Z', -1, 900_000],
  ])('%s', (text, ms, ns) => {
    expect(parseInstant(text)).toEqual({ ms, ns })
  })

  it.each([
    '',
    '2025-08-07',
    '2025-02-30T00:00:00Z',
    '2025-08-07T13:15:04',
    '2025-08-07 13:15:04Z',
    '2025-08-07T24:00:00Z',
    '2025-08-07T13:15:04+24:00',
  ])('refuses %j', (text) => {
    expect(parseInstant(text)).toBeUndefined()
  })
})

describe('orders', () => {
  it('compares as the UTF-8 bytes do', () => {
    const text = fc.string({ unit: 'binary', maxLength: 6 })
    fc.assert(
      fc.property(text, text, (a, b) => void expect(Math.sign(compareCodePoints(a, b))).toBe(Buffer.from(a).compare(Buffer.from(b)))),
    )
  })

  it('sorts in steps as at once, and keeps equals in their order', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50), { minLength: 0, maxLength: 3000, size: 'max' }), (numbers) => {
        const items = numbers.map((value, place) => ({ value, place }))
        const byValue = (a: { value: number }, b: { value: number }) => a.value - b.value
        expect(runAtOnce(sortInSteps(items, byValue))).toEqual(items.toSorted(byValue))
      }),
      { numRuns: 30 },
    )
  })
})

it('a parser that remembers gives the same, however many texts there are', () => {
  const parse = createInstantParser()
  const texts = Array.from({ length: 600 }, (_, i) => (i % 7 === 0 ? 'no time' : new Date(i * 1000).toISOString()))
  for (const text of [...texts, ...texts.toReversed()]) expect(parse(text)).toEqual(parseInstant(text))
})
