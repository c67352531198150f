import { compact, type Normalised, type ProblemList, problemList, readNameRef, unify } from '../../schema/normalize.ts'
import { type CanonicalAuditConfig, normaliseAuditConfig } from '../../shared/audit-config.ts'
import { type CanonicalAuthzConfig, normaliseAuthzConfig } from '../../shared/authz-config.ts'
import { type CanonicalOidcConfig, normaliseOidcConfig } from '../../shared/oidc-config.ts'
import { type CanonicalRateLimiting, normaliseRateLimiting } from '../../shared/rate-limiting.ts'
import { type CanonicalResourceOverrides, normaliseResourceOverrides } from '../../shared/resource-overrides.ts'
import { type CanonicalSessionStorage, normaliseSessionStorage } from '../../shared/session-storage.ts'
import { type CanonicalTelemetryConfig, normaliseTelemetryConfig } from '../../shared/telemetry-config.ts'
import {
  type CanonicalResources,
  DEFAULT_PORT,
  type EnvVariable,
  normaliseResources,
  reportUnsupportedRefs,
} from '../../shared/workload-fields.ts'
import type { MCPServer } from './schema.ts'

type Spec = MCPServer['spec']

export interface CanonicalMCPServerSpec {
  image: string
  transport: NonNullable<Spec['transport']>
  /** How the proxy really speaks: for anything but stdio, like the server. */
  proxyMode: NonNullable<Spec['proxyMode']>
  proxyPort: number
  mcpPort: number
  args: string[]
  env: EnvVariable[]
  secrets: NonNullable<Spec['secrets']>
  volumes: Required<NonNullable<Spec['volumes']>[number]>[]
  resources: CanonicalResources
  permissionProfile?: CanonicalPermissionProfile
  podTemplateSpec?: Record<string, unknown>
  resourceOverrides: CanonicalResourceOverrides
  serviceAccount?: string
  groupRef?: { name: string }
  /** Only in objects that name no MCPToolConfig. Empty: no filter. */
  tools: string[]
  toolConfigRef?: { name: string }
  oidcConfig?: CanonicalOidcConfig
  externalAuthConfigRef?: { name: string }
  authServerRef?: { kind: 'MCPExternalAuthConfig'; name: string }
  authzConfig?: CanonicalAuthzConfig
  rateLimiting?: CanonicalRateLimiting
  audit: CanonicalAuditConfig
  telemetry: CanonicalTelemetryConfig
  replicas?: number
  backendReplicas?: number
  sessionStorage?: CanonicalSessionStorage
  sessionAffinity: NonNullable<Spec['sessionAffinity']>
  serviceType: NonNullable<Spec['serviceType']>
  trustProxyHeaders: boolean
  trustedProxies: string[]
  endpointPrefix?: string
  allowedHosts: string[]
}

export type CanonicalPermissionProfile = { type: 'builtin'; name: string } | { type: 'configmap'; name: string; key: string }

export function normaliseMcpServer({ spec }: Pick<MCPServer, 'spec'>): Normalised<CanonicalMCPServerSpec> {
  const problems = problemList()
  const transport = spec.transport ?? 'stdio'
  if (spec.toolConfigRef && spec.tools?.length) {
    problems.add('spec.tools', 'forbidden', 'spec.tools and spec.toolConfigRef must not both be set: put the tools into the MCPToolConfig')
  }
  reportUnsupportedRefs(problems, spec)
  const canonical = compact({
    image: spec.image,
    transport,
    proxyMode: transport === 'stdio' ? (spec.proxyMode ?? 'streamable-http') : transport,
    proxyPort: unify(problems, { 'spec.proxyPort': spec.proxyPort, 'spec.port': spec.port }) ?? DEFAULT_PORT,
    mcpPort: unify(problems, { 'spec.mcpPort': spec.mcpPort, 'spec.targetPort': spec.targetPort }) ?? DEFAULT_PORT,
    args: spec.args ?? [],
    env: spec.env ?? [],
    secrets: spec.secrets ?? [],
    volumes: (spec.volumes ?? []).map((volume) => ({ ...volume, readOnly: volume.readOnly ?? false })),
    resources: normaliseResources(spec.resources),
    permissionProfile: canonicalProfile(problems, spec.permissionProfile),
    podTemplateSpec: spec.podTemplateSpec,
    resourceOverrides: normaliseResourceOverrides(spec.resourceOverrides),
    serviceAccount: spec.serviceAccount,
    groupRef: readNameRef(problems, 'spec.groupRef', spec.groupRef),
    tools: spec.toolConfigRef ? [] : (spec.tools ?? []),
    toolConfigRef: spec.toolConfigRef,
    oidcConfig: normaliseOidcConfig(problems, 'spec.oidcConfig', spec.oidcConfig),
    externalAuthConfigRef: spec.externalAuthConfigRef && { name: spec.externalAuthConfigRef.name },
    authServerRef: spec.authServerRef && { kind: 'MCPExternalAuthConfig' as const, name: spec.authServerRef.name },
    authzConfig: normaliseAuthzConfig(problems, 'spec.authzConfig', spec.authzConfig),
    rateLimiting: normaliseRateLimiting(spec.rateLimiting),
    audit: normaliseAuditConfig(spec.audit),
    telemetry: normaliseTelemetryConfig(problems, 'spec.telemetry', spec.telemetry),
    replicas: spec.replicas,
    backendReplicas: spec.backendReplicas,
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

function canonicalProfile(problems: ProblemList, profile: Spec['permissionProfile']): CanonicalPermissionProfile | undefined {
  if (!profile) return undefined
  if (profile.type !== 'configmap') return { type: 'builtin', name: profile.name }
  if (profile.key) return { type: 'configmap', name: profile.name, key: profile.key }
  problems.add('spec.permissionProfile.key', 'missing', 'spec.permissionProfile.key must be set, because type is configmap')
  return undefined
}
