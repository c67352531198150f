import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileGlob } from './name-glob.ts'

function matches(pattern: string, name: string): boolean {
  const result = compileGlob(pattern)
  if (!result.ok) throw new Error(result.problem)
  return result.glob.matches(name)
}

describe('a pattern', () => {
  it.each([
    ['io.github.*', 'io.github.stacklok/fetch', true],
    ['slack-*', 'io.github.stacklok/slack-mcp', false],
    ['*-deprecated', 'x/a-deprecated', true],
    ['*/experimental', 'x/fetch', false],
    ['a?c', 'a/c', true],
    ['a?c', 'ac', false],
    ['a?c', 'a🌊c', true],
    ['[abc]x', 'bx', true],
    ['[a-c]x', 'dx', false],
    ['[!a-c]x', 'dx', true],
    ['[^a-c]x', 'ax', false],
    ['[a-]x', '-x', true],
    ['[\\]]', ']', true],
    ['{one,two}/x', 'two/x', true],
    ['{one,two}/x', 'three/x', false],
    ['a{,b}c', 'ac', true],
    ['{a,{b,c}*}d', 'cxxd', true],
    ['{a*,b}{c,d}', 'axyzd', true],
    ['\\*', '*', true],
    ['\\*', 'x', false],
    ['a,b', 'a,b', true],
    ['', '', true],
    ['', 'a', false],
    ['*', '', true],
    ['Fetch', 'fetch', false],
  ])('%s on %s: %s', (pattern, name, expected) => {
    expect(matches(pattern, name)).toBe(expected)
  })

  it.each([
    ['[a', "has a '[' without ']'"],
    ['[]', "has an empty '[]'"],
    ['[z-a]', 'has the empty range z-a'],
    ['{a,b', "has a '{' without '}'"],
    ['a}', "has a '}' without '{'"],
    ['a\\', "ends with '\\'"],
    ['[\\', "has a '[' without ']'"],
    ['{'.repeat(9), 'has braces nested deeper than 8'],
    ['a'.repeat(1_025), 'is longer than 1024 characters'],
  ])('%s is none', (pattern, problem) => {
    expect(compileGlob(pattern)).toEqual({ ok: false, problem })
  })

  it('agrees with the regular expression of the same meaning', () => {
    const piece = fc.constantFrom<[string, string]>(
      ['*', '[^]*'],
      ['?', '[^]'],
      ['a', 'a'],
      ['/', '/'],
      ['[ab]', '[ab]'],
      ['{a,bb}', '(?:a|bb)'],
      ['{b,*/}', '(?:b|[^]*/)'],
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 8 }), (pieces, name) => {
        const expression = new RegExp(`^${pieces.map(([, source]) => source).join('')}$`)
        expect(matches(pieces.map(([glob]) => glob).join(''), name)).toBe(expression.test(name))
      }),
    )
  })

  it('takes steps in proportion to name and pattern, where backtracking would never end', () => {
    expect(matches(`${'*a'.repeat(400)}b`, 'a'.repeat(200))).toBe(false)
    expect(matches(`${'{a,a}'.repeat(150)}b`, 'a'.repeat(150))).toBe(false)
    expect(matches(`${'{,}'.repeat(300)}b`, 'b')).toBe(true)
  })

  it('compiles or refuses any text', () => {
    const text = fc.string({ unit: fc.constantFrom('[', ']', '{', '}', ',', '-', '!', '\\', '*', '?', 'a', 'z'), maxLength: 12 })
    fc.assert(
      fc.property(text, text, (pattern, name) => {
        const result = compileGlob(pattern)
        expect(typeof (result.ok ? result.glob.matches(name) : result.problem)).toBe(result.ok ? 'boolean' : 'string')
      }),
    )
  })
})
