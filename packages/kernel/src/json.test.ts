import fc from 'fast-check'
import { expect, it } from 'vitest'
import { jsonEqual } from './json.ts'

it.each([
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
  [{ a: 1, b: undefined }, { a: 1 }, true],
  [{ a: null }, {}, false],
  [[1, 2], [2, 1], false],
  [[], {}, false],
  [{ a: [{ b: 1 }] }, { a: [{ b: 1 }] }, true],
  [{ a: [{ b: 1 }] }, { a: [{ b: '1' }] }, false],
  [null, undefined, false],
  ['a', 'a', true],
])('%j and %j: %s', (a, b, same) => expect(jsonEqual(a, b)).toBe(same))

it('agrees with the sorted text for any JSON', () => {
  fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => void expect(jsonEqual(a, b)).toBe(sorted(a) === sorted(b))))
  fc.assert(fc.property(fc.jsonValue(), (a) => void expect(jsonEqual(a, structuredClone(a))).toBe(true)))
})

function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, member) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
}
