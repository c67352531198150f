import { compact, type Normalised, type ProblemList, problemList, readNameRef, unify } from '../../schema/normalize.ts'
import { type CanonicalAuditConfig, normaliseAuditConfig } from '../../shared/audit-config.ts'
import { type CanonicalAuthzConfig, normaliseAuthzConfig } from '../../shared/authz-config.ts'
import { type CanonicalCABundleRef, normaliseCaBundleRef } from '../../shared/ca-bundle-ref.ts'
import { type CanonicalHeaderForward, normaliseHeaderForward } from '../../shared/header-forward.ts'
import { type CanonicalOidcConfig, normaliseOidcConfig } from '../../shared/oidc-config.ts'
import { type CanonicalRateLimiting, normaliseRateLimiting } from '../../shared/rate-limiting.ts'
import { type CanonicalResourceOverrides, normaliseResourceOverrides } from '../../shared/resource-overrides.ts'
import { type CanonicalSessionStorage, normaliseSessionStorage } from '../../shared/session-storage.ts'
import { type CanonicalTelemetryConfig, normaliseTelemetryConfig } from '../../shared/telemetry-config.ts'
import { type CanonicalResources, DEFAULT_PORT, normaliseResources, reportUnsupportedRefs } from '../../shared/workload-fields.ts'
import type { MCPRemoteProxy } from './schema.ts'

type Spec = MCPRemoteProxy['spec']

export interface CanonicalMCPRemoteProxySpec {
  /** Empty, with a problem, when neither spelling is set. */
  remoteUrl: string
  allowPrivateEndpoint: boolean
  transport: NonNullable<Spec['transport']>
  caBundleRef?: CanonicalCABundleRef
  headerForward: CanonicalHeaderForward
  proxyPort: number
  resources: CanonicalResources
  podTemplateSpec?: Record<string, unknown>
  resourceOverrides: CanonicalResourceOverrides
  serviceAccount?: string
  groupRef?: { name: string }
  toolConfigRef?: { name: string }
  oidcConfig?: CanonicalOidcConfig
  externalAuthConfigRef?: { name: string }
  authServerRef?: { kind: 'MCPExternalAuthConfig'; name: string }
  authzConfig?: CanonicalAuthzConfig
  rateLimiting?: CanonicalRateLimiting
  audit: CanonicalAuditConfig
  telemetry: CanonicalTelemetryConfig
  replicas?: number
  sessionStorage?: CanonicalSessionStorage
  sessionAffinity: NonNullable<Spec['sessionAffinity']>
  serviceType: NonNullable<Spec['serviceType']>
  trustProxyHeaders: boolean
  trustedProxies: string[]
  endpointPrefix?: string
  allowedHosts: string[]
}

export function normaliseMcpRemoteProxy({ spec }: Pick<MCPRemoteProxy, 'spec'>): Normalised<CanonicalMCPRemoteProxySpec> {
  const problems = problemList()
  const headerForward = normaliseHeaderForward(problems, 'spec.headerForward', spec.headerForward)
  if (spec.externalAuthConfigRef) reportAuthorizationHeader(problems, headerForward)
  const remoteUrl = unify(problems, { 'spec.remoteUrl': spec.remoteUrl, 'spec.remoteURL': spec.remoteURL })
  if (!remoteUrl) problems.add('spec.remoteUrl', 'missing', 'spec.remoteUrl must be set')
  reportUnsupportedRefs(problems, spec)
  const canonical = compact({
    remoteUrl: remoteUrl ?? '',
    allowPrivateEndpoint: spec.allowPrivateEndpoint ?? false,
    transport: spec.transport ?? 'streamable-http',
    caBundleRef: normaliseCaBundleRef(problems, 'spec.caBundleRef', spec.caBundleRef),
    headerForward,
    proxyPort: unify(problems, { 'spec.proxyPort': spec.proxyPort, 'spec.port': spec.port }) ?? DEFAULT_PORT,
    resources: normaliseResources(spec.resources),
    podTemplateSpec: spec.podTemplateSpec,
    resourceOverrides: normaliseResourceOverrides(spec.resourceOverrides),
    serviceAccount: spec.serviceAccount,
    groupRef: readNameRef(problems, 'spec.groupRef', spec.groupRef),
    toolConfigRef: spec.toolConfigRef,
    oidcConfig: normaliseOidcConfig(problems, 'spec.oidcConfig', spec.oidcConfig),
    externalAuthConfigRef: spec.externalAuthConfigRef && { name: spec.externalAuthConfigRef.name },
    authServerRef: spec.authServerRef && { kind: 'MCPExternalAuthConfig' as const, name: spec.authServerRef.name },
    authzConfig: normaliseAuthzConfig(problems, 'spec.authzConfig', spec.authzConfig),
    rateLimiting: normaliseRateLimiting(spec.rateLimiting),
    audit: normaliseAuditConfig(spec.audit),
    telemetry: normaliseTelemetryConfig(problems, 'spec.telemetry', spec.telemetry),
    replicas: spec.replicas,
    sessionStorage: normaliseSessionStorage(problems, 'spec.sessionStorage', spec.sessionStorage),
    sessionAffinity: spec.sessionAffinity ?? 'ClientIP',
    serviceType: spec.serviceType ?? 'ClusterIP',
    trustProxyHeaders: spec.trustProxyHeaders ?? false,
    trustedProxies: spec.trustedProxies ?? [],
    endpointPrefix: spec.endpointPrefix,
    allowedHosts: spec.allowedHosts ?? [],
  })
  return { spec: canonical, problems: problems.all }
}

/** Admission refuses this too; the object may be older than its rule. */
function reportAuthorizationHeader(problems: ProblemList, forward: CanonicalHeaderForward): void {
  const names = [...Object.keys(forward.addPlaintextHeaders), ...forward.addHeadersFromSecret.map((header) => header.headerName)]
  if (!names.some((name) => name.toLowerCase() === 'authorization')) return
  problems.add(
    'spec.headerForward',
    'forbidden',
    'spec.headerForward must not set Authorization beside spec.externalAuthConfigRef: remove the header',
  )
}
