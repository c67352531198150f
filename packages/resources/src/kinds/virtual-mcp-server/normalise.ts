import { compact, isRecord, type Normalised, type ProblemList, problemList, readNameRef, unify } from '../../schema/normalize.ts'
import { type CanonicalEmbeddedAuthServer, normaliseEmbeddedAuthServer } from '../../shared/auth-server/embedded-auth-server.ts'
import { type CanonicalSessionStorage, normaliseSessionStorage } from '../../shared/session-storage.ts'
import { type CanonicalConfig, normaliseConfig } from './config-normalise.ts'
import { type CanonicalIncomingAuth, normaliseIncomingAuth } from './incoming-auth-normalise.ts'
import type { BackendAuth, OutgoingAuth } from './outgoing-auth.ts'
import type { VirtualMCPServer } from './schema.ts'
import { UNSUPPORTED } from './unsupported.ts'

type Spec = VirtualMCPServer['spec']

export interface CanonicalVirtualMCPServerSpec {
  /** Absent only together with a problem. */
  groupRef?: { name: string }
  config: CanonicalConfig
  /** Absent only together with a problem: no client may be accepted then. */
  incomingAuth?: CanonicalIncomingAuth
  outgoingAuth: CanonicalOutgoingAuth
  authServerConfig?: CanonicalEmbeddedAuthServer
  compositeToolRefs: { name: string }[]
  passthroughHeaders: string[]
  sessionStorage?: CanonicalSessionStorage
  replicas?: number
  serviceType: NonNullable<Spec['serviceType']>
  sessionAffinity: NonNullable<Spec['sessionAffinity']>
  trustProxyHeaders: boolean
  trustedProxies: string[]
  allowedHosts: string[]
  serviceAccount?: string
  imagePullSecrets: { name: string }[]
  podTemplateSpec?: Record<string, unknown>
}

export interface CanonicalOutgoingAuth {
  source: NonNullable<OutgoingAuth['source']>
  default?: CanonicalBackendAuth
  backends: Record<string, CanonicalBackendAuth>
}

export type CanonicalBackendAuth = { type: 'discovered' } | { type: 'externalAuthConfigRef'; externalAuthConfigRef: { name: string } }

export function normaliseVirtualMcpServer({ spec }: Pick<VirtualMCPServer, 'spec'>): Normalised<CanonicalVirtualMCPServerSpec> {
  const problems = problemList()
  reportUnsupported(problems, spec)
  const canonical = compact({
    groupRef: groupOf(problems, spec),
    config: normaliseConfig(problems, 'spec.config', spec.config ?? {}),
    ...normaliseIncomingAuth(problems, spec, spec.authServerConfig && normaliseEmbeddedAuthServer(spec.authServerConfig)),
    outgoingAuth: outgoingAuthOf(problems, spec.outgoingAuth ?? {}),
    compositeToolRefs: compositeToolRefsOf(problems, spec),
    passthroughHeaders:
      unify(problems, {
        'spec.passthroughHeaders': spec.passthroughHeaders,
        'spec.config.passthroughHeaders': spec.config?.passthroughHeaders,
      }) ?? [],
    sessionStorage: normaliseSessionStorage(problems, 'spec.sessionStorage', spec.sessionStorage),
    replicas: spec.replicas,
    serviceType: spec.serviceType ?? 'ClusterIP',
    sessionAffinity: spec.sessionAffinity ?? 'ClientIP',
    trustProxyHeaders: spec.trustProxyHeaders ?? false,
    trustedProxies: spec.trustedProxies ?? [],
    allowedHosts: spec.allowedHosts ?? [],
    serviceAccount: spec.serviceAccount,
    imagePullSecrets: (spec.imagePullSecrets ?? []).flatMap(({ name }) => (name ? [{ name }] : [])),
    podTemplateSpec: spec.podTemplateSpec,
  })
  return { spec: canonical, problems: problems.all }
}

/** Fields that admission refuses may still be in objects that were stored before our schema was there. */
function reportUnsupported(problems: ProblemList, spec: Spec): void {
  for (const [path, instead] of Object.entries(UNSUPPORTED)) {
    const value = path.split('.').reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), spec)
    if (value !== undefined) problems.add(`spec.${path}`, 'forbidden', `spec.${path} is not supported: ${instead}`)
  }
}

function groupOf(problems: ProblemList, spec: Spec): { name: string } | undefined {
  const before = problems.all.length
  const ref = readNameRef(problems, 'spec.groupRef', spec.groupRef)
  const older = readNameRef(problems, 'spec.config.groupRef', spec.config?.groupRef)
  const name = unify(problems, { 'spec.groupRef': ref?.name, 'spec.config.groupRef': older?.name })
  if (name !== undefined) return { name }
  if (problems.all.length === before) {
    problems.add('spec.groupRef', 'missing', 'spec.groupRef must be set: {name: NAME} of the MCPGroup whose members are joined')
  }
  return undefined
}

function outgoingAuthOf(problems: ProblemList, auth: OutgoingAuth): CanonicalOutgoingAuth {
  const backends: [string, CanonicalBackendAuth][] = []
  for (const [name, backend] of Object.entries(auth.backends ?? {})) {
    const canonical = backendAuthOf(problems, `spec.outgoingAuth.backends.${name}`, backend)
    if (canonical) backends.push([name, canonical])
  }
  return compact({
    source: auth.source ?? 'discovered',
    default: auth.default && backendAuthOf(problems, 'spec.outgoingAuth.default', auth.default),
    backends: Object.fromEntries(backends),
  })
}

function backendAuthOf(problems: ProblemList, field: string, auth: BackendAuth): CanonicalBackendAuth | undefined {
  if (auth.type === 'discovered') return { type: 'discovered' }
  const { externalAuthConfigRef } = auth
  if (externalAuthConfigRef) return { type: 'externalAuthConfigRef', externalAuthConfigRef }
  problems.add(field, 'missing', `${field}.externalAuthConfigRef must be set, because type is ${auth.type}`)
  return undefined
}

/** Two places, one list. A definition that is named in both is a mistake, and is used once. */
function compositeToolRefsOf(problems: ProblemList, spec: Spec): { name: string }[] {
  const refs = new Map<string, { name: string }>()
  for (const ref of [...(spec.compositeToolRefs ?? []), ...(spec.config?.compositeToolRefs ?? [])]) {
    if (refs.has(ref.name)) {
      problems.add('spec.compositeToolRefs', 'duplicate', `spec.compositeToolRefs and spec.config.compositeToolRefs name ${ref.name} twice`)
    }
    refs.set(ref.name, { name: ref.name })
  }
  return [...refs.values()]
}
