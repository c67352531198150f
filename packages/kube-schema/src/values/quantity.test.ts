import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseQuantity, quantityOf, quantityText, roundedToMilli } from './quantity.ts'

const written = (text: string) => quantityText(quantityOf(text))

describe('quantities', () => {
  it.each([
    ['0', '0'],
    ['1000m', '1'],
    ['0.5', '500m'],
    ['1000', '1k'],
    ['1200', '1200'],
    ['1e3', '1e3'],
    ['1024Mi', '1Gi'],
    ['1.5Gi', '1536Mi'],
    ['0.5Ki', '512'],
    ['0.1Gi', '107374182400m'],
    ['100M', '100M'],
    ['-1', '-1'],
    ['+1', '1'],
    ['.5', '500m'],
    ['0.0000000001', '1n'],
  ])('%s is written %s', (text, expected) => {
    expect(written(text)).toBe(expected)
  })

  it.each(['', 'much', '1.2.3', ' 1', '1 ', '--1', '1Gii', '1e', '1Kk', '1ki', '1i'])('%j is none', (text) => {
    expect(parseQuantity(text)).toHaveProperty('problem')
  })

  it('are rounded up to thousandths where they are resources', () => {
    expect(quantityText(roundedToMilli(quantityOf('0.0001')))).toBe('1m')
  })

  it('keep their value when they are written', () => {
    const texts = fc
      .tuple(fc.integer({ min: -1_000_000, max: 1_000_000 }), fc.constantFrom('', 'm', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi', 'e3', 'e-3'))
      .map(([number, suffix]) => `${number}${suffix}`)
    fc.assert(
      fc.property(texts, (text) => {
        expect(quantityOf(written(text)).nanos).toBe(quantityOf(text).nanos)
        expect(written(written(text))).toBe(written(text))
      }),
    )
  })

  it('never become huge numbers', () => {
    expect(quantityOf('9e999').nanos).toBe(((1n << 63n) - 1n) * 1_000_000_000n)
  })
})
