import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { MCPRemoteProxyPhase } from '@thv/resources/kinds/mcp-remote-proxy/constants'
import { normaliseMcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/normalise'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { MCPServerPhase } from '@thv/resources/kinds/mcp-server/constants'
import { normaliseMcpServer } from '@thv/resources/kinds/mcp-server/normalise'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import { normaliseMcpServerEntry } from '@thv/resources/kinds/mcp-server-entry/normalise'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import type { CanonicalHeaderForward } from '@thv/resources/shared/header-forward'
import type { CanonicalOidcConfig } from '@thv/resources/shared/oidc-config'
import { workloadUrl } from '@thv/resources/shared/workload-url'
import { headerIdentifiers, SECRET_VARIABLE_PREFIX, variablePart } from '@thv/runconfig/forwarded-headers'
import type { IncomingAuthConfig } from '../vmcp-config.ts'
import { isProblem, memberAuth } from './member-auth.ts'
import {
  MEMBER_KINDS,
  type MemberBackend,
  type MemberKindName,
  type MemberProblem,
  type ResolvedMember,
  type SecretVariable,
  WORKLOAD_TYPES,
} from './member-backend.ts'

/** Surroundings of the members of a group. */
export interface MemberContext {
  readonly group: string
  readonly namespace: string
  readonly clusterDomain: string
  /** How clients of the virtual server authenticate. */
  readonly incoming: Pick<IncomingAuthConfig, 'oidc'>
  /** Outside of the cluster the names of Services lead nowhere, and `status.url` is tried. */
  readonly proxyAddress?: 'service' | 'status'
  externalAuthConfig(name: string): Pick<MCPExternalAuthConfig, 'spec'> | undefined
}

interface Resources {
  readonly MCPServer: MCPServer
  readonly MCPRemoteProxy: MCPRemoteProxy
  readonly MCPServerEntry: MCPServerEntry
}

interface Metadata {
  readonly name: string
  readonly annotations?: Readonly<Record<string, string>> | undefined
  readonly deletionTimestamp?: string | undefined
}

/** How one kind becomes a backend. */
interface MemberKind<T> {
  group(resource: T): string | undefined
  resolve(resource: T, context: MemberContext): Parts | MemberProblem
}

interface Parts extends Partial<Omit<MemberBackend, 'kind' | 'backend'>> {
  readonly url: string
  readonly transport: 'streamable-http' | 'sse'
  readonly allowPrivate?: boolean
}

/** One row per kind, for every program that lists backends. */
const TABLE: { readonly [K in MemberKindName]: MemberKind<Resources[K]> } = {
  MCPServer: {
    group: (server) => normaliseMcpServer(server).spec.groupRef?.name,
    resolve: (server, context) => proxyParts('MCPServer', server, normaliseMcpServer(server).spec, context),
  },
  MCPRemoteProxy: {
    group: (proxy) => normaliseMcpRemoteProxy(proxy).spec.groupRef?.name,
    resolve(proxy, context) {
      const { spec } = normaliseMcpRemoteProxy(proxy)
      return proxyParts('MCPRemoteProxy', proxy, { ...spec, proxyMode: spec.transport }, context)
    },
  },
  MCPServerEntry: {
    group: (entry) => normaliseMcpServerEntry(entry).spec.groupRef?.name,
    resolve: entryParts,
  },
}

export type MemberResources = { readonly [K in MemberKindName]: readonly Resources[K][] }

/** The members of the group as backends, sorted by name; a name that several kinds have goes to the first of `MEMBER_KINDS`. Pure. */
export function resolveMembers(resources: MemberResources, context: MemberContext): readonly ResolvedMember[] {
  const taken = new Map<string, MemberKindName>()
  const resolved = MEMBER_KINDS.flatMap((kind) =>
    membersOf(kind, resources, context).map((result): ResolvedMember => {
      const name = result.ok ? result.member.backend.name : result.name
      const owner = taken.get(name)
      if (owner === undefined) {
        taken.set(name, kind)
        return result
      }
      return { ok: false, kind, name, problem: { reason: 'NameTaken', message: `${owner} ${name} has this name already` } }
    }),
  )
  return resolved.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
}

function membersOf<K extends MemberKindName>(kind: K, resources: MemberResources, context: MemberContext): ResolvedMember[] {
  const { group, resolve } = TABLE[kind] as MemberKind<Resources[K]>
  const all = resources[kind] as readonly Resources[K][]
  return all
    .filter((resource) => group(resource) === context.group)
    .map((resource) => {
      const { name, annotations, deletionTimestamp } = resource.metadata as Metadata
      const parts = deletionTimestamp === undefined ? resolve(resource, context) : notReady(`${kind} ${name} is being deleted`)
      if ('reason' in parts) return { ok: false, kind, name, problem: parts }
      const { url, transport, allowPrivate = false, ...rest } = parts
      const metadata = { ...ownNotes(annotations), group: context.group, namespace: context.namespace, workload_type: WORKLOAD_TYPES[kind] }
      const backend = { name, url, transport, allowPrivate, metadata, ...(kind === 'MCPServerEntry' && { type: 'entry' as const }) }
      return { ok: true, member: { ...NOTHING, ...rest, kind, backend } }
    })
}

const NOTHING = {
  auth: undefined,
  authConfigRef: undefined,
  headers: undefined,
  secrets: [],
  caBundle: undefined,
  isReady: false,
  warning: undefined,
}

interface ProxySpec {
  readonly proxyMode: 'sse' | 'streamable-http'
  readonly proxyPort: number
  readonly oidcConfig?: CanonicalOidcConfig
}

interface Workload {
  readonly metadata: Metadata
  readonly status?: { readonly url?: string | undefined; readonly phase?: string | undefined } | undefined
}

/** The phase in which a proxy serves. */
const SERVING = { MCPServer: MCPServerPhase.Running, MCPRemoteProxy: MCPRemoteProxyPhase.Ready }

/** The proxy applies its own `externalAuthConfigRef`: it is not applied a second time. */
function proxyParts(
  kind: 'MCPServer' | 'MCPRemoteProxy',
  workload: Workload,
  { proxyMode, proxyPort, oidcConfig }: ProxySpec,
  context: MemberContext,
): Parts | MemberProblem {
  const { name } = workload.metadata
  if (!workload.status?.url) return notReady(`${kind} ${name} has no URL yet`)
  const { namespace, clusterDomain } = context
  const parts = {
    transport: proxyMode,
    isReady: workload.status.phase === SERVING[kind],
    ...(oidcConfig !== undefined && callerToken(oidcConfig, context)),
  }
  if (context.proxyAddress === 'status') return { url: workload.status.url, ...parts }
  return { url: workloadUrl({ kind, name, namespace, clusterDomain, proxyMode, proxyPort }), ...parts }
}

/** The token of a caller is good for a proxy only if that accepts tokens of the same issuer and audience. */
function callerToken(oidc: CanonicalOidcConfig, { incoming, externalAuthConfig }: MemberContext): Pick<Parts, 'auth' | 'warning'> {
  const settings =
    oidc.type === 'external' ? externalAuthConfig(oidc.external.name)?.spec.oidc : oidc.type === 'inline' ? oidc.inline : undefined
  const { issuer, audience = oidc.resourceUrl } = settings ?? {}
  if (issuer !== undefined && issuer === incoming.oidc?.issuer && audience === incoming.oidc.audience)
    return { auth: { type: 'caller_token' } }
  const message = 'its proxy accepts tokens of another issuer or audience; use outgoingAuth.backends with a token exchange'
  return { warning: { reason: 'AudienceDiffers', message } }
}

function entryParts(entry: MCPServerEntry, context: MemberContext): Parts | MemberProblem {
  const { name } = entry.metadata
  const { spec, problems } = normaliseMcpServerEntry(entry)
  const { remoteUrl, transport, externalAuthConfigRef: ref, headerForward, caBundleRef, allowPrivateEndpoint: allowPrivate } = spec
  if (remoteUrl === undefined || problems.length > 0)
    return { reason: 'Invalid', message: problems[0]?.message ?? 'spec.remoteUrl is missing' }
  if (entry.status?.phase !== 'Ready') return notReady(`MCPServerEntry ${name} is not ready; its conditions say why`)
  const { headers, secrets } = forwarded(name, headerForward)
  const parts = { url: remoteUrl, transport, allowPrivate, headers, secrets, caBundle: caBundleRef?.configMapRef, isReady: true }
  if (ref === undefined) return parts
  const config = context.externalAuthConfig(ref.name)
  if (config === undefined) return { reason: 'AuthUnavailable', message: `MCPExternalAuthConfig ${ref.name} does not exist` }
  const auth = memberAuth(config, name)
  if (isProblem(auth)) return { ...auth, message: `MCPExternalAuthConfig ${ref.name}: ${auth.message}` }
  return { ...parts, auth: auth.auth, authConfigRef: ref.name, secrets: [...secrets, ...auth.secrets] }
}

function forwarded(owner: string, { addPlaintextHeaders: plain, addHeadersFromSecret: fromSecret }: CanonicalHeaderForward) {
  if (Object.keys(plain).length === 0 && fromSecret.length === 0) return { headers: undefined, secrets: [] }
  const identifiers = headerIdentifiers(
    fromSecret.map(({ headerName }) => headerName),
    owner,
  )
  const secrets: SecretVariable[] = fromSecret.map(({ headerName, valueSecretRef }) => ({
    name: `${SECRET_VARIABLE_PREFIX}${identifiers[headerName]}`,
    secret: valueSecretRef,
  }))
  const manifest = JSON.stringify({ addPlaintextHeaders: plain, addHeadersFromSecret: identifiers })
  return { headers: { variable: headerVariable(owner), manifest }, secrets }
}

/** Variable with the forwarded headers of a backend. */
export function headerVariable(backend: string): string {
  return `TOOLHIVE_HEADER_FORWARD_${variablePart(backend)}`
}

/** Annotations of users, without those of Kubernetes and of programs that manage objects. */
function ownNotes(annotations: Readonly<Record<string, string>> = {}): Record<string, string> {
  const foreign = /^([^/]*\.)?(kubernetes\.io|k8s\.io|stacklok\.dev|stacklok\.io)\//
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => !foreign.test(key)))
}

function notReady(message: string): MemberProblem {
  return { reason: 'NotReady', message }
}

function nameOf(result: ResolvedMember): string {
  return result.ok ? result.member.backend.name : result.name
}
