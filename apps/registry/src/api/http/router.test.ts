import { describe, expect, it } from 'vitest'
import { routes } from '../routes.ts'
import type { Route } from './route.ts'
import { createRouter } from './router.ts'

const made = (method: Route['method'], path: string): Route =>
  ({ method, path, operationId: `${method} ${path}`, tag: 'service', summary: '', answers: [], handler: () => {} }) as Route

describe('router', () => {
  it('matches the path as it came: an encoded slash stays in its segment', () => {
    const router = createRouter(routes)
    const match = router.find('/registry/default/v0.1/servers/io.github.example%2Fweather/versions/1.0.0')
    expect(match?.values).toEqual(['default', 'io.github.example%2Fweather', '1.0.0'])
    expect(match?.node.parameters).toEqual(['registryName', 'serverName', 'version'])
    expect(router.find('/registry/default/v0.1/servers/io.github.example/weather/versions/1.0.0')).toBeUndefined()
  })

  it('has /v0 for /v0.1 everywhere, and for nothing else', () => {
    const router = createRouter(routes)
    for (const { path } of routes.filter((route) => route.path.includes('/v0.1'))) {
      expect(router.find(path.replace('/v0.1', '/v0'))?.node, path).toBe(router.find(path)?.node)
    }
    expect(router.find('/registry/default/v0.2/servers')).toBeUndefined()
  })

  it('prefers a fixed segment to a parameter, and does not go back', () => {
    const router = createRouter([made('GET', '/a/{name}/x'), made('GET', '/a/b')])
    expect(router.find('/a/b')?.values).toEqual([])
    expect(router.find('/a/c/x')?.values).toEqual(['c'])
    expect(router.find('/a/b/x')).toBeUndefined()
  })

  it('knows what is allowed at a path', () => {
    const router = createRouter([made('GET', '/a'), made('PUT', '/a'), made('POST', '/b')])
    expect(router.find('/a')?.node.allow).toBe('GET, HEAD, PUT, OPTIONS')
    expect(router.find('/b')?.node.allow).toBe('POST, OPTIONS')
  })

  it('refuses two routes for one method and path', () => {
    expect(() => createRouter([made('GET', '/a/{name}'), made('GET', '/a/{version}')])).toThrow(/two routes/)
  })

  it('takes empty segments as empty parameters, never as something else', () => {
    const router = createRouter(routes)
    expect(router.find('/registry//v0.1/servers')?.values).toEqual([''])
    expect(router.find('/registry/default/v0.1//servers')).toBeUndefined()
    expect(router.find('/')).toBeUndefined()
    expect(router.find('')).toBeUndefined()
  })
})
