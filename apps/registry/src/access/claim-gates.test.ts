import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { claimsKey, covers, coversAll, type HeldClaims, matchesRole } from './claim-gates.ts'

describe('gates', () => {
  it.each<[Claims | undefined, HeldClaims, boolean, boolean]>([
    [undefined, { team: 'a' }, false, false],
    [{}, { team: 'a' }, false, false],
    [{ team: ['a', 'b'] }, { team: 'a' }, true, false],
    [{ team: ['a', 'b'] }, { team: ['a', 'b', 'c'] }, true, true],
    [{ team: ['a', 'b'] }, { team: 'c' }, false, false],
    [{ team: 'a' }, { team: ['b', 'a'] }, true, true],
    [{ team: 'a', org: 'x' }, { team: 'a' }, false, false],
    [{ team: 'a', org: 'x' }, { team: 'a', org: 'x' }, true, true],
    [{ team: [] }, { team: 'z' }, true, true],
    [{ team: [] }, { team: [] }, true, true],
    [{ team: [] }, {}, false, false],
    [{ team: 'a' }, { team: [] }, false, false],
    [{ team: 'a' }, { Team: 'a' }, false, false],
    [{ team: 'A' }, { team: 'a' }, false, false],
    // A value that is neither a text nor a list of texts opens nothing.
    [{ team: 5 } as unknown as Claims, { team: 5 }, false, false],
    [{ team: null } as unknown as Claims, { team: 'a' }, false, false],
    [{ team: ['a', 5] } as unknown as Claims, { team: 'a' }, false, false],
    [{ team: 'true' }, { team: true }, false, false],
    [{ team: [] }, { team: null }, false, false],
    [{ team: 'a' }, { team: { a: 1 } }, false, false],
    // Names that every object has.
    [{ constructor: [] } as unknown as Claims, {}, false, false],
    [JSON.parse('{"__proto__":[]}'), {}, false, false],
    [{ toString: 'x' } as unknown as Claims, { team: 'a' }, false, false],
    // Another in every token.
    [{ jti: '1' }, { jti: '1' }, false, false],
  ])('%j for %j: seen %s, may be set %s', (claims, held, seen, settable) => {
    expect(covers(held, claims)).toBe(seen)
    expect(coversAll(held, claims)).toBe(settable)
  })
})

describe('role claims', () => {
  it.each<[Claims, HeldClaims, boolean]>([
    [{}, { team: 'a' }, false],
    [{ team: [] }, { team: 'a' }, false],
    [{ team: 'a', org: [] }, { team: 'a', org: 'x' }, false],
    [{ team: 'a' }, { team: 'a' }, true],
    [{ team: ['a', 'b'] }, { team: ['b', 'c'] }, true],
    [{ team: 'a', org: 'x' }, { team: 'a' }, false],
    [{ team: 'a', org: ['x', 'y'] }, { team: ['a'], org: 'y' }, true],
  ])('%j for %j: %s', (claims, held, expected) => {
    expect(matchesRole(held, claims)).toBe(expected)
  })
})

describe('in general', () => {
  const name = fc.constantFrom('team', 'org', 'jti')
  const text = fc.constantFrom('a', 'b', 'c')
  const value = fc.oneof(text, fc.array(text, { maxLength: 3 }))
  const claims = fc.dictionary(name, value, { maxKeys: 3 })
  const held = fc.dictionary(name, fc.oneof(value, fc.constant(5), fc.constant(null)), { maxKeys: 3 })

  it('a caller sees what it may set, and a matching role would see it too', () => {
    fc.assert(
      fc.property(held, claims, (own, wanted) => {
        expect(covers(own, wanted) || !coversAll(own, wanted)).toBe(true)
        expect(covers(own, wanted) || !matchesRole(own, wanted)).toBe(true)
      }),
    )
  })

  it('more claims of one’s own never hide anything', () => {
    fc.assert(
      fc.property(held, claims, fc.dictionary(fc.constantFrom('x', 'y'), value), (own, wanted, more) => {
        expect(covers({ ...own, ...more }, wanted) || !covers(own, wanted)).toBe(true)
        expect(coversAll({ ...own, ...more }, wanted) || !coversAll(own, wanted)).toBe(true)
      }),
    )
  })

  it('callers with the same key are treated alike', () => {
    fc.assert(
      fc.property(held, held, claims, (one, other, wanted) => {
        const reversed = Object.entries(one).reverse()
        const again = Object.fromEntries(reversed.map(([key, of]) => [key, Array.isArray(of) ? of.toReversed() : of]))
        expect(claimsKey(again)).toBe(claimsKey(one))
        for (const alike of claimsKey(one) === claimsKey(other) ? [again, other] : [again]) {
          expect(covers(one, wanted)).toBe(covers(alike, wanted))
          expect(coversAll(one, wanted)).toBe(coversAll(alike, wanted))
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it('tokens of one person have one key, whatever the order', () => {
    const first = { sub: 'ada', groups: ['a', 'b'], exp: 1, iat: 1, jti: 'x', sid: '1' }
    const second = { jti: 'y', exp: 2, iat: 2, groups: ['b', 'a', 'a'], sub: 'ada' }
    expect(claimsKey(first)).toBe(claimsKey(second))
    expect(claimsKey(first)).not.toBe(claimsKey({ ...first, groups: ['a'] }))
    expect(claimsKey({ a: 'b' })).not.toBe(claimsKey({ a: ['b', 'c'] }))
  })
})
