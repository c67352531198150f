import { objectAt } from '@thv/kernel/json'
import type { KubeObject } from '@thv/kube/objects/types'
import { type Annotations, ExportAnnotation } from './annotations.ts'
import { keyText } from './object-ref.ts'

export const resourceKinds = ['MCPServer', 'MCPRemoteProxy', 'VirtualMCPServer'] as const
export type ResourceKind = (typeof resourceKinds)[number]

export const TOOLHIVE_GROUP = 'toolhive.stacklok.dev'

export type RemoteType = 'sse' | 'streamable-http'

/** The parts of an MCP resource that export reads. */
export interface McpResource {
  readonly kind: ResourceKind
  readonly namespace: string
  readonly name: string
  readonly uid?: string
  /** Those of the export only. */
  readonly annotations: Annotations
  /** MCPServer only. */
  readonly image?: string
  /** As the spec says, for the entry's metadata. */
  readonly transport?: string
  /** How clients speak to its proxy; never stdio. */
  readonly remoteType: RemoteType
  /** Where it can be asked for its tools: it runs, and needs no token. */
  readonly askable?: Askable
}

export interface Askable {
  readonly url: string
  /** Of the spec that is served: its tools may be others with another generation. */
  readonly generation: number
}

const READ: ReadonlySet<string> = new Set(Object.values(ExportAnnotation))

/** Undefined for an object that is being deleted. */
export function mcpResourceOf(kind: ResourceKind, object: KubeObject): McpResource | undefined {
  const { metadata } = object
  if (metadata.deletionTimestamp !== undefined) return undefined
  const spec = objectAt(object as unknown as Record<string, unknown>, 'spec')
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([name]) => READ.has(name))
  return {
    kind,
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
    annotations: Object.fromEntries(annotations),
    ...(kind === 'MCPServer' && typeof spec['image'] === 'string' ? { image: spec['image'] } : {}),
    ...(typeof spec['transport'] === 'string' ? { transport: spec['transport'] } : {}),
    remoteType: remoteTypeOf(kind, spec),
    ...askableOf(object, spec),
  }
}

const RUNNING: ReadonlySet<unknown> = new Set(['Running', 'Ready'])

function askableOf(object: KubeObject, spec: Readonly<Record<string, unknown>>): { askable?: Askable } {
  const status = objectAt(object as unknown as Record<string, unknown>, 'status')
  const { phase, url, observedGeneration } = status
  if (!RUNNING.has(phase) || typeof url !== 'string' || needsToken(spec)) return {}
  const { generation = 0 } = object.metadata
  return { askable: { url, generation: typeof observedGeneration === 'number' ? observedGeneration : generation } }
}

/** Parts of a spec that make clients authenticate. */
export const authenticationParts = ['oidcConfig', 'oidcConfigRef', 'incomingAuth', 'externalAuthConfigRef', 'authServerRef'] as const

function needsToken(spec: Readonly<Record<string, unknown>>): boolean {
  return authenticationParts.some((part) => spec[part] !== undefined && objectAt(spec, part)['type'] !== 'anonymous')
}

function remoteTypeOf(kind: ResourceKind, spec: Readonly<Record<string, unknown>>): RemoteType {
  if (kind === 'VirtualMCPServer') return 'streamable-http'
  const transport = spec['transport']
  const spoken = kind === 'MCPServer' && (transport === 'stdio' || !isRemoteType(transport)) ? spec['proxyMode'] : transport
  return isRemoteType(spoken) ? spoken : 'streamable-http'
}

function isRemoteType(value: unknown): value is RemoteType {
  return value === 'sse' || value === 'streamable-http'
}

export function resourceKey(resource: Pick<McpResource, 'kind' | 'namespace' | 'name'>): string {
  return keyText(resource.kind, resource.namespace, resource.name)
}

export function isResourceKind(kind: unknown): kind is ResourceKind {
  return resourceKinds.some((known) => known === kind)
}
