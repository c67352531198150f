import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { scanJson, skipSpace, stringEnd, valueEnd } from './json-scan.ts'

/** By recursion over the parsed value, the obvious way. */
function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

function membersAt(value: unknown, depth: number): number {
  if (typeof value !== 'object' || value === null) return 0
  if (depth === 1) return Array.isArray(value) ? 0 : Object.keys(value).length
  return Object.values(value).reduce<number>((sum, child) => sum + membersAt(child, depth - 1), 0)
}

const json = fc.json({ maxDepth: 6, stringUnit: 'binary' })
const indent = fc.constantFrom(undefined, 1, '\t')

describe('scanJson', () => {
  it('agrees with the parsed value on depth and members', () => {
    fc.assert(
      fc.property(json, indent, (text, space) => {
        const value = JSON.parse(text)
        const pretty = JSON.stringify(value, undefined, space)
        const depth = depthOf(value)
        expect(scanJson(pretty, depth)).toEqual({ tooDeep: false, members: [1, 2, 3].map((d) => membersAt(value, d)) })
        if (depth > 0) expect(scanJson(pretty, depth - 1).tooDeep).toBe(true)
      }),
    )
  })

  it('counts repeated names each time', () => {
    expect(scanJson('{"a":1,"a":{"b":2,"b":{"c":1,"c":2,"d":{"e":1}}}}', 9).members).toEqual([2, 2, 3])
  })

  it('ignores structure inside strings', () => {
    const text = JSON.stringify({ a: '{[{[":,\\"}]', '{"b\\': ['"', '\\'] })
    expect(scanJson(text, 2)).toEqual({ tooDeep: false, members: [2, 0, 0] })
  })

  it('needs no stack for a million brackets, and survives what is not JSON', () => {
    expect(scanJson('['.repeat(1_000_000), 128).tooDeep).toBe(true)
    expect(scanJson(']'.repeat(1_000_000), 128).tooDeep).toBe(false)
    expect(scanJson('"abc', 1).tooDeep).toBe(false)
    expect(scanJson('\\"\\', 1).tooDeep).toBe(false)
    fc.assert(fc.property(fc.string({ unit: 'binary' }), fc.nat(3), (text, depth) => typeof scanJson(text, depth).tooDeep === 'boolean'))
  })
})

describe('stringEnd and valueEnd', () => {
  it('find the end of every value, whatever follows', () => {
    fc.assert(
      fc.property(json, fc.constantFrom('', ',', ']', '}', ' ,', '\n'), (text, rest) => {
        expect(valueEnd(text + rest, 0)).toBe(text.length)
      }),
    )
  })

  it('end at the text if there is no end', () => {
    expect(stringEnd('"abc\\"', 0)).toBe(6)
    expect(valueEnd('{"a":[1', 0)).toBe(7)
    expect(skipSpace(' \t\r\n', 0)).toBe(4)
  })

  it('is linear in quotes and backslashes', () => {
    const text = JSON.stringify('\\"'.repeat(500_000))
    expect(stringEnd(text, 0)).toBe(text.length - 1)
  })
})
