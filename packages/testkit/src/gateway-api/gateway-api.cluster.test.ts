import { bearerToken, createKubeClient, isInvalid, type KubeClient, type KubeObject, type ResourceType } from '@thv/kube'
import { customResourceDefinitions } from '@thv/kube/objects/resource-types'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeCluster, sharedCluster, testNamespace } from '../cluster/test-cluster.ts'
import { gatewayApiDefinitions, gatewayApiProblem, gatewayApiReleases, installGatewayApi } from './gateway-api.ts'

const HTTP_ROUTE: ResourceType = {
  group: 'gateway.networking.k8s.io',
  version: 'v1',
  kind: 'HTTPRoute',
  plural: 'httproutes',
  namespaced: true,
}

describeCluster('the Gateway API', () => {
  describe.skipIf(gatewayApiProblem() !== undefined)('as it is published', () => {
    let client: KubeClient
    let namespace = ''

    beforeAll(async () => {
      const { url, caPem, adminToken } = sharedCluster()
      client = createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken(adminToken) })
      await installGatewayApi(client)
      namespace = await testNamespace('gateway')
    })
    afterAll(() => client.close())

    it.each(gatewayApiReleases)(
      'every definition of %s applies unchanged',
      async (release) => {
        const definitions = await gatewayApiDefinitions(release)
        expect(definitions.map(({ spec }) => spec.names.kind)).toEqual(
          expect.arrayContaining(['HTTPRoute', 'GRPCRoute', 'Gateway', 'ReferenceGrant']),
        )
        for (const definition of definitions) {
          const applied = await client.apply(customResourceDefinitions, definition, {
            fieldManager: 'release',
            force: true,
            dryRun: true,
            timeoutMs: 60_000,
          })
          expect(applied.spec.versions.length).toBe(definition.spec.versions.length)
        }
      },
      180_000,
    )

    const route = (rules: object[], more: object = {}): KubeObject =>
      ({ metadata: { name: 'r', namespace }, spec: { parentRefs: [{ name: 'g' }], rules, ...more } }) as unknown as KubeObject
    const prefix = (value: string) => [{ path: { type: 'PathPrefix', value } }]
    const rewrite = { type: 'URLRewrite', urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } } }
    const create = (object: KubeObject) => client.create(HTTP_ROUTE, object, { dryRun: true })

    it('a route with a rewrite of its prefix is accepted, with defaults filled in', async () => {
      const made = (await create(
        route([{ matches: prefix('/a'), filters: [rewrite], backendRefs: [{ name: 's', port: 80 }] }]),
      )) as unknown as {
        spec: { parentRefs: object[]; rules: { backendRefs: object[] }[] }
      }
      expect(made.spec.parentRefs[0]).toMatchObject({ group: 'gateway.networking.k8s.io', kind: 'Gateway' })
      expect(made.spec.rules[0]?.backendRefs[0]).toMatchObject({ group: '', kind: 'Service', weight: 1 })
    })

    it.each([
      ['a rewrite of the prefix with two matches', [{ matches: [...prefix('/a'), ...prefix('/b')], filters: [rewrite] }], 'exactly one'],
      [
        'a rewrite of the prefix with an exact match',
        [{ matches: [{ path: { type: 'Exact', value: '/a' } }], filters: [rewrite] }],
        'PathPrefix',
      ],
      ['a path with two slashes', [{ matches: prefix('/a//b') }], "must not contain '//'"],
      [
        'a redirect beside backends',
        [{ filters: [{ type: 'RequestRedirect', requestRedirect: {} }], backendRefs: [{ name: 's', port: 80 }] }],
        'RequestRedirect',
      ],
    ])('%s is refused by its rules', async (_, rules, message) => {
      const error = await create(route(rules)).catch((e: unknown) => e)
      expect(isInvalid(error)).toBe(true)
      expect(String(error)).toContain(message)
    })
  })
})
