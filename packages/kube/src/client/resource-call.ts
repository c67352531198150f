import { formatKey } from '../objects/object-key.ts'
import type { KubeObject, ObjectKey, ResourceType } from '../objects/types.ts'
import type {
  CallOptions,
  DeleteOptions,
  HttpMethod,
  ListOptions,
  RawOptions,
  StreamOptions,
  WatchOptions,
  WriteOptions,
} from './call-options.ts'
import type { CallObject } from './kube-api-error.ts'
import { apiVersionOf, collectionPath, objectPath, type Query, resourceName, vetRawPath, withQuery } from './paths.ts'
import type { Call } from './transport.ts'

/** Below the silence limit of the watch connection, so that as a rule the server ends the stream. */
const DEFAULT_WATCH_SECONDS = 290

export interface CallParts {
  readonly verb: string
  readonly method: HttpMethod
  readonly opts: CallOptions & { namespace?: string | undefined }
  readonly query: Query
  readonly body?: string | undefined
}

export function objectCall(type: ResourceType, key: ObjectKey, { verb, method, opts, query, body }: CallParts): Call {
  const path = withQuery(objectPath(type, key, opts.subresource), query)
  const name = { verb, target: targetOf(type, key, opts.subresource), object: callObject(type, key, opts.subresource) }
  return { ...name, method, path, body, signal: opts.signal, timeoutMs: opts.timeoutMs }
}

export function callObject(type: ResourceType, key: { namespace?: string | undefined; name: string }, subresource?: string): CallObject {
  return { kind: type.kind, namespace: key.namespace, name: key.name, subresource }
}

export function collectionCall(type: ResourceType, { verb, method, opts, query, body }: CallParts): Call {
  const path = withQuery(collectionPath(type, opts.namespace), query)
  const target = opts.namespace === undefined ? resourceName(type) : `${resourceName(type)} in ${opts.namespace}`
  return { verb, target, method, path, body, signal: opts.signal, timeoutMs: opts.timeoutMs }
}

export function watchCall(type: ResourceType, opts: WatchOptions): Call {
  const query = {
    ...listQuery(opts),
    watch: true,
    allowWatchBookmarks: opts.allowBookmarks ?? true,
    timeoutSeconds: opts.timeoutSeconds ?? DEFAULT_WATCH_SECONDS,
  }
  return collectionCall(type, { verb: 'watch', method: 'GET', opts, query })
}

export function rawCall(method: HttpMethod, path: string, opts: RawOptions): Call {
  const { signal, timeoutMs, contentType, accept, body } = opts
  const isReady = body === undefined || typeof body === 'string' || body instanceof Uint8Array
  const target = { verb: method, target: path, method, path: withQuery(vetRawPath(path), opts.query ?? {}) }
  return { ...target, body: isReady ? body : JSON.stringify(body), contentType, accept, signal, timeoutMs }
}

export function streamCall(path: string, { signal, timeoutMs, query = {}, accept = '*/*', silenceMs = 0 }: StreamOptions): Call {
  const parts = { verb: 'stream', target: path, method: 'GET', path: withQuery(vetRawPath(path), query) } as const
  return { ...parts, accept, signal, timeoutMs, silenceMs }
}

export function targetOf(type: ResourceType, key: { namespace?: string | undefined; name: string }, subresource?: string): string {
  const what = subresource === undefined ? resourceName(type) : `${resourceName(type)}/${subresource}`
  return `${what} ${formatKey(key.namespace === undefined ? { name: key.name } : { name: key.name, namespace: key.namespace })}`
}

export function listQuery(opts: ListOptions): Query {
  const { labelSelector, fieldSelector, limit, resourceVersion, resourceVersionMatch } = opts
  return { labelSelector, fieldSelector, limit, continue: opts.continue, resourceVersion, resourceVersionMatch }
}

export function writeQuery({ fieldManager, dryRun, fieldValidation }: WriteOptions): Query {
  return { fieldManager, dryRun: dryRun ? 'All' : undefined, fieldValidation }
}

export function deleteBody({ preconditions, propagationPolicy, gracePeriodSeconds, dryRun }: Omit<DeleteOptions, 'subresource'>): string {
  const options = { preconditions, propagationPolicy, gracePeriodSeconds, dryRun: dryRun ? ['All'] : undefined }
  return JSON.stringify({ apiVersion: 'v1', kind: 'DeleteOptions', ...options })
}

/** The server insists on apiVersion and kind; the resource type knows both. */
export function typed<T extends KubeObject>(type: ResourceType<T>, object: T): T {
  return { ...object, apiVersion: object.apiVersion ?? apiVersionOf(type), kind: object.kind ?? type.kind }
}
