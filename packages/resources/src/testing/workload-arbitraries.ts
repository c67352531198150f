import { jsonEqual } from '@thv/kernel/json'
import fc from 'fast-check'
import { compact, isRecord } from '../schema/normalize.ts'
import { type CanonicalAuditConfig, REQUEST_EVENT_TYPES } from '../shared/audit-config.ts'
import type { CanonicalAuthzConfig, CanonicalPolicySource } from '../shared/authz-config.ts'
import type { CABundleRef, CanonicalCABundleRef } from '../shared/ca-bundle-ref.ts'
import type { CanonicalOidcConfig, OidcConfig } from '../shared/oidc-config.ts'
import type { CanonicalResourceOverrides } from '../shared/resource-overrides.ts'
import type { CanonicalSessionStorage } from '../shared/session-storage.ts'
import type { CanonicalTelemetryConfig } from '../shared/telemetry-config.ts'
import type { CanonicalAmounts, CanonicalResources, EnvVariable, Resources } from '../shared/workload-fields.ts'

/* Canonical parts of a workload's spec at random, and the ways in which people may write them. */

export const name = fc.constantFrom('a', 'tools', 'company-ca', 'x1')
export const port = fc.oneof(fc.constant(8080), fc.integer({ min: 1, max: 65535 }))
const text = fc.string({ maxLength: 12 })
const url = fc.constantFrom('https://login.example.com', 'https://keys.example.com/jwks')
const stringMap = fc.dictionary(fc.constantFrom('app', 'team', 'example.com/owner'), text)
const secretRef = fc.record({ name, key: name })

/** A record whose named members are always there and whose others may be missing. */
function partial<T, K extends keyof T>(members: { [P in keyof T]-?: fc.Arbitrary<NonNullable<T[P]>> }, requiredKeys: K[]): fc.Arbitrary<T> {
  return fc.record(members as { [P in keyof T]: fc.Arbitrary<T[P]> }, { requiredKeys }) as unknown as fc.Arbitrary<T>
}

export const hosts = fc.uniqueArray(fc.constantFrom('mcp.example.com', 'a_b', '10.0.0.7', '[::7]'))

/** Missing in half of the runs; `compact` in the code under test drops what is undefined. */
export const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined })

export const envVariables: fc.Arbitrary<EnvVariable[]> = fc.array(fc.record({ name, value: text }), { maxLength: 3 })

export const caBundle: fc.Arbitrary<CanonicalCABundleRef> = fc.record({
  configMapRef: fc.record({ name, key: fc.constantFrom('ca.crt', 'root.pem'), optional: fc.boolean() }),
})

type Kubernetes = Extract<CanonicalOidcConfig, { type: 'kubernetes' }>['kubernetes']
type Inline = Extract<CanonicalOidcConfig, { type: 'inline' }>['inline']
type ConfigMap = Extract<CanonicalOidcConfig, { type: 'configMap' }>['configMap']

const kubernetes = partial<Kubernetes, 'audience' | 'issuer' | 'useClusterAuth'>(
  {
    serviceAccount: name,
    namespace: name,
    audience: fc.constantFrom('toolhive', 'tickets'),
    issuer: fc.constantFrom('https://kubernetes.default.svc', 'https://other.example.com'),
    jwksUrl: url,
    introspectionUrl: url,
    useClusterAuth: fc.boolean(),
  },
  ['audience', 'issuer', 'useClusterAuth'],
)

const configMap = partial<ConfigMap, 'name' | 'key'>({ name, key: fc.constantFrom('oidc.json', 'settings.json'), caBundleRef: caBundle }, [
  'name',
  'key',
])

const inline = partial<Inline, 'issuer' | 'jwksAllowPrivateIP' | 'protectedResourceAllowPrivateIP' | 'insecureAllowHTTP' | 'scopes'>(
  {
    issuer: url,
    audience: name,
    jwksUrl: url,
    introspectionUrl: url,
    clientId: name,
    clientSecret: text,
    clientSecretRef: secretRef,
    thvCABundlePath: text,
    caBundleRef: caBundle,
    jwksAuthTokenPath: text,
    jwksAllowPrivateIP: fc.boolean(),
    protectedResourceAllowPrivateIP: fc.boolean(),
    insecureAllowHTTP: fc.boolean(),
    scopes: fc.array(name, { minLength: 1, maxLength: 3 }),
  },
  ['issuer', 'jwksAllowPrivateIP', 'protectedResourceAllowPrivateIP', 'insecureAllowHTTP', 'scopes'],
)

type OidcOf<T extends string> = Omit<Extract<CanonicalOidcConfig, { type: T }>, 'forwardToken'>

export const oidcConfig: fc.Arbitrary<CanonicalOidcConfig> = fc.oneof(
  partial<OidcOf<'kubernetes'>, 'type' | 'kubernetes'>({ type: fc.constant('kubernetes'), resourceUrl: url, kubernetes }, [
    'type',
    'kubernetes',
  ]),
  partial<OidcOf<'configMap'>, 'type' | 'configMap'>({ type: fc.constant('configMap'), resourceUrl: url, configMap }, [
    'type',
    'configMap',
  ]),
  partial<OidcOf<'inline'>, 'type' | 'inline'>({ type: fc.constant('inline'), resourceUrl: url, inline }, ['type', 'inline']),
  partial<OidcOf<'external'>, 'type' | 'external'>({ type: fc.constant('external'), resourceUrl: url, external: fc.record({ name }) }, [
    'type',
    'external',
  ]),
)

/** As an MCPServer has it. */
export const serverOidcConfig: fc.Arbitrary<CanonicalOidcConfig> = fc
  .tuple(oidcConfig, fc.boolean())
  .map(([config, forwards]) => (forwards ? { ...config, forwardToken: true } : config))

type AuthzConfigMap = Extract<CanonicalPolicySource, { type: 'configMap' }>
type AuthzInline = Extract<CanonicalPolicySource, { type: 'inline' }>
const claims = { groupClaimName: name, roleClaimName: name, groupEntityType: name }

const policySource: fc.Arbitrary<CanonicalPolicySource> = fc.oneof(
  partial<AuthzConfigMap, 'type' | 'configMap'>(
    { ...claims, type: fc.constant('configMap'), configMap: fc.record({ name, key: fc.constantFrom('authz.json', 'p.json') }) },
    ['type', 'configMap'],
  ),
  partial<AuthzInline, 'type' | 'inline'>(
    {
      ...claims,
      type: fc.constant('inline'),
      inline: partial<AuthzInline['inline'], 'policies' | 'entitiesJson'>(
        {
          policies: fc.array(text, { minLength: 1, maxLength: 2 }),
          entitiesJson: fc.constantFrom('[]', '[{}]'),
          primaryUpstreamProvider: name,
        },
        ['policies', 'entitiesJson'],
      ),
    },
    ['type', 'inline'],
  ),
)

/** Only the enforced policies may name a provider. */
const candidateSource = policySource.map((source): CanonicalPolicySource => {
  if (source.type !== 'inline') return source
  const { primaryUpstreamProvider: _, ...inline } = source.inline
  return { ...source, inline }
})

export const authzConfig: fc.Arbitrary<CanonicalAuthzConfig> = fc
  .tuple(policySource, fc.option(candidateSource, { nil: undefined }))
  .map(([source, candidate]) => (candidate === undefined ? source : { ...source, candidate }))

type Otel = CanonicalTelemetryConfig['openTelemetry']
const flag = fc.record({ enabled: fc.boolean() })

export const telemetry: fc.Arbitrary<CanonicalTelemetryConfig> = fc.record({
  openTelemetry: partial<Otel, Exclude<keyof Otel, 'endpoint' | 'serviceName' | 'caBundleRef'>>(
    {
      enabled: fc.boolean(),
      endpoint: name,
      serviceName: name,
      headers: fc.array(fc.constantFrom('a=b', 'c='), { maxLength: 2 }),
      sensitiveHeaders: fc.subarray([{ name: 'X-Key', secretKeyRef: { name: 'otel', key: 'key' } }]),
      insecure: fc.boolean(),
      caBundleRef: caBundle,
      resourceAttributes: stringMap,
      metrics: flag,
      tracing: fc.record({ enabled: fc.boolean(), samplingRate: fc.constantFrom('0.05', '1.0') }),
      useLegacyAttributes: fc.boolean(),
    },
    ['enabled', 'headers', 'sensitiveHeaders', 'insecure', 'resourceAttributes', 'metrics', 'tracing', 'useLegacyAttributes'],
  ),
  prometheus: flag,
})

export const audit: fc.Arbitrary<CanonicalAuditConfig> = partial<CanonicalAuditConfig, Exclude<keyof CanonicalAuditConfig, 'component'>>(
  {
    enabled: fc.boolean(),
    component: name,
    eventTypes: fc.subarray([...REQUEST_EVENT_TYPES], { maxLength: 2 }),
    excludeEventTypes: fc.subarray([...REQUEST_EVENT_TYPES], { maxLength: 2 }),
    includeRequestData: fc.boolean(),
    includeResponseData: fc.boolean(),
    detectApplicationErrors: fc.boolean(),
    maxDataSize: fc.nat(1_000_000),
    maxDelegationDepth: fc.nat(100),
    otlp: fc.boolean(),
  },
  [
    ...(['enabled', 'eventTypes', 'excludeEventTypes', 'includeRequestData', 'includeResponseData'] as const),
    ...(['detectApplicationErrors', 'maxDataSize', 'maxDelegationDepth', 'otlp'] as const),
  ],
)

type Redis = Extract<CanonicalSessionStorage, { provider: 'redis' }>
export const sessionStorage: fc.Arbitrary<CanonicalSessionStorage> = fc.oneof(
  fc.constant({ provider: 'memory' as const }),
  partial<Omit<Redis, 'sentinel' | 'tls'>, 'provider' | 'address' | 'db'>(
    {
      provider: fc.constant('redis'),
      address: name.map((host) => `${host}:6379`),
      db: fc.nat(15),
      keyPrefix: text,
      username: name,
      passwordRef: secretRef,
      encryptionKeyRef: secretRef,
    },
    ['provider', 'address', 'db'],
  ),
)

const additions = fc.record({ annotations: stringMap, labels: stringMap })
export const resourceOverrides: fc.Arbitrary<CanonicalResourceOverrides> = fc.record({
  proxyDeployment: fc.record({
    annotations: stringMap,
    labels: stringMap,
    podTemplateMetadataOverrides: additions,
    env: envVariables,
    imagePullSecrets: fc.array(fc.record({ name }), { maxLength: 2 }),
  }),
  proxyService: additions,
})

const amounts = partial<CanonicalAmounts, never>({ cpu: fc.constantFrom('1', '2', '250m'), memory: fc.constantFrom('64Mi', '1G') }, [])
export const resources: fc.Arbitrary<CanonicalResources> = fc.record({ limits: amounts, requests: amounts })

/** Decides at random how something is written. */
export type Coin = () => boolean
export const coins = fc.infiniteStream(fc.boolean()).map(
  (stream): Coin =>
    () =>
      stream.next().value === true,
)

export function respelledOidc(canonical: CanonicalOidcConfig, coin: Coin): OidcConfig {
  const config: OidcConfig = structuredClone(canonical)
  if (config.type === 'configMap' && coin()) config.type = 'configmap'
  for (const member of [config.configMap, config.inline]) {
    if (member?.caBundleRef) member.caBundleRef = respelledCaBundle(member.caBundleRef, coin)
  }
  return config
}

/** The shorter form cannot say `optional`. */
export function respelledCaBundle(bundle: CABundleRef, coin: Coin): CABundleRef {
  const { configMapRef } = bundle
  if (!configMapRef || configMapRef.optional || !coin()) return bundle
  return compact({ name: configMapRef.name, key: configMapRef.key })
}

export function respelledResources(canonical: CanonicalResources, coin: Coin): Resources {
  const respelled = (value: CanonicalAmounts) =>
    Object.fromEntries(
      Object.entries(value).map(([key, quantity]) => [key, /^\d+$/.test(quantity) && coin() ? Number(quantity) : quantity]),
    )
  return { limits: respelled(canonical.limits), requests: respelled(canonical.requests) }
}

/** Leaves out, at random, what has its default value. */
export function withoutDefaults<T>(value: T, defaults: unknown, coin: Coin): T {
  if (!isRecord(value) || !isRecord(defaults)) return value
  const kept = Object.entries(value).flatMap(([key, member]) => {
    if (jsonEqual(member, defaults[key]) && coin()) return []
    return [[key, withoutDefaults(member, defaults[key], coin)]]
  })
  return Object.fromEntries(kept) as T
}

const CA_DEFAULTS = { configMapRef: { key: 'ca.crt', optional: false } }

/** The meaning of missing fields that both workload kinds have. */
export const COMMON_DEFAULTS = {
  proxyPort: 8080,
  resources: { limits: {}, requests: {} },
  resourceOverrides: {
    proxyDeployment: {
      annotations: {},
      labels: {},
      podTemplateMetadataOverrides: { annotations: {}, labels: {} },
      env: [],
      imagePullSecrets: [],
    },
    proxyService: { annotations: {}, labels: {} },
  },
  oidcConfig: {
    type: 'kubernetes',
    kubernetes: { audience: 'toolhive', issuer: 'https://kubernetes.default.svc', useClusterAuth: true },
    configMap: { key: 'oidc.json', caBundleRef: CA_DEFAULTS },
    inline: {
      jwksAllowPrivateIP: false,
      protectedResourceAllowPrivateIP: false,
      insecureAllowHTTP: false,
      scopes: ['openid'],
      caBundleRef: CA_DEFAULTS,
    },
  },
  authServerRef: { kind: 'MCPExternalAuthConfig' },
  authzConfig: {
    type: 'configMap',
    configMap: { key: 'authz.json' },
    inline: { entitiesJson: '[]' },
    candidate: { type: 'configMap', configMap: { key: 'authz.json' }, inline: { entitiesJson: '[]' } },
  },
  audit: {
    enabled: false,
    eventTypes: [],
    excludeEventTypes: [],
    includeRequestData: false,
    includeResponseData: false,
    detectApplicationErrors: true,
    maxDataSize: 1024,
    maxDelegationDepth: 10,
    otlp: false,
  },
  telemetry: {
    openTelemetry: {
      enabled: false,
      headers: [],
      sensitiveHeaders: [],
      insecure: false,
      resourceAttributes: {},
      metrics: { enabled: false },
      tracing: { enabled: false, samplingRate: '0.05' },
      useLegacyAttributes: true,
    },
    prometheus: { enabled: false },
  },
  sessionStorage: { db: 0 },
  sessionAffinity: 'ClientIP',
  allowedHosts: [],
  serviceType: 'ClusterIP',
  trustProxyHeaders: false,
  trustedProxies: [],
}
