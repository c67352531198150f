import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clusterRoles, deployments, namespaces, pods } from '../objects/resource-types.ts'
import { KubeApiError } from './kube-api-error.ts'
import { apiVersionOf, collectionPath, objectPath, resourceName, vetRawPath, withQuery } from './paths.ts'

describe('paths', () => {
  it.each([
    [collectionPath(pods), '/api/v1/pods'],
    [collectionPath(pods, 'team'), '/api/v1/namespaces/team/pods'],
    [collectionPath(namespaces), '/api/v1/namespaces'],
    [collectionPath(deployments, 'team'), '/apis/apps/v1/namespaces/team/deployments'],
    [objectPath(pods, { namespace: 'team', name: 'web' }), '/api/v1/namespaces/team/pods/web'],
    [objectPath(pods, { namespace: 'team', name: 'web' }, 'status'), '/api/v1/namespaces/team/pods/web/status'],
    [objectPath(namespaces, { name: 'team' }), '/api/v1/namespaces/team'],
    [objectPath(clusterRoles, { name: 'system:node' }), '/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode'],
    [objectPath(deployments, { namespace: 'team', name: 'a b?c#d' }), '/apis/apps/v1/namespaces/team/deployments/a%20b%3Fc%23d'],
    [withQuery('/p', {}), '/p'],
    [withQuery('/p', { a: undefined, b: 1, c: true, d: 'x=1,y in (a)&z' }), '/p?b=1&c=true&d=x%3D1%2Cy+in+%28a%29%26z'],
    [apiVersionOf(pods), 'v1'],
    [apiVersionOf(deployments), 'apps/v1'],
    [resourceName(pods), 'pods'],
    [resourceName(deployments), 'deployments.apps'],
    [vetRawPath('/apis/apps/v1'), '/apis/apps/v1'],
    [vetRawPath('/readyz/'), '/readyz/'],
    [vetRawPath('/'), '/'],
  ])('%s', (actual, expected) => {
    expect(actual).toBe(expected)
  })

  it.each(['', '.', '..', 'a/b', '/', '../../secrets', '%2e%2e', 'a%2fb', '%', '\ud800'])(
    'refuses the segment %j wherever it stands',
    (bad) => {
      for (const build of [
        () => objectPath(pods, { namespace: 'ok', name: bad }),
        () => objectPath(pods, { namespace: bad, name: 'ok' }),
        () => objectPath(pods, { namespace: 'ok', name: 'ok' }, bad),
        () => collectionPath(pods, bad),
        () => collectionPath({ ...deployments, version: bad }),
        () => collectionPath({ ...pods, plural: bad }),
      ]) {
        expect(build).toThrow(KubeApiError)
      }
      if (bad !== '') expect(() => collectionPath({ ...deployments, group: bad })).toThrow(KubeApiError)
    },
  )

  it('refuses a missing and a needless namespace', () => {
    expect(() => objectPath(pods, { name: 'web' })).toThrow('address pods: a namespace is needed for "web" (400 BadRequest)')
    expect(() => objectPath(namespaces, { name: 'x', namespace: 'y' })).toThrow('not namespaced')
  })

  it.each(['', 'apis', '/a?b', '/a/../b', '/a/./b', '//evil', '/a//b', '/a%2e', '/a b', '/a#b', '/\\a', '/é'])(
    'refuses the raw path %j',
    (path) => {
      expect(() => vetRawPath(path)).toThrow(KubeApiError)
    },
  )

  it('never leaves its place in the path, whatever the name', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (namespace, name) => {
        let path: string
        try {
          path = objectPath(pods, { namespace, name })
        } catch (error) {
          expect(error).toBeInstanceOf(KubeApiError)
          return
        }
        const url = new URL(path, 'https://server.test')
        expect(url.pathname).toBe(path)
        expect(url.search + url.hash).toBe('')
        const parts = path.split('/')
        expect(parts).toHaveLength(7)
        expect(decodeURIComponent(parts[4] ?? '')).toBe(namespace)
        expect(decodeURIComponent(parts[6] ?? '')).toBe(name)
      }),
      { numRuns: 200 },
    )
  })
})
