import { compact, type ProblemList, readNameRef, unify } from '../schema/normalize.ts'
import { type AuditConfig, type CanonicalAuditConfig, normaliseAuditConfig } from './audit-config.ts'
import { type CanonicalAuthzConfig, normaliseAuthzConfig } from './authz-config.ts'
import { type CanonicalOidcConfig, normaliseOidcConfig, type OidcConfig } from './oidc-config.ts'
import { type CanonicalRateLimiting, normaliseRateLimiting, type RateLimiting } from './rate-limiting.ts'
import { type CanonicalResourceOverrides, normaliseResourceOverrides, type ResourceOverrides } from './resource-overrides.ts'
import { type CanonicalSessionStorage, normaliseSessionStorage, type SessionStorage } from './session-storage.ts'
import { type CanonicalTelemetryConfig, normaliseTelemetryConfig, type TelemetryConfig } from './telemetry-config.ts'
import { type CanonicalResources, DEFAULT_PORT, normaliseResources, type Resources } from './workload-fields.ts'

type Affinity = 'ClientIP' | 'None'
type ServiceType = 'ClusterIP' | 'NodePort' | 'LoadBalancer'

/** The members of a spec that concern its proxy, whatever it stands before. */
export interface ProxySettings {
  proxyPort?: number
  port?: number
  resources?: Resources
  podTemplateSpec?: Record<string, unknown>
  resourceOverrides?: ResourceOverrides
  serviceAccount?: string
  groupRef?: unknown
  toolConfigRef?: { name: string }
  oidcConfig?: OidcConfig
  externalAuthConfigRef?: { name: string }
  authServerRef?: { name: string }
  authzConfig?: Parameters<typeof normaliseAuthzConfig>[2]
  rateLimiting?: RateLimiting
  audit?: AuditConfig
  telemetry?: TelemetryConfig
  replicas?: number
  sessionStorage?: SessionStorage
  sessionAffinity?: Affinity
  serviceType?: ServiceType
  trustProxyHeaders?: boolean
  trustedProxies?: string[]
  endpointPrefix?: string
  allowedHosts?: string[]
}

export interface CanonicalProxySettings {
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
  sessionAffinity: Affinity
  serviceType: ServiceType
  trustProxyHeaders: boolean
  trustedProxies: string[]
  endpointPrefix?: string
  allowedHosts: string[]
}

export function normaliseProxySettings(problems: ProblemList, spec: ProxySettings): CanonicalProxySettings {
  return compact({
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
}
