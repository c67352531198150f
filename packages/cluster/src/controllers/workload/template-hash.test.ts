import { describe, expect, it } from 'vitest'
import { canonicalJson, fnv1, fnv1a, safeName, templateHash } from './template-hash.ts'

describe('hashes', () => {
  it.each([
    ['', 0x811c9dc5, 0x811c9dc5],
    ['a', 0xe40c292c, 0x050c5d7e],
    ['foobar', 0xbf9cf968, 0x31f0b262],
  ])('of "%s" are those of FNV', (text, a, one) => {
    expect(fnv1a(Buffer.from(text))).toBe(a)
    expect(fnv1(Buffer.from(text))).toBe(one)
  })

  it('are spelled as Kubernetes does', () => {
    expect(safeName(2_346_782_313)).toBe('2346782313'.replace(/[0-9]/g, (digit) => '456789bcdf'[Number(digit)] ?? ''))
  })

  it('do not depend on the order of members, and do on everything else', () => {
    const hash = templateHash({ a: 1, b: { c: [1, 2], d: undefined } }, undefined)
    expect(templateHash({ b: { c: [1, 2] }, a: 1 }, undefined)).toBe(hash)
    expect(templateHash({ b: { c: [2, 1] }, a: 1 }, undefined)).not.toBe(hash)
    expect(templateHash({ a: 1, b: { c: [1, 2] } }, 0)).not.toBe(hash)
    expect(templateHash({ a: 1, b: { c: [1, 2] } }, 1)).not.toBe(templateHash({ a: 1, b: { c: [1, 2] } }, 0))
    expect(canonicalJson({ b: 1, a: [{ d: 1, c: 2 }] })).toBe('{"a":[{"c":2,"d":1}],"b":1}')
  })
})
