import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matchesTemplate, parseUriTemplate } from './uri-template.ts'

describe('matching of URI templates', () => {
  it.each<[string, string, boolean]>([
    ['test://template/{id}/data', 'test://template/123/data', true],
    ['test://template/{id}/data', 'test://template//data', false],
    ['test://template/{id}/data', 'test://template/1/2/data', false],
    ['file:///{+path}', 'file:///a/b/c', true],
    ['file:///{path*}', 'file:///a/b', true],
    ['search{?q,page}', 'search?q=1&page=2', true],
    ['search{?q}', 'search', true],
    ['a{x}b{y}c', 'a1b2b3c', true],
    ['a{x}b', 'a1c', false],
    ['plain', 'plain', true],
    ['plain', 'plain2', false],
    ['open{', 'open{', true],
    ['{x}', '', false],
    ['{+x}', '', true],
  ])('%s and %s: %s', (template, uri, expected) => {
    expect(matchesTemplate(parseUriTemplate(template), uri)).toBe(expected)
  })

  it('ends on hostile templates and URIs', () => {
    expect(matchesTemplate(parseUriTemplate(`${'{+a}x'.repeat(200)}y`), 'x'.repeat(8_192))).toBe(false)
    expect(matchesTemplate(parseUriTemplate('{+a}'), 'x'.repeat(8_193))).toBe(false)
    expect(matchesTemplate(parseUriTemplate('{a}'.repeat(65)), 'x'.repeat(65))).toBe(false)
    expect(matchesTemplate(parseUriTemplate(`{a}${'x'.repeat(4_096)}`), `1${'x'.repeat(4_096)}`)).toBe(false)
  })

  it('costs a budget, and matches nothing once that is used up', () => {
    const template = parseUriTemplate('a{x}b{y}')
    const budget = { left: 40 }
    expect(matchesTemplate(template, 'a1b2', budget)).toBe(true)
    expect(budget.left).toBe(20)
    // Told by the ends of the URI, without any work.
    expect(matchesTemplate(template, 'z1b2', budget)).toBe(false)
    expect(budget.left).toBe(20)
    expect(matchesTemplate(template, 'a1b2', budget)).toBe(true)
    expect(matchesTemplate(template, 'a1b2', budget)).toBe(false)
  })

  it('matches what a template expands to', () => {
    const value = fc.stringMatching(/^[a-z0-9]{1,8}$/)
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.stringMatching(/^[a-z/:]{0,5}$/), value), { maxLength: 6 }), (parts) => {
        const template = parts.map(([text], i) => `${text}{v${i}}`).join('')
        const uri = parts.map(([text, filled]) => text + filled).join('')
        expect(matchesTemplate(parseUriTemplate(template), uri)).toBe(true)
      }),
    )
  })
})
