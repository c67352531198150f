import { describe, expect, it } from 'vitest'
import { compileActorMatcher } from './actor-matcher.ts'

const list = (length: number) => Array.from({ length }, (_, index) => `g${index}`)

describe('the cost of an actor_matcher is bounded', () => {
  it('goes over lists of the size that tokens have', () => {
    const matches = compileActorMatcher("claims.groups.exists(g, g == 'g199') && claims.sub.matches('^svc-[a-z]+$')", 'x')
    expect(matches({ groups: list(200), sub: 'svc-a' })).toBe(true)
    expect(matches({ groups: list(199), sub: 'svc-a' })).toBe(false)
    const nested = compileActorMatcher('claims.a.exists(x, claims.b.exists(y, x == y))', 'x')
    expect(nested({ a: list(100), b: ['g99'] })).toBe(true)
  })

  it('does not start what would take too many steps', () => {
    const expression = 'claims.g.exists(a, claims.g.exists(b, claims.g.exists(c, claims.g.exists(d, a == b && c != d && b == c))))'
    const matches = compileActorMatcher(expression, 'x')
    expect(matches({ g: ['a', 'a', 'a', 'b'] })).toBe(true)
    expect(matches({ g: list(4_000) })).toBe(false) // 4,000⁴ steps would take weeks
    expect(matches({ g: ['a', 'a', 'a', 'b'], deep: { er: { list: list(4_000) } } })).toBe(false)
  })

  it.each([
    ["claims.sub.matches('(a+)+$')", 'repeat a group'],
    ["claims.groups.exists(g, g.matches('^(a|a)*$'))", 'repeat a group'],
    ['claims.sub.matches(claims.pattern)', 'literal text'],
  ])('rejects %s', (expression, problem) => {
    expect(() => compileActorMatcher(expression, 'x')).toThrow(problem)
  })
})
