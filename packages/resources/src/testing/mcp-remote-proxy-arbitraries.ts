import fc from 'fast-check'
import type { CanonicalMCPRemoteProxySpec } from '../kinds/mcp-remote-proxy/normalise.ts'
import type { MCPRemoteProxy } from '../kinds/mcp-remote-proxy/schema.ts'
import { compact } from '../schema/normalize.ts'
import * as gen from './workload-arbitraries.ts'

type Spec = MCPRemoteProxy['spec']
const remoteUrl = 'https://tickets.example.com/mcp'

const secretHeader = fc.record({ headerName: gen.name, valueSecretRef: fc.record({ name: gen.name, key: gen.name }) })

/** Any spec that `normaliseMcpRemoteProxy()` may give. */
export const canonicalRemoteProxySpec: fc.Arbitrary<CanonicalMCPRemoteProxySpec> = fc
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
    audit: gen.audit,
    telemetry: gen.telemetry,
    replicas: gen.maybe(fc.nat(5)),
    sessionStorage: gen.maybe(gen.sessionStorage),
    sessionAffinity: fc.constantFrom('ClientIP' as const, 'None' as const),
    serviceType: fc.constantFrom('ClusterIP' as const, 'NodePort' as const, 'LoadBalancer' as const),
    trustProxyHeaders: fc.boolean(),
    trustedProxies: fc.subarray(['10.0.0.0/8', '::1']),
    endpointPrefix: gen.maybe(gen.name),
    allowedHosts: gen.hosts,
  })
  .map((spec) => compact(spec))

/** The meaning of a missing member. */
export const REMOTE_PROXY_DEFAULTS = {
  ...gen.COMMON_DEFAULTS,
  allowPrivateEndpoint: false,
  transport: 'streamable-http',
  caBundleRef: { configMapRef: { key: 'ca.crt', optional: false } },
  headerForward: { addPlaintextHeaders: {}, addHeadersFromSecret: [] },
}

/** Writes a canonical spec with randomly chosen accepted spellings. */
export function respelledRemoteProxy(canonical: CanonicalMCPRemoteProxySpec, coin: gen.Coin): Spec {
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
  return gen.withoutDefaults(spec, REMOTE_PROXY_DEFAULTS, coin)
}
