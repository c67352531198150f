import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { boundedTime, TimeExceeded } from './bounded-time.ts'
import { GoRegexpError, goRegexp } from './go-regexp.ts'

describe('goRegexp', () => {
  it.each([
    ['^a.c$', 'abc', true],
    ['^a.c$', 'a\nc', false],
    ['^a.c$', 'a\u2028c', true],
    ['(?s)^a.c$', 'a\nc', true],
    ['(?i)^abc$', 'ABC', true],
    ['^[[:alpha:]_]+$', 'a_b', true],
    ['^[[:digit:]-]+$', '1-2', true],
    ['^\\s$', '\v', false],
    ['^\\pL+$', 'äß', true],
    ['^\\p{Greek}$', 'λ', true],
    ['^\\Qa.b\\E$', 'a.b', true],
    ['^\\Qa.b\\E$', 'axb', false],
    ['^\\x41\\x{1F600}$', 'A😀', true],
    ['^(?P<n>x)$', 'x', true],
    ['^a{2}$', 'aa', true],
    ['^a{x}$', 'a{x}', true],
    ['^[]a]+$', ']a', true],
    ["^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", 'X-Header', true],
    ['\\Aab\\z', 'ab', true],
    ['^\\-\\_\\%$', '-_%', true],
    ['^.$', '😀', true],
  ])('%s on %j: %s', (pattern, text, matches) => expect(goRegexp(pattern).test(text)).toBe(matches))

  it.each(['(', ')', 'a**', '[a', '(?=x)', '(?!x)', '(?<=x)', '(a)\\1', 'a{1001}', '*a', '[z-a]', 'a\\', '\\y'])(
    'refuses %s as RE2 does',
    (pattern) => {
      expect(() => goRegexp(pattern)).toThrow(GoRegexpError)
    },
  )

  it('gives plain text back as itself', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const quoted = text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
        expect(goRegexp(`^${quoted}$`).test(text)).toBe(true)
      }),
      { numRuns: 200 },
    )
  })
})

describe('boundedTime', () => {
  it('stops a pattern that would run for ages', () => {
    expect(() => boundedTime(50, () => goRegexp('^(a+)+$').test(`${'a'.repeat(60)}b`))).toThrow(TimeExceeded)
  })

  it('gives back what the work gives, and its errors as they are', () => {
    expect(boundedTime(1000, () => 7)).toBe(7)
    const error = new RangeError('mine')
    expect(() =>
      boundedTime(1000, () => {
        throw error
      }),
    ).toThrow(error)
    expect(boundedTime(1000, () => boundedTime(1, () => 'inner'))).toBe('inner')
  })
})
