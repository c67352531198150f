import fc from 'fast-check'
import type { CanonicalMCPServerSpec } from '../kinds/mcp-server/normalise.ts'
import type { MCPServer } from '../kinds/mcp-server/schema.ts'
import { compact } from '../schema/normalize.ts'
import * as gen from './workload-arbitraries.ts'

type Spec = MCPServer['spec']
const image = 'ghcr.io/example/fetch:1.4.0'

const bucket = fc.record({ maxTokens: fc.integer({ min: 1, max: 1000 }), refillPeriod: fc.constantFrom('1m', '1m30s') })
const toolNames = fc.uniqueArray(gen.name, { maxLength: 3 })

/** Any spec that `normaliseMcpServer()` may give. */
export const canonicalServerSpec: fc.Arbitrary<CanonicalMCPServerSpec> = fc
  .record({
    transport: fc.constantFrom('stdio' as const, 'sse' as const, 'streamable-http' as const),
    proxyMode: fc.constantFrom('sse' as const, 'streamable-http' as const),
    proxyPort: gen.port,
    mcpPort: gen.port,
    args: fc.array(fc.string(), { maxLength: 3 }),
    env: gen.envVariables,
    secrets: fc.array(fc.record({ name: gen.name, key: gen.name }), { maxLength: 2 }),
    volumes: fc.array(fc.record({ name: gen.name, hostPath: gen.name, mountPath: gen.name, readOnly: fc.boolean() }), { maxLength: 2 }),
    resources: gen.resources,
    permissionProfile: gen.maybe(
      fc.oneof(
        fc.record({ type: fc.constant('builtin' as const), name: fc.constantFrom('none', 'network') }),
        fc.record({ type: fc.constant('configmap' as const), name: gen.name, key: gen.name }),
      ),
    ),
    podTemplateSpec: gen.maybe(fc.dictionary(gen.name, fc.jsonValue())),
    resourceOverrides: gen.resourceOverrides,
    serviceAccount: gen.maybe(gen.name),
    groupRef: gen.maybe(fc.record({ name: gen.name })),
    tools: toolNames,
    toolConfigRef: gen.maybe(fc.record({ name: gen.name })),
    oidcConfig: gen.maybe(gen.serverOidcConfig),
    externalAuthConfigRef: gen.maybe(fc.record({ name: gen.name })),
    authServerRef: gen.maybe(fc.record({ kind: fc.constant('MCPExternalAuthConfig' as const), name: gen.name })),
    authzConfig: gen.maybe(gen.authzConfig),
    rateLimiting: gen.maybe(
      fc.record({
        shared: bucket,
        perUser: bucket,
        tools: fc.array(fc.record({ name: gen.name, shared: bucket })),
        methods: fc.subarray(['tools/list', 'prompts/get'] as const),
      }),
    ),
    audit: gen.audit,
    telemetry: gen.telemetry,
    replicas: gen.maybe(fc.nat(5)),
    backendReplicas: gen.maybe(fc.nat(5)),
    sessionStorage: gen.maybe(gen.sessionStorage),
    sessionAffinity: fc.constantFrom('ClientIP' as const, 'None' as const),
    serviceType: fc.constantFrom('ClusterIP' as const, 'NodePort' as const, 'LoadBalancer' as const),
    trustProxyHeaders: fc.boolean(),
    trustedProxies: fc.subarray(['10.0.0.0/8', '::1']),
    endpointPrefix: gen.maybe(gen.name),
    allowedHosts: gen.hosts,
  })
  .map((spec) => {
    const proxyMode = spec.transport === 'stdio' ? spec.proxyMode : spec.transport
    return compact({ ...spec, image, proxyMode, tools: spec.toolConfigRef ? [] : spec.tools })
  })

/** The meaning of a missing member. */
export const SERVER_DEFAULTS = {
  ...gen.COMMON_DEFAULTS,
  transport: 'stdio',
  proxyMode: 'streamable-http',
  mcpPort: 8080,
  args: [],
  env: [],
  secrets: [],
  volumes: [],
  tools: [],
  permissionProfile: { type: 'builtin' },
  rateLimiting: { tools: [], methods: [] },
}

/** Writes a canonical spec with randomly chosen accepted spellings. */
export function respelledServer(canonical: CanonicalMCPServerSpec, coin: gen.Coin): Spec {
  const { oidcConfig, ...plain } = canonical
  const spec: Spec = structuredClone(plain)
  spec.resources = gen.respelledResources(canonical.resources, coin)
  if (oidcConfig) spec.oidcConfig = gen.respelledOidc(oidcConfig, coin)
  if (coin()) {
    spec.port = canonical.proxyPort
    if (coin()) delete spec.proxyPort
  }
  if (coin()) {
    spec.targetPort = canonical.mcpPort
    if (coin()) delete spec.mcpPort
  }
  if (canonical.groupRef && coin()) spec.groupRef = canonical.groupRef.name
  return gen.withoutDefaults(spec, SERVER_DEFAULTS, coin)
}
