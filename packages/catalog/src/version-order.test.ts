import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareVersions, isNewer } from './version-order.ts'

describe('isNewer', () => {
  it.each([
    ['1.10.0', '1.9.0', true],
    ['1.0.0', '1.0.0-rc1', true],
    ['v1.2', '1.1.9', true],
    ['1.0.0+b2', '1.0.0+b1', false],
    ['main', '1.0.0', true],
    ['b', 'a', true],
    ['a', 'a', false],
    ['1.0.0', 'main', false],
    ['1.0.0-alpha.10', '1.0.0-alpha.9', true],
    ['1.0.0-alpha.beta', '1.0.0-alpha.1', true],
    ['1.0.0-alpha.1', '1.0.0-alpha', true],
    ['2024.01.15', '2024.1.9', true],
    ['99999999999999999999.0.0', '9999999999999999999.0.0', true],
    ['1.0.0', 'v1', false],
  ])('%s over %s: %s', (a, b, newer) => {
    expect(isNewer(a, b)).toBe(newer)
  })

  it('is never true both ways', () => {
    fc.assert(fc.property(version(), version(), (a, b) => void expect(isNewer(a, b) && isNewer(b, a)).toBe(false)))
  })
})

describe('compareVersions', () => {
  it('follows the example chain of SemVer §11', () => {
    const chain =
      '1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 2.0.0 2.1.0 2.1.1'.split(' ')
    expect([...chain].reverse().sort(compareVersions)).toEqual(chain)
  })

  it('places what is no semver below every release', () => {
    expect(['1.0.0', 'main', '0.0.1-a', '1.5x', ''].sort(compareVersions)).toEqual(['', '1.5x', 'main', '0.0.1-a', '1.0.0'])
  })

  it('is total: antisymmetric, transitive, and zero only for the same text', () => {
    fc.assert(
      fc.property(version(), version(), version(), (a, b, c) => {
        expect(Math.sign(compareVersions(a, b))).toBe(-Math.sign(compareVersions(b, a)) + 0)
        expect(compareVersions(a, b) === 0).toBe(a === b)
        if (compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0) expect(compareVersions(a, c)).toBeLessThanOrEqual(0)
      }),
    )
  })

  it('agrees with isNewer among semver versions', () => {
    fc.assert(
      fc.property(semver(), semver(), (a, b) => {
        if (isNewer(a, b)) expect(compareVersions(a, b)).toBeGreaterThan(0)
      }),
    )
  })
})

it('knows semver, and takes overlong text for none', () => {
  // Above the last of all other texts.
  const isSemver = (version: string) => compareVersions(version, '\u{10ffff}') > 0
  expect(['1', 'v1.2', '1.2.3-rc.1+b', '1.2.3.4', 'x1', '', '1.0.0-', '1..2'].map(isSemver)).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
    false,
    false,
  ])
  expect(isSemver(`1.0.0-${'a.'.repeat(200)}a`)).toBe(false)
})

function semver(): fc.Arbitrary<string> {
  const number = fc.oneof(fc.nat(12).map(String), fc.constantFrom('00', '01', '123456789012345678901'))
  const identifier = fc.oneof(number, fc.constantFrom('a', 'rc', 'alpha', '-', '1a'))
  const tail = (mark: string) => fc.array(identifier, { maxLength: 3 }).map((all) => (all.length > 0 ? mark + all.join('.') : ''))
  return fc
    .tuple(fc.constantFrom('', 'v'), fc.array(number, { minLength: 1, maxLength: 3 }), tail('-'), tail('+'))
    .map(([v, core, pre, build]) => v + core.join('.') + pre + build)
}

function version(): fc.Arbitrary<string> {
  return fc.oneof(semver(), fc.constantFrom('main', '1.5x', '1.2.3.4', '', '\u{1f600}', '\uffff'), fc.string({ maxLength: 4 }))
}
