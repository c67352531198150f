import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compactValue, isListAt, isObjectAt, itemsAt, membersAt, repeatedMember, wholeValue } from './json-scan.ts'

const bytes = (text: string) => Buffer.from(text)

/** White space wherever JSON allows it. */
const spacing = fc.constantFrom('', ' ', '\n  ', '\t', '\r\n')

// JSON has no minus zero as JavaScript writes it.
const written = fc.jsonValue({ maxDepth: 5 }).map((value): unknown => JSON.parse(JSON.stringify(value)))

describe('scanning JSON', () => {
  it('finds every value of any document, and compacts it to what a parser would', () => {
    fc.assert(
      fc.property(written, spacing, fc.constantFrom(0, 2, '\t'), (value, around, indent) => {
        const text = bytes(`${around}${JSON.stringify(value, null, indent)}${around}`)
        const whole = wholeValue(text)
        expect(Buffer.from(compactValue(text, whole)).toString()).toBe(JSON.stringify(value))
        const cut = ({ start, end }: { start: number; end: number }): unknown => JSON.parse(text.toString('utf8', start, end))
        if (isListAt(text, whole.start)) expect([...itemsAt(text, whole.start)].map(cut)).toEqual(value)
        if (isObjectAt(text, whole.start)) {
          const members = [...membersAt(text, whole.start)].map((found) => [found.name, cut(found)])
          expect(Object.fromEntries(members)).toEqual(value)
        }
        expect(repeatedMember(text)).toBeUndefined()
      }),
    )
  })

  it('keeps numbers, escapes and order as they are written', () => {
    const text = bytes('{ "b" : 1.10e+2 , "10" : 12345678901234567890, "a" : "\\u0041  \\" \\\\" , "2":[ ] }')
    expect(Buffer.from(compactValue(text, wholeValue(text))).toString()).toBe(
      '{"b":1.10e+2,"10":12345678901234567890,"a":"\\u0041  \\" \\\\","2":[]}',
    )
  })

  it('never does anything but find or refuse, whatever it is given', () => {
    const pieces = fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', ' ', '1', 'true', 'é', '\u0000', '"a":')
    fc.assert(
      fc.property(fc.array(pieces), (parts) => {
        const text = bytes(parts.join(''))
        try {
          const whole = wholeValue(text)
          for (const _ of isObjectAt(text, whole.start) ? membersAt(text, whole.start) : []);
          for (const _ of isListAt(text, whole.start) ? itemsAt(text, whole.start) : []);
        } catch (error) {
          expect(error).toMatchObject({ code: 'source_failed' })
        }
      }),
    )
  })

  it.each([
    ['{"a":1', 'ends in the middle (byte 6)'],
    ['{"a', 'ends in the middle of a string (byte 3)'],
    ['[1}', 'closes a bracket of another kind (byte 2)'],
    ['[] []', 'has more behind its end (byte 3)'],
    ['', 'ends in the middle (byte 0)'],
    ['<html>', 'needs a value (byte 0)'],
  ])('says where %j is broken', (text, problem) => {
    expect(() => wholeValue(bytes(text))).toThrow(`the document is not JSON: it ${problem}`)
  })

  it('finds a member that is there twice, however it is spelled and however deep', () => {
    expect(repeatedMember(bytes('{"a":[{"name":1,"n\\u0061me":2}]}'))).toBe('name')
    expect(repeatedMember(bytes('{"a":{"b":1},"b":{"a":"a"},"c":["c","c"]}'))).toBeUndefined()
  })

  it('walks a million levels without recursion, and no more', () => {
    const nested = (depth: number) => bytes('['.repeat(depth) + ']'.repeat(depth))
    expect(wholeValue(nested(1_000_000))).toEqual({ start: 0, end: 2_000_000 })
    expect(() => wholeValue(nested(1_000_001))).toThrow(expect.objectContaining({ code: 'source_limit' }))
  })
})
