import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixturesOf } from '../../testing/fixtures.ts'
import { canonicalRemoteProxySpec, REMOTE_PROXY_DEFAULTS, respelledRemoteProxy } from '../../testing/mcp-remote-proxy-arbitraries.ts'
import * as gen from '../../testing/workload-arbitraries.ts'
import { normaliseMcpRemoteProxy } from './normalise.ts'
import type { MCPRemoteProxy } from './schema.ts'

type Spec = MCPRemoteProxy['spec']
const remoteUrl = 'https://tickets.example.com/mcp'
const external = { type: 'external' as const, external: { name: 'e' } }

describe('normaliseMcpRemoteProxy', () => {
  it('fills in every default', () => {
    expect(normaliseMcpRemoteProxy({ spec: { remoteUrl } })).toEqual({
      spec: {
        ...REMOTE_PROXY_DEFAULTS,
        remoteUrl,
        // Missing as a whole means off, not "with default values".
        caBundleRef: undefined,
        oidcConfig: undefined,
        authServerRef: undefined,
        authzConfig: undefined,
        sessionStorage: undefined,
      },
      problems: [],
    })
  })

  it.each<[string, Spec, object]>([
    ['remoteURL', { remoteURL: remoteUrl }, { remoteUrl }],
    ['port', { remoteUrl, port: 9000 }, { proxyPort: 9000 }],
    ['group by its bare name', { remoteUrl, groupRef: 'g' }, { groupRef: { name: 'g' } }],
    ['external OIDC', { remoteUrl, oidcConfig: external }, { oidcConfig: external }],
    [
      'CA bundle in its shorter form',
      { remoteUrl, caBundleRef: { name: 'c' } },
      { caBundleRef: { configMapRef: { name: 'c', key: 'ca.crt' } } },
    ],
    [
      'addHeadersFromSecrets',
      { remoteUrl, headerForward: { addHeadersFromSecrets: [{ headerName: 'X-Key', valueSecretRef: { name: 's', key: 'k' } }] } },
      { headerForward: { addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 's', key: 'k' } }] } },
    ],
  ])('understands: %s', (_title, spec, canonical) => {
    expect(normaliseMcpRemoteProxy({ spec }).spec).toMatchObject(canonical)
    expect(normaliseMcpRemoteProxy({ spec }).problems).toEqual([])
  })

  it.each<[string, string, string, unknown]>([
    ['spec.remoteUrl', 'missing', 'no URL', {}],
    ['spec.remoteUrl', 'conflicting_spellings', 'two URLs', { remoteUrl, remoteURL: 'https://other.example.com' }],
    ['spec.proxyPort', 'conflicting_spellings', 'two ports', { remoteUrl, proxyPort: 1, port: 2 }],
    ['spec.groupRef', 'wrong_type', 'group that is a number', { remoteUrl, groupRef: 3 }],
    ['spec.caBundleRef', 'missing', 'CA bundle without a name', { remoteUrl, caBundleRef: {} }],
    [
      'spec.headerForward',
      'forbidden',
      'two sources of Authorization',
      { remoteUrl, externalAuthConfigRef: { name: 'a' }, headerForward: { addPlaintextHeaders: { AUTHORIZATION: 'Bearer x' } } },
    ],
    ['spec.oidcConfig', 'missing', 'inline OIDC without settings', { remoteUrl, oidcConfig: { type: 'inline' } }],
    ['spec.oidcConfigRef', 'forbidden', 'OIDC reference stored by another operator', { remoteUrl, oidcConfigRef: { name: 'a' } }],
    ['spec.authzConfigRef', 'forbidden', 'policy reference stored by another operator', { remoteUrl, authzConfigRef: { name: 'a' } }],
  ])('reports %s as %s: %s', (field, code, _title, stored) => {
    const { problems } = normaliseMcpRemoteProxy({ spec: stored as Spec })
    expect(problems).toEqual([{ field, code, message: expect.stringContaining(field) }])
  })

  it('leaves Authorization alone when nothing else sets it', () => {
    const spec: Spec = { remoteUrl, headerForward: { addPlaintextHeaders: { Authorization: 'Basic x' } } }
    expect(normaliseMcpRemoteProxy({ spec }).problems).toEqual([])
  })

  it.each(fixturesOf('mcpremoteproxies').map(({ manifest }) => [manifest.metadata.name, manifest.spec as Spec] as const))(
    'has nothing to say against the fixture %s',
    (_title, spec) => {
      const once = normaliseMcpRemoteProxy({ spec })
      expect(once.problems).toEqual([])
      expect(normaliseMcpRemoteProxy({ spec: once.spec }).spec).toEqual(once.spec)
    },
  )

  it('gives the same object for every accepted spelling', () => {
    fc.assert(
      fc.property(canonicalRemoteProxySpec, gen.coins, (canonical, coin) => {
        expect(normaliseMcpRemoteProxy({ spec: respelledRemoteProxy(canonical, coin) })).toEqual({ spec: canonical, problems: [] })
      }),
    )
  })

  it('changes nothing the second time', () => {
    fc.assert(
      fc.property(canonicalRemoteProxySpec, (canonical) => {
        expect(normaliseMcpRemoteProxy({ spec: canonical })).toEqual({ spec: canonical, problems: [] })
      }),
    )
  })

  it('survives whatever admission cannot see', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.object(), (groupRef, podTemplateSpec) => {
        const once = normaliseMcpRemoteProxy({ spec: { remoteUrl, groupRef: groupRef as string, podTemplateSpec } })
        expect(normaliseMcpRemoteProxy({ spec: once.spec }).spec).toEqual(once.spec)
      }),
    )
  })
})
