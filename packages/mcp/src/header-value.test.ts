import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeHeaderValue, encodeHeaderValue } from './header-value.ts'

const wellFormed = fc.oneof(
  fc.string({ unit: 'binary' }).map((s) => s.toWellFormed()),
  fc.string(),
  fc.array(fc.constantFrom('=?base64?', '?=', ' ', '\t', 'YQ==', 'é', '\n', '\0')).map((parts) => parts.join('')),
)

describe('header values', () => {
  it('come back as they went', () => {
    fc.assert(fc.property(wellFormed, (text) => void expect(decodeHeaderValue(encodeHeaderValue(text))).toBe(text)))
  })

  it('are always fit for a header, and survive white space around them', () => {
    fc.assert(
      fc.property(wellFormed, (text) => {
        const value = encodeHeaderValue(text)
        expect(value).toMatch(/^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/)
        expect(decodeHeaderValue(` \t${value}\t `)).toBe(text)
      }),
    )
  })

  it.each([
    ['echo', 'echo'],
    ['with space', 'with space'],
    ['tab\tinside', 'tab\tinside'],
    ['é', '=?base64?w6k=?='],
    ['日本', '=?base64?5pel5pys?='],
    [' a', '=?base64?IGE=?='],
    ['a\n', '=?base64?YQo=?='],
    ['', '=?base64??='],
    ['=?base64?YQ==?=', '=?base64?PT9iYXNlNjQ/WVE9PT89?='],
    ['=?base64?=', '=?base64?PT9iYXNlNjQ/PQ==?='],
    ['=?base64?YQ==', '=?base64?YQ=='],
    ['YQ==?=', 'YQ==?='],
  ])('writes %j as %j', (text, value) => {
    expect(encodeHeaderValue(text)).toBe(value)
    expect(decodeHeaderValue(value)).toBe(text)
  })

  it.each([
    ['=?base64?YQ?=', 'no padding'],
    ['=?base64?YQ=?=', 'half the padding'],
    ['=?base64?YQ===?=', 'too much padding'],
    ['=?base64?YR==?=', 'bits behind the end'],
    ['=?base64?Y Q=?=', 'a space'],
    ['=?base64?YQ__?=', 'the URL alphabet'],
    ['=?base64?!!!!?=', 'no alphabet at all'],
    ['=?base64?/w==?=', 'bytes that are not UTF-8'],
    ['=?base64?7aCA?=', 'half a surrogate pair'],
    ['caf\u00e9', 'a raw byte over 0x7e'],
    ['a\u0000', 'a control character'],
    ['a\u007f', 'delete'],
  ])('refuses %j: %s', (value) => {
    expect(decodeHeaderValue(value)).toBeUndefined()
  })

  it.each(['=?BASE64?YQ==?=', '=?base64?=', '=?utf-8?b?YQ==?=', '=?base64?YQ==', 'x=?base64?YQ==?=', 'YQ=='])(
    'takes %j literally',
    (value) => {
      expect(decodeHeaderValue(value)).toBe(value)
    },
  )

  it('never throws', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        (s) => void expect(['string', 'undefined']).toContain(typeof decodeHeaderValue(`=?base64?${s}?=`)),
      ),
    )
  })
})
