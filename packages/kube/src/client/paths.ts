import type { ObjectKey, ResourceType } from '../objects/types.ts'
import { badRequest, type KubeApiError } from './kube-api-error.ts'

export type Query = Record<string, string | number | boolean | undefined>

/** `/api/v1/namespaces/NS/pods` or `/apis/GROUP/VERSION/PLURAL`; without a namespace the collection spans all of them. */
export function collectionPath(type: ResourceType, namespace?: string): string {
  if (namespace !== undefined && !type.namespaced) {
    throw badRequest(resourceName(type), `not namespaced, but namespace ${quote(namespace)} was given`)
  }
  const parts = type.group === '' ? ['api', type.version] : ['apis', type.group, type.version]
  if (namespace !== undefined) parts.push('namespaces', namespace)
  parts.push(type.plural)
  return join(parts, resourceName(type))
}

export function objectPath(type: ResourceType, key: ObjectKey, subresource?: string): string {
  if (type.namespaced && key.namespace === undefined) {
    throw badRequest(resourceName(type), `a namespace is needed for ${quote(key.name)}`)
  }
  const tail = subresource === undefined ? [key.name] : [key.name, subresource]
  return collectionPath(type, key.namespace) + join(tail, resourceName(type))
}

/** Leaves out what is undefined; keeps the order given. */
export function withQuery(path: string, query: Query): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) params.append(name, String(value))
  }
  const text = params.toString()
  return text === '' ? path : `${path}?${text}`
}

/** A path given as text (`raw`): absolute, no query, nothing that a server or proxy could read as another path. */
export function vetRawPath(path: string): string {
  if (!/^\/[A-Za-z0-9._~:@!$&'()*+,;=/-]*$/.test(path))
    throw badRequest(quote(path), 'a path must begin with "/" and hold no query or escapes')
  const parts = path.slice(1).split('/')
  if (parts.at(-1) === '') parts.pop()
  for (const part of parts) {
    if (part === '' || part === '.' || part === '..') throw unfit(part, quote(path))
  }
  return path
}

/** `v1` or `apps/v1`. */
export function apiVersionOf(type: ResourceType): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`
}

/** `pods` or `deployments.apps`, as kubectl writes it. */
export function resourceName(type: ResourceType): string {
  return type.group === '' ? type.plural : `${type.plural}.${type.group}`
}

function join(parts: readonly string[], what: string): string {
  return parts.map((part) => `/${segment(part, what)}`).join('')
}

/**
 * The API server's own rule for path segments: no `/` or `%`, not `.` or `..`. Escaping alone would not do, since proxies in
 * between may decode before they route.
 */
function segment(text: string, what: string): string {
  if (typeof text !== 'string' || text === '' || text === '.' || text === '..' || /[/%]/.test(text) || !text.isWellFormed()) {
    throw unfit(text, what)
  }
  return encodeURIComponent(text)
}

function unfit(text: unknown, where: string): KubeApiError {
  return badRequest(where, `${quote(text)} cannot be part of a resource path`)
}

function quote(text: unknown): string {
  const shown = String(text)
  return JSON.stringify(shown.length > 100 ? `${shown.slice(0, 100)}…` : shown)
}
