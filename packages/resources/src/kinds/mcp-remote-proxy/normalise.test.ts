import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compact } from '../../normalise.ts'
import { fixturesOf } from '../../testing/fixtures.ts'
import * as gen from '../../testing/workload-arbitraries.ts'
import { type CanonicalMCPRemoteProxySpec, normaliseMcpRemoteProxy } from './normalise.ts'
import type { MCPRemoteProxy } from './schema.ts'

type Spec = MCPRemoteProxy['spec']
const remoteUrl = 'https://tickets.example.com/mcp'
const external = { type: 'external' as const, external: { name: 'e' } }

describe('normaliseMcpRemoteProxy', () => {
  it('fills in every default', () => {
    expect(normaliseMcpRemoteProxy({ spec: { remoteUrl } })).toEqual({
      spec: {
        ...DEFAULTS,
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
    ['external OIDC', { remoteUrl, oidcConfig: external }, { externalAuthConfigRef: { name: 'e' } }],
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
    [
      'spec.externalAuthConfigRef',
      'conflicting_spellings',
      'two external configs',
      { remoteUrl, externalAuthConfigRef: { name: 'a' }, oidcConfig: external },
    ],
    ['spec.groupRef', 'wrong_type', 'group that is a number', { remoteUrl, groupRef: 3 }],
    ['spec.caBundleRef', 'missing', 'CA bundle without a name', { remoteUrl, caBundleRef: {} }],
    [
      'spec.headerForward',
      'forbidden',
      'two sources of Authorization',
      { remoteUrl, oidcConfig: external, headerForward: { addPlaintextHeaders: { AUTHORIZATION: 'Bearer x' } } },
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
      fc.property(canonicalSpec, gen.coins, (canonical, coin) => {
        expect(normaliseMcpRemoteProxy({ spec: respelled(canonical, coin) })).toEqual({ spec: canonical, problems: [] })
      }),
    )
  })

  it('changes nothing the second time', () => {
    fc.assert(
      fc.property(canonicalSpec, (canonical) => {
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

const secretHeader = fc.record({ headerName: gen.name, valueSecretRef: fc.record({ name: gen.name, key: gen.name }) })

const canonicalSpec: fc.Arbitrary<CanonicalMCPRemoteProxySpec> = fc
  .record({
    remoteUrl: fc.constantFrom(remoteUrl, 'http://tickets.corp.example.com/sse'),
    allowPrivateEndpoint: fc.boolean(),
    transport: fc.constantFrom('sse' as const, 'streamable-http' as const),
    caBundleRef: gen.maybe(gen.caBundle),
    headerForward: fc.record({
      addPlaintextHeaders: fc.dictionary(fc.constantFrom('X-A', 'X-B'), fc.string()),
      addHeadersFromSecret: fc
        .uniqueArray(secretHeader, { maxLength: 3, selector: (header) => header.headerName })
        .map((headers) => headers.toSorted((a, b) => (a.headerName < b.headerName ? -1 : 1))),
    }),
    proxyPort: gen.port,
    resources: gen.resources,
    podTemplateSpec: gen.maybe(fc.dictionary(gen.name, fc.jsonValue())),
    resourceOverrides: gen.resourceOverrides,
    serviceAccount: gen.maybe(gen.name),
    groupRef: gen.maybe(fc.record({ name: gen.name })),
    toolConfigRef: gen.maybe(fc.record({ name: gen.name })),
    oidcConfig: gen.maybe(gen.oidcConfig),
    externalAuthConfigRef: gen.maybe(fc.record({ name: gen.name })),
    authServerRef: gen.maybe(fc.record({ kind: fc.constant('MCPExternalAuthConfig' as const), name: gen.name })),
    authzConfig: gen.maybe(gen.authzConfig),
    audit: fc.record({ enabled: fc.boolean() }),
    telemetry: gen.telemetry,
    replicas: gen.maybe(fc.nat(5)),
    sessionStorage: gen.maybe(gen.sessionStorage),
    sessionAffinity: fc.constantFrom('ClientIP' as const, 'None' as const),
    serviceType: fc.constantFrom('ClusterIP' as const, 'NodePort' as const, 'LoadBalancer' as const),
    trustProxyHeaders: fc.boolean(),
    endpointPrefix: gen.maybe(gen.name),
  })
  .map((spec) => compact(spec))

const DEFAULTS = {
  ...gen.COMMON_DEFAULTS,
  allowPrivateEndpoint: false,
  transport: 'streamable-http',
  caBundleRef: { configMapRef: { key: 'ca.crt', optional: false } },
  headerForward: { addPlaintextHeaders: {}, addHeadersFromSecret: [] },
}

/** Writes a canonical spec with randomly chosen accepted spellings. */
function respelled(canonical: CanonicalMCPRemoteProxySpec, coin: gen.Coin): Spec {
  const { oidcConfig, ...plain } = canonical
  const spec: Spec = structuredClone(plain)
  spec.resources = gen.respelledResources(canonical.resources, coin)
  if (oidcConfig) spec.oidcConfig = gen.respelledOidc(oidcConfig, coin)
  if (canonical.caBundleRef) spec.caBundleRef = gen.respelledCaBundle(canonical.caBundleRef, coin)
  if (coin()) {
    spec.remoteURL = canonical.remoteUrl
    if (coin()) delete spec.remoteUrl
  }
  if (coin()) {
    spec.port = canonical.proxyPort
    if (coin()) delete spec.proxyPort
  }
  if (spec.headerForward && coin()) {
    spec.headerForward.addHeadersFromSecrets = canonical.headerForward.addHeadersFromSecret
    if (coin()) delete spec.headerForward.addHeadersFromSecret
  }
  if (canonical.groupRef && coin()) spec.groupRef = canonical.groupRef.name
  if (canonical.externalAuthConfigRef && !oidcConfig && coin()) {
    spec.oidcConfig = { type: 'external', external: canonical.externalAuthConfigRef }
    if (coin()) delete spec.externalAuthConfigRef
  }
  return gen.withoutDefaults(spec, DEFAULTS, coin)
}
