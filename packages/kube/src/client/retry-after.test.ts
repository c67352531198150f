import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseRetryAfter } from './retry-after.ts'

const now = Date.UTC(2026, 0, 2, 3, 4, 5)

describe('parseRetryAfter', () => {
  it.each<[string | string[] | undefined, number | undefined]>([
    [undefined, undefined],
    ['', undefined],
    ['0', 0],
    ['7', 7],
    [' 7 ', 7],
    [['3', '9'], 3],
    ['86400000', 86_400_000],
    ['-5', undefined],
    ['1.5', undefined],
    ['1e3', undefined],
    ['soon', undefined],
    ['99999999999999999999999999', undefined],
    ['Fri, 02 Jan 2026 03:04:35 GMT', 30],
    ['Fri, 02 Jan 2026 03:00:00 GMT', 0],
    ['Friday', undefined],
    ['2026-01-02T03:04:35Z', undefined],
  ])('%j is %s', (header, seconds) => {
    expect(parseRetryAfter(header, now)).toBe(seconds)
  })

  it('gives nothing but undefined or a whole number of seconds that is not negative', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const seconds = parseRetryAfter(text, now)
        expect(seconds === undefined || (Number.isInteger(seconds) && seconds >= 0)).toBe(true)
      }),
    )
  })
})
