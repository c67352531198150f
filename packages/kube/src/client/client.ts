import { type Clock, systemClock } from '@thv/kernel/clock'
import { keyOf } from '../objects/object-key.ts'
import type { KubeList, KubeObject, KubeStatus, ObjectKey, ResourceType, WatchEvent } from '../objects/types.ts'
import { readStream } from './body-stream.ts'
import type {
  ApplyOptions,
  CallOptions,
  DeleteCollectionOptions,
  DeleteOptions,
  GetOptions,
  HttpMethod,
  ListOptions,
  Patch,
  RawOptions,
  RawResponse,
  StreamOptions,
  WatchOptions,
  WriteOptions,
} from './call-options.ts'
import type { Connection } from './connection.ts'
import { expiredError, isExpired, isGone, isNotFound, KubeApiError } from './kube-api-error.ts'
import { encodePatch } from './patch-body.ts'
import { apiVersionOf, resourceName } from './paths.ts'
import {
  callObject,
  collectionCall,
  deleteBody,
  listQuery,
  objectCall,
  rawCall,
  streamCall,
  targetOf,
  typed,
  watchCall,
  writeQuery,
} from './resource-call.ts'
import { isRecord, malformed, parseObject } from './response-body.ts'
import { createRetrier, type RetryOptions } from './retrier.ts'
import { type Call, createTransport } from './transport.ts'
import { readWatch } from './watch-stream.ts'

export type {
  ApplyOptions,
  CallOptions,
  DeleteCollectionOptions,
  DeleteOptions,
  GetOptions,
  HttpMethod,
  JsonPatchOp,
  ListOptions,
  Patch,
  RawOptions,
  RawResponse,
  StreamOptions,
  WatchOptions,
  WriteOptions,
} from './call-options.ts'
export type { RetryOptions } from './retrier.ts'

export interface KubeClient {
  get<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, opts?: GetOptions): Promise<T>
  /** As `get`, with undefined instead of the 404. */
  tryGet<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, opts?: GetOptions): Promise<T | undefined>
  /** One page, as asked for. Items carry apiVersion and kind, which the server leaves out of lists. */
  list<T extends KubeObject>(type: ResourceType<T>, opts?: ListOptions): Promise<KubeList<T>>
  /** Pages of 500 unless `limit` says otherwise. Throws `kube_watch_expired` when the continue token has expired: start again. */
  listPages<T extends KubeObject>(type: ResourceType<T>, opts?: ListOptions): AsyncGenerator<KubeList<T>, void, undefined>
  /** All pages joined; when the continue token expires on the way it falls back to one list without pages. */
  listAll<T extends KubeObject>(type: ResourceType<T>, opts?: ListOptions): Promise<KubeList<T>>
  create<T extends KubeObject>(type: ResourceType<T>, object: T, opts?: CallOptions & WriteOptions): Promise<T>
  update<T extends KubeObject>(type: ResourceType<T>, object: T, opts?: CallOptions & WriteOptions): Promise<T>
  patch<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, patch: Patch, opts?: CallOptions & WriteOptions): Promise<T>
  apply<T extends KubeObject>(type: ResourceType<T>, object: T, opts: ApplyOptions): Promise<T>
  /** The server answers with a Status, or with the object when it only began to go (finalizers, grace period). */
  delete(type: ResourceType, key: ObjectKey, opts?: DeleteOptions): Promise<KubeStatus | KubeObject>
  deleteCollection(type: ResourceType, opts?: DeleteCollectionOptions): Promise<KubeStatus | KubeList>
  /** One connection; nothing is sent before the iteration begins. See `readWatch` for how it ends. */
  watch<T extends KubeObject>(type: ResourceType<T>, opts: WatchOptions): AsyncIterable<WatchEvent<T>>
  /** For what has no object of its own: discovery, token requests. Statuses of 300 and above throw as everywhere. */
  raw(method: HttpMethod, path: string, opts?: RawOptions): Promise<RawResponse>
  /**
   * A body as it comes, for what has no end of its own: logs. Nothing is sent before the iteration begins, and leaving it closes the
   * connection. Reading slowly slows the sender. Throws `kube_unreachable` when the connection breaks.
   */
  stream(path: string, opts?: StreamOptions): AsyncIterable<Uint8Array>
  /** Ends calls and watches under way, and their connections. */
  close(): Promise<void>
}

export interface KubeClientOptions {
  userAgent?: string
  clock?: Clock
  /** Limit of one response body, not of watches. Default 128 MiB. */
  maxBodyBytes?: number
  retry?: RetryOptions
  /** Text of each `Warning` header, as often as it comes. */
  onWarning?: (text: string) => void
  /** A watch that is silent for longer ends (normally) so that the caller opens a new one. Default 330 s. */
  watchBodyTimeoutMs?: number
}

const DEFAULT_PAGE = 500

export function createKubeClient(connection: Connection, options: KubeClientOptions = {}): KubeClient {
  const clock = options.clock ?? systemClock
  const transport = createTransport(connection, {
    clock,
    userAgent: options.userAgent ?? 'toolhive-ts/0.1',
    maxBodyBytes: options.maxBodyBytes ?? 128 << 20,
    watchBodyTimeoutMs: options.watchBodyTimeoutMs ?? 330_000,
    retrier: createRetrier(clock, options.retry),
    onWarning: options.onWarning,
  })

  async function send<R>(call: Call): Promise<R> {
    const { body } = await transport.send(call)
    return parseObject(body, call) as R
  }

  async function list<T extends KubeObject>(type: ResourceType<T>, opts: ListOptions = {}): Promise<KubeList<T>> {
    const call = collectionCall(type, { verb: 'list', method: 'GET', opts, query: listQuery(opts) })
    return checkList(await send<KubeList<T>>(call), type, call)
  }

  async function* listPages<T extends KubeObject>(type: ResourceType<T>, opts: ListOptions = {}) {
    const limit = opts.limit ?? DEFAULT_PAGE
    let page = await list(type, { ...opts, limit })
    yield page
    while (page.metadata.continue) {
      const token = page.metadata.continue
      // The token pins the version; the server refuses one beside it.
      const next = { ...opts, limit, continue: token, resourceVersion: undefined, resourceVersionMatch: undefined }
      page = await list(type, next).catch((error: unknown) => {
        throw error instanceof KubeApiError && isGone(error) ? expiredError(error) : error
      })
      if (page.metadata.continue === token) throw malformed({ verb: 'list', target: resourceName(type) }, 'the same page again and again')
      yield page
    }
  }

  const client: KubeClient = {
    async get(type, key, opts = {}) {
      return await send(objectCall(type, key, { verb: 'get', method: 'GET', opts, query: { resourceVersion: opts.resourceVersion } }))
    },

    async tryGet(type, key, opts) {
      try {
        return await client.get(type, key, opts)
      } catch (error) {
        if (isNotFound(error)) return undefined
        throw error
      }
    },

    list,
    listPages,

    async listAll<T extends KubeObject>(type: ResourceType<T>, opts: ListOptions = {}) {
      const items: T[] = []
      let last: KubeList<T> | undefined
      try {
        for await (const page of listPages(type, opts)) {
          for (const item of page.items) items.push(item)
          last = page
        }
      } catch (error) {
        if (!isExpired(error) || last === undefined) throw error
        return await list(type, { ...opts, limit: undefined, continue: undefined })
      }
      return { ...last, metadata: last?.metadata ?? {}, items }
    },

    async create(type, object, opts = {}) {
      const parts = { verb: 'create', method: 'POST', query: writeQuery(opts), body: JSON.stringify(typed(type, object)) } as const
      if (opts.subresource !== undefined) return await send(objectCall(type, keyOf(object), { ...parts, opts }))
      const { name, namespace, generateName } = object.metadata
      const call = collectionCall(type, { ...parts, opts: { ...opts, namespace } })
      const key = { namespace, name: name || `${generateName ?? ''}*` }
      return await send({ ...call, target: targetOf(type, key), object: callObject(type, key) })
    },

    async update(type, object, opts = {}) {
      const body = JSON.stringify(typed(type, object))
      return await send(objectCall(type, keyOf(object), { verb: 'update', method: 'PUT', opts, query: writeQuery(opts), body }))
    },

    async patch(type, key, patch, opts = {}) {
      const { body, contentType, query } = encodePatch(patch)
      const verb = patch.kind === 'apply' ? 'apply' : 'patch'
      const call = objectCall(type, key, { verb, method: 'PATCH', opts, query: { ...writeQuery(opts), ...query }, body })
      return await send({ ...call, contentType })
    },

    apply: (type, object, { fieldManager, force, ...opts }) =>
      client.patch(type, keyOf(object), { kind: 'apply', object: typed(type, object), fieldManager, force }, opts),

    async delete(type, key, opts = {}) {
      return await send(objectCall(type, key, { verb: 'delete', method: 'DELETE', opts, query: {}, body: deleteBody(opts) }))
    },

    async deleteCollection(type, opts = {}) {
      const parts = { verb: 'deletecollection', method: 'DELETE', query: listQuery(opts), body: deleteBody(opts) } as const
      return await send(collectionCall(type, { ...parts, opts }))
    },

    watch: (type, opts) => readWatch(transport, () => watchCall(type, opts)),

    async raw(method, path, opts = {}) {
      const call = rawCall(method, path, opts)
      const answer = await transport.send(call)
      return { ...answer, text: () => answer.body.toString('utf8'), json: () => parseObject(answer.body, call) }
    },

    stream: (path, opts = {}) => readStream(transport, () => streamCall(path, opts)),

    close: () => transport.close(),
  }
  return client
}

/** Fills in apiVersion and kind, so that an object looks the same whether a list or a watch brought it. */
function checkList<T extends KubeObject>(list: KubeList<T>, type: ResourceType<T>, call: Call): KubeList<T> {
  const items: unknown = list.items ?? []
  if (!Array.isArray(items) || !isRecord(list.metadata)) throw malformed(call, 'not a list')
  for (const item of items) {
    if (!isRecord(item) || !isRecord(item.metadata)) throw malformed(call, 'a list with an item that is no object')
    item.apiVersion ??= apiVersionOf(type)
    item.kind ??= type.kind
  }
  return { ...list, items }
}
