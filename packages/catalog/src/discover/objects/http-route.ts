import { isObject, objectAt, objectsAt, type UnknownObject } from '@thv/kernel/json'
import type { KubeObject } from '@thv/kube/objects/types'
import { optsIn } from './annotations.ts'

export const GATEWAY_GROUP = 'gateway.networking.k8s.io'

export interface ParentRef {
  readonly group: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly sectionName?: string
  readonly port?: number
}

export interface ParentStatus {
  readonly ref: ParentRef
  readonly accepted: boolean
  /** The reason of `Accepted=False`, where there is one. */
  readonly reason?: string
  /** `ResolvedRefs=False`. */
  readonly unresolved: boolean
}

export interface PathMatch {
  readonly type: string
  readonly value: string
  /** It also asks for headers, query parameters or a method. */
  readonly restricted: boolean
}

/** The path that a URLRewrite filter gives the backend. */
export interface PathRewrite {
  readonly type: string
  readonly value: string
}

export interface BackendRef {
  readonly group: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly weight: number
  readonly rewrite?: PathRewrite
}

export interface RouteRule {
  /** Empty: everything matches. */
  readonly matches: readonly PathMatch[]
  readonly redirects: boolean
  readonly rewrite?: PathRewrite
  readonly backends: readonly BackendRef[]
}

/** The parts of an HTTPRoute that export reads. */
export interface HttpRoute {
  readonly namespace: string
  readonly name: string
  readonly parents: readonly ParentRef[]
  readonly hostnames: readonly string[]
  readonly rules: readonly RouteRule[]
  readonly status: readonly ParentStatus[]
}

/** Undefined for a route that does not opt in or is being deleted. */
export function httpRouteOf(object: KubeObject): HttpRoute | undefined {
  const { metadata } = object
  if (!optsIn(metadata.annotations ?? {}) || metadata.deletionTimestamp !== undefined) return undefined
  const namespace = metadata.namespace ?? ''
  const root = object as unknown as UnknownObject
  const spec = objectAt(root, 'spec')
  const hostnames = spec['hostnames']
  return {
    namespace,
    name: metadata.name,
    parents: objectsAt(spec, 'parentRefs').map((ref) => parentRefOf(ref, namespace)),
    hostnames: Array.isArray(hostnames) ? hostnames.filter((host) => typeof host === 'string').map((host) => host.toLowerCase()) : [],
    rules: objectsAt(spec, 'rules').map((rule) => ruleOf(rule, namespace)),
    status: objectsAt(objectAt(root, 'status'), 'parents').map((parent) => statusOf(parent, namespace)),
  }
}

function parentRefOf(ref: UnknownObject, routeNamespace: string): ParentRef {
  return {
    group: textAt(ref, 'group') ?? GATEWAY_GROUP,
    kind: textAt(ref, 'kind') ?? 'Gateway',
    namespace: textAt(ref, 'namespace') ?? routeNamespace,
    name: textAt(ref, 'name') ?? '',
    ...(textAt(ref, 'sectionName') === undefined ? {} : { sectionName: textAt(ref, 'sectionName') ?? '' }),
    ...(typeof ref['port'] === 'number' ? { port: ref['port'] } : {}),
  }
}

function statusOf(parent: UnknownObject, routeNamespace: string): ParentStatus {
  const conditions = objectsAt(parent, 'conditions')
  const find = (type: string) => conditions.find((condition) => condition['type'] === type)
  const accepted = find('Accepted')
  const reason = accepted?.['reason']
  return {
    ref: parentRefOf(objectAt(parent, 'parentRef'), routeNamespace),
    accepted: accepted?.['status'] === 'True',
    ...(typeof reason === 'string' ? { reason } : {}),
    unresolved: find('ResolvedRefs')?.['status'] === 'False',
  }
}

function ruleOf(rule: UnknownObject, routeNamespace: string): RouteRule {
  const filters = objectsAt(rule, 'filters')
  const rewrite = rewriteOf(filters)
  return {
    matches: objectsAt(rule, 'matches').map(matchOf),
    redirects: filters.some((filter) => filter['type'] === 'RequestRedirect'),
    ...(rewrite === undefined ? {} : { rewrite }),
    backends: objectsAt(rule, 'backendRefs').map((ref) => backendOf(ref, routeNamespace)),
  }
}

function matchOf(match: UnknownObject): PathMatch {
  const path = objectAt(match, 'path')
  return {
    type: textAt(path, 'type') ?? 'PathPrefix',
    value: textAt(path, 'value') ?? '/',
    restricted: isFilled(match['headers']) || isFilled(match['queryParams']) || textAt(match, 'method') !== undefined,
  }
}

function isFilled(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0
}

function backendOf(ref: UnknownObject, routeNamespace: string): BackendRef {
  const rewrite = rewriteOf(objectsAt(ref, 'filters'))
  return {
    group: textAt(ref, 'group') ?? '',
    kind: textAt(ref, 'kind') ?? 'Service',
    namespace: textAt(ref, 'namespace') ?? routeNamespace,
    name: textAt(ref, 'name') ?? '',
    weight: typeof ref['weight'] === 'number' ? ref['weight'] : 1,
    ...(rewrite === undefined ? {} : { rewrite }),
  }
}

function rewriteOf(filters: readonly UnknownObject[]): PathRewrite | undefined {
  const filter = filters.find((candidate) => candidate['type'] === 'URLRewrite')
  const path = filter === undefined ? undefined : objectAt(filter, 'urlRewrite')['path']
  if (!isObject(path)) return undefined
  const type = textAt(path, 'type') ?? ''
  const value = type === 'ReplaceFullPath' ? textAt(path, 'replaceFullPath') : textAt(path, 'replacePrefixMatch')
  return value === undefined ? undefined : { type, value }
}

/** The API server writes '' for the core group and leaves other empty texts out. */
function textAt(object: UnknownObject, name: string): string | undefined {
  const value = object[name]
  return typeof value === 'string' ? value : undefined
}
