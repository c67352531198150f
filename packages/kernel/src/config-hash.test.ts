import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, configHash } from './config-hash.ts'
import { jsonEqual } from './json.ts'

const shuffled = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(shuffled)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, member]) => [key, shuffled(member)] as const)
      .reverse(),
  )
}

describe('configHash', () => {
  it('is a short text that stays the same over releases: a change would replace every pod', () => {
    expect(configHash({ b: [1, { d: null, c: 'x' }], a: true })).toBe(configHash({ a: true, b: [1, { c: 'x', d: null }] }))
    expect(configHash({})).toBe('44136fa355b3678a')
    expect(configHash(undefined)).toMatch(/^[0-9a-f]{16}$/)
  })

  it('does not see the order of members, sees everything else', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        expect(configHash(shuffled(a))).toBe(configHash(a))
        expect(configHash(a) === configHash(b)).toBe(jsonEqual(JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b))))
      }),
    )
  })

  it('takes members that are undefined for absent, and odd names for names', () => {
    expect(configHash({ a: 1, b: undefined })).toBe(configHash({ a: 1 }))
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"y":1,"x":2},"10":0,"9":0}'))).toBe(
      '{"9":0,"10":0,"__proto__":{"x":2,"y":1},"b":1}',
    )
  })
})
