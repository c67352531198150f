import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixturesOf } from '../../testing/fixtures.ts'
import { canonicalServerSpec, respelledServer } from '../../testing/mcp-server-arbitraries.ts'
import * as gen from '../../testing/workload-arbitraries.ts'
import { normaliseMcpServer } from './normalise.ts'
import type { MCPServer } from './schema.ts'

type Spec = MCPServer['spec']
const image = 'ghcr.io/example/fetch:1.4.0'
const resourceUrl = 'https://mcp.example.com'

describe('normaliseMcpServer', () => {
  it('fills in every default', () => {
    expect(normaliseMcpServer({ spec: { image } })).toEqual({
      spec: {
        ...gen.COMMON_DEFAULTS,
        image,
        transport: 'stdio',
        proxyMode: 'streamable-http',
        mcpPort: 8080,
        args: [],
        env: [],
        secrets: [],
        volumes: [],
        tools: [],
        // Missing as a whole means off, not "with default values".
        oidcConfig: undefined,
        authServerRef: undefined,
        authzConfig: undefined,
        sessionStorage: undefined,
      },
      problems: [],
    })
  })

  it.each<[string, Spec, object]>([
    ['group by its bare name', { image, groupRef: 'g' }, { groupRef: { name: 'g' } }],
    ['group as an object', { image, groupRef: { name: 'g' } }, { groupRef: { name: 'g' } }],
    ['port', { image, port: 9000 }, { proxyPort: 9000 }],
    ['targetPort', { image, targetPort: 3000 }, { mcpPort: 3000 }],
    ['configmap', { image, oidcConfig: { type: 'configmap', configMap: { name: 'c' } } }, { oidcConfig: { type: 'configMap' } }],
    [
      'external OIDC beside an outgoing config',
      { image, oidcConfig: { type: 'external', external: { name: 'e' }, resourceUrl }, externalAuthConfigRef: { name: 'out' } },
      { oidcConfig: { type: 'external', external: { name: 'e' }, resourceUrl }, externalAuthConfigRef: { name: 'out' } },
    ],
    ['processor as a number', { image, resources: { limits: { cpu: 2 } } }, { resources: { limits: { cpu: '2' } } }],
    ['proxy mode of a stdio server', { image, proxyMode: 'sse' }, { proxyMode: 'sse' }],
    // The server stores its default next to every transport.
    ['proxy mode of an sse server', { image, transport: 'sse', proxyMode: 'streamable-http' }, { proxyMode: 'sse' }],
    ['no scopes', inlineOidc({ scopes: [] }), { oidcConfig: { inline: { scopes: ['openid'] } } }],
    ['pull secret without a name', pullSecrets([{ name: '' }, { name: 'p' }]), pullSecrets([{ name: 'p' }])],
  ])('understands: %s', (_title, spec, canonical) => {
    const { image: _image, ...expected } = canonical as Partial<Spec>
    expect(normaliseMcpServer({ spec }).spec).toMatchObject(expected)
    expect(normaliseMcpServer({ spec }).problems).toEqual([])
  })

  it('takes external OIDC for nothing that goes out', () => {
    const oidcConfig = { type: 'external', external: { name: 'e' } } as const
    expect(normaliseMcpServer({ spec: { image, oidcConfig } }).spec.externalAuthConfigRef).toBeUndefined()
  })

  it.each<[string, string, string, unknown]>([
    ['spec.proxyPort', 'conflicting_spellings', 'two proxy ports', { proxyPort: 1, port: 2 }],
    ['spec.mcpPort', 'conflicting_spellings', 'two server ports', { mcpPort: 1, targetPort: 2 }],
    ['spec.tools', 'forbidden', 'tools beside toolConfigRef', { tools: ['a'], toolConfigRef: { name: 't' } }],
    ['spec.groupRef', 'wrong_type', 'group that is a number', { groupRef: 3 }],
    ['spec.groupRef', 'wrong_type', 'group that is a list', { groupRef: ['g'] }],
    ['spec.oidcConfig', 'missing', 'inline OIDC without settings', { oidcConfig: { type: 'inline' } }],
    ['spec.oidcConfig', 'missing', 'external OIDC without a name', { oidcConfig: { type: 'external' } }],
    ['spec.authzConfig', 'missing', 'policies without a ConfigMap', { authzConfig: { type: 'configMap' } }],
    ['spec.sessionStorage.address', 'missing', 'Redis without an address', { sessionStorage: { provider: 'redis' } }],
    ['spec.permissionProfile.key', 'missing', 'profile without a key', { permissionProfile: { type: 'configmap', name: 'p' } }],
    ['spec.oidcConfigRef', 'forbidden', 'OIDC reference stored by another operator', { oidcConfigRef: { name: 'a' } }],
    ['spec.authzConfigRef', 'forbidden', 'policy reference stored by another operator', { authzConfigRef: { name: 'a' } }],
    ['spec.telemetryConfigRef', 'forbidden', 'telemetry reference stored by another operator', { telemetryConfigRef: { name: 'a' } }],
    ['spec.webhookConfigRef', 'forbidden', 'webhook reference stored by another operator', { webhookConfigRef: { name: 'a' } }],
  ])('reports %s as %s: %s', (field, code, _title, stored) => {
    const { problems } = normaliseMcpServer({ spec: { image, ...(stored as Partial<Spec>) } })
    expect(problems).toEqual([{ field, code, message: expect.stringContaining(field) }])
  })

  it.each(fixturesOf('mcpservers').map(({ manifest }) => [manifest.metadata.name, manifest.spec as Spec] as const))(
    'has nothing to say against the fixture %s',
    (_title, spec) => {
      const once = normaliseMcpServer({ spec })
      expect(once.problems).toEqual([])
      expect(normaliseMcpServer({ spec: once.spec }).spec).toEqual(once.spec)
    },
  )

  it('gives the same object for every accepted spelling', () => {
    fc.assert(
      fc.property(canonicalServerSpec, gen.coins, (canonical, coin) => {
        expect(normaliseMcpServer({ spec: respelledServer(canonical, coin) })).toEqual({ spec: canonical, problems: [] })
      }),
    )
  })

  it('changes nothing the second time', () => {
    fc.assert(
      fc.property(canonicalServerSpec, (canonical) => {
        expect(normaliseMcpServer({ spec: canonical })).toEqual({ spec: canonical, problems: [] })
      }),
    )
  })

  it('reports exactly the ports that differ', () => {
    fc.assert(
      fc.property(gen.port, gen.port, (proxyPort, port) => {
        expect(normaliseMcpServer({ spec: { image, proxyPort, port } }).problems).toHaveLength(proxyPort === port ? 0 : 1)
      }),
    )
  })

  it('survives whatever admission cannot see', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.object(), (groupRef, podTemplateSpec) => {
        const once = normaliseMcpServer({ spec: { image, groupRef: groupRef as string, podTemplateSpec } })
        expect(normaliseMcpServer({ spec: once.spec }).spec).toEqual(once.spec)
      }),
    )
  })
})

function inlineOidc(settings: object): Spec {
  return { image, oidcConfig: { type: 'inline', inline: { issuer: 'https://login.example.com', ...settings } } }
}

function pullSecrets(imagePullSecrets: { name: string }[]): Spec {
  return { image, resourceOverrides: { proxyDeployment: { imagePullSecrets } } }
}
