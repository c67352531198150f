import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJsonText } from './json-text.ts'

describe('parseJsonText', () => {
  it('reads what JSON.parse reads, with or without a byte order mark', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.boolean(), (value, mark) => {
        const text = JSON.stringify(value, undefined, 2)
        expect(parseJsonText(mark ? `\ufeff${text}` : text)).toEqual({ ok: true, value: JSON.parse(text) })
      }),
    )
  })

  it.each([
    ['', 1, 1],
    ['{', 1, 2],
    ['{"a": 1,}', 1, 9],
    ['{"a": x}', 1, 7],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3],
    ['[1, 2', 1, 6],
    ['[1 2]', 1, 4],
    ['{"a" 1}', 1, 6],
    ['{"a": "un\nclosed"}', 1, 10],
    ['{"a": "\\x"}', 1, 8],
    ['{"a": 1} extra', 1, 10],
    ['{"a": tru}', 1, 7],
    ['[}', 1, 2],
    ['{]', 1, 2],
    ['[01]', 1, 3],
    ["{'a': 1}", 1, 2],
    [':', 1, 1],
  ])('says where %j goes wrong', (text, line, column) => {
    expect(parseJsonText(text)).toEqual({ ok: false, line, column })
  })

  it('finds a place inside every text that JSON.parse refuses, and only there', () => {
    const almost = fc
      .tuple(fc.jsonValue(), fc.nat(), fc.constantFrom('', '"', '}', ',', 'x', '\\', '\n', '0'))
      .map(([value, at, insert]) => {
        const text = JSON.stringify(value)
        const place = at % (text.length + 1)
        return text.slice(0, place) + insert + text.slice(place + (insert === '' ? 1 : 0))
      })
    fc.assert(
      fc.property(almost, (text) => {
        const parsed = parseJsonText(text)
        if (parsed.ok) return
        const lines = text.split('\n')
        expect(parsed.line).toBeLessThanOrEqual(lines.length)
        expect(parsed.column).toBeLessThanOrEqual((lines[parsed.line - 1]?.length ?? 0) + 1)
      }),
    )
  })
})
