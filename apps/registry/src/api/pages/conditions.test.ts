import { describe, expect, it } from 'vitest'
import { acceptsGzip, matchesTag } from './conditions.ts'

describe('conditions', () => {
  it.each([
    ['W/"a"', true],
    ['"a"', true],
    ['"b", W/"a"', true],
    ['*', true],
    ['"b"', false],
    ['a', false],
    ['', false],
    ['W/"A"', false],
  ])('If-None-Match: %s → %s', (condition, expected) => expect(matchesTag(condition, 'W/"a"')).toBe(expected))

  it.each([
    [undefined, false],
    ['gzip', true],
    ['gzip, deflate, br', true],
    ['deflate, GZIP;q=0.5', true],
    ['gzip;q=0', false],
    ['gzip; q=0.000, *', false],
    ['*', true],
    ['*;q=0', false],
    ['br', false],
    ['identity', false],
    ['notgzip', false],
  ])('Accept-Encoding: %s → %s', (header, expected) => expect(acceptsGzip(header)).toBe(expected))

  it('does not remember without end', () => {
    for (let i = 0; i < 1_000; i++) acceptsGzip(`x-${i}`)
    expect(acceptsGzip('gzip')).toBe(true)
  })
})
