import { posix } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cleanPath, createPublicPaths } from './public-paths.ts'

describe('public paths', () => {
  const isPublic = createPublicPaths(['/openapi.json', '/.well-known', '/custom', '/slashed/', 'bare'])
  it.each([
    ['/openapi.json', true],
    ['/.well-known/oauth-protected-resource', true],
    ['/custom', true],
    ['/custom/', true],
    ['/custom/x', true],
    ['/custom/./x', true],
    ['/custom/x/../y', true],
    ['/slashed', true],
    ['/slashed/x', true],
    ['/bare/x', true],
    ['/customx', false],
    ['/Custom', false],
    ['/custom/../v1/me', false],
    ['/custom/x/../../v1/me', false],
    ['/v1/../custom/x', false],
    ['//custom/x', false],
    ['/custom%2Fx', false],
    ['/custom/%2e%2e/v1/me', false],
    ['/custom/%2E./v1/me', false],
    ['/custom/x%2fy', false],
    ['/', false],
    ['', false],
    ['*', false],
  ])('%s: %s', (path, expected) => {
    expect(isPublic(path)).toBe(expected)
  })

  it('are all paths with "/", except those that hide something', () => {
    const all = createPublicPaths(['/'])
    expect(all('/v1/me')).toBe(true)
    expect(all('/v1/%2e%2e')).toBe(false)
  })

  it('are none without a list', () => {
    expect(createPublicPaths([])('/')).toBe(false)
  })

  it('never let in a path that leads elsewhere', () => {
    const segment = fc.constantFrom('custom', '..', '.', '', 'v1', 'me', '.well-known', '%2e%2e')
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 8 }), (segments) => {
        const path = `/${segments.join('/')}`
        const target = posix.normalize(decodeURIComponent(path))
        const isListed = /^\/(custom|\.well-known|openapi\.json|slashed|bare)(\/|$)/.test(target)
        expect(isPublic(path) && !isListed).toBe(false)
      }),
    )
  })
})

it('cleans as POSIX does', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('a', 'b', '..', '.', ''), { maxLength: 10 }), (segments) => {
      const path = `/${segments.join('/')}`
      const normal = posix.normalize(path)
      expect(cleanPath(path)).toBe(normal.length > 1 ? normal.replace(/\/$/, '') : normal)
    }),
  )
})
