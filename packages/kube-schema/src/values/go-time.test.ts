import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MICROS_LAYOUT, SECONDS_LAYOUT, timeProblem } from './go-time.ts'

describe('times on the wire', () => {
  it('are good when JavaScript made them', () => {
    const dates = fc.date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true })
    fc.assert(
      fc.property(dates, (date) => {
        const text = date.toISOString()
        expect(timeProblem(text, SECONDS_LAYOUT)).toBeUndefined()
        expect(timeProblem(`${text.slice(0, 23)}000Z`, MICROS_LAYOUT)).toBeUndefined()
      }),
    )
  })

  it.each([
    ['2020-01-01T00:00:00+02:00', undefined],
    ['2020-02-29T00:00:00Z', undefined],
    ['2021-02-29T00:00:00Z', 'parsing time "2021-02-29T00:00:00Z": day out of range'],
    ['2020-01-01T24:00:00Z', 'parsing time "2020-01-01T24:00:00Z": hour out of range'],
    ['2020-01-01T00:00:00Zx', 'parsing time "2020-01-01T00:00:00Zx": extra text: "x"'],
    ['2020-1-1', `parsing time "2020-1-1" as "${SECONDS_LAYOUT}": cannot parse "1-1" as "01"`],
    ['', `parsing time "" as "${SECONDS_LAYOUT}": cannot parse "" as "2006"`],
  ])('%j', (text, expected) => {
    expect(timeProblem(text, SECONDS_LAYOUT)).toBe(expected)
  })
})
