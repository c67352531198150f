import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatDuration, parseDuration, tryParseDuration } from './duration.ts'
import { isThvError } from './errors.ts'

const LEGAL: [string, number][] = [
  ['0', 0],
  ['+0', 0],
  ['-0', 0],
  ['0s', 0],
  ['5s', 5_000],
  ['+5s', 5_000],
  ['-2m', -120_000],
  ['1h30m', 5_400_000],
  ['250ms', 250],
  ['1.5s', 1_500],
  ['.5s', 500],
  ['1.s', 1_000],
  ['-.5s', -500],
  ['1ns', 0.000001],
  ['1us', 0.001],
  ['1\u00b5s', 0.001],
  ['1\u03bcs', 0.001],
  ['3m2m1s', 301_000],
  ['1h2m3s4ms5us6ns', 3_723_004.005006],
  ['00001s', 1_000],
  [`${'0'.repeat(40)}1s`, 1_000],
  ['0.9ns', 0],
  ['-0.9ns', 0],
  ['0.3333333333333333333h', 1_200_000], // Go's floating point, not the exact fraction
  ['0.830103483285477580700h', 2_988_372.539827],
  [`1.${'0'.repeat(400)}1h`, 3_600_000],
  [`0.${'3'.repeat(400)}h`, 1_200_000],
  ['9223372036854775807ns', 9_223_372_036_854.775],
  ['2562047h47m16.854775807s', 9_223_372_036_854.775],
  ['-9223372036854775808ns', -9_223_372_036_854.775],
]

const ILLEGAL = [
  ...['', '+', '-', '1', '1.5', '-1', '00', '.', '-.', 's', '.s', '+.s', '--1s', '+-1s', '1..5s', '1.5.5s'],
  ...['1d', '1S', '1Ms', '1e3s', '1h 30m', ' 1s', '1s ', '\t1s', '1s\n', '1 s', '1,5s', '1h30', '\uff11s', 'Infinity', 'NaN'],
  ...[
    '9223372036854775808ns',
    '-9223372036854775809ns',
    '2562048h',
    '9223372036854.775808ms',
    `${'9'.repeat(30)}ns`,
    '9223372036s854775808ns',
  ],
]

describe('parseDuration', () => {
  it.each(LEGAL)('reads %j', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
    expect(tryParseDuration(text)).toBe(ms)
  })

  it.each(ILLEGAL)('refuses %j', (text) => {
    expect(tryParseDuration(text)).toBeUndefined()
    expect(() => parseDuration(text)).toThrow(expect.objectContaining({ code: 'duration_invalid' }))
  })

  it('says what is wrong, and quotes no more than a little of it', () => {
    expect(() => parseDuration('10')).toThrow('invalid duration "10": a unit is missing (ns, us, ms, s, m, h)')
    expect(() => parseDuration('10d')).toThrow('invalid duration "10d": unknown unit "d" (known: ns, us, ms, s, m, h)')
    try {
      parseDuration('x'.repeat(100_000))
      expect.unreachable('a long text was read as a duration')
    } catch (e) {
      expect(isThvError(e, 'duration_invalid') && e.message.length).toBeLessThan(300)
    }
  })

  it('reads any text without another error than its own', () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'0123456789.+-nusµmh') }))
    fc.assert(
      fc.property(text, (s) => {
        const ms = tryParseDuration(s)
        expect(ms === undefined || Number.isFinite(ms)).toBe(true)
        if (ms === undefined) expect(() => parseDuration(s)).toThrow(expect.objectContaining({ code: 'duration_invalid' }))
        else expect(parseDuration(s)).toBe(ms)
      }),
    )
  })
})

describe('formatDuration', () => {
  it.each([
    [0, '0s'],
    [-0, '0s'],
    [0.000001, '1ns'],
    [0.000999, '999ns'],
    [0.0011, '1.1µs'],
    [0.25, '250µs'],
    [1.5, '1.5ms'],
    [2.2, '2.2ms'],
    [999.999999, '999.999999ms'],
    [1_000, '1s'],
    [3_300, '3.3s'],
    [60_000, '1m0s'],
    [245_000, '4m5s'],
    [245_001, '4m5.001s'],
    [3_600_000, '1h0m0s'],
    [5_400_000, '1h30m0s'],
    [18_367_001, '5h6m7.001s'],
    [86_400_000, '24h0m0s'],
    [-120_000, '-2m0s'],
    [-0.5, '-500µs'],
  ])('prints %d ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 9_223_372_036_855, -9_223_372_036_855])('refuses %d', (ms) => {
    expect(() => formatDuration(ms)).toThrow(expect.objectContaining({ code: 'duration_invalid' }))
  })

  it('is undone by parseDuration, for every whole number of nanoseconds', () => {
    const spans = [fc.bigInt({ min: -(10n ** 12n), max: 10n ** 12n }), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })]
    fc.assert(
      fc.property(fc.oneof(...spans), (ns) => {
        const ms = parseDuration(`${ns}ns`)
        expect(parseDuration(formatDuration(ms))).toBe(ms)
      }),
      { numRuns: 1_000 },
    )
  })

  it('is undone by parseDuration, for every whole number of milliseconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: -9_223_372_036_854, max: 9_223_372_036_854 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms)
      }),
      { numRuns: 1_000 },
    )
  })
})
