import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type Call, type Channel, MissingCapability, RawAnswer } from '../features/call.ts'
import { errorResult } from '../features/content.ts'
import { isFeature, runFeature } from '../features/dispatch.ts'
import type { Change } from '../state/changes.ts'
import { serverInfo, type World } from '../state/world.ts'
import {
  failure,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  isRequest,
  isRequestId,
  isResponse,
  type JsonObject,
  METHOD_NOT_FOUND,
  notification,
  objectOf,
  type RequestId,
  RpcError,
  type RpcMessage,
  type RpcNotification,
  type RpcRequest,
  type RpcResponse,
  success,
} from '../wire/json-rpc.ts'
import { BAD_SESSION, isLegacyVersion, isLogLevel, type LogLevel, NEWEST_LEGACY, type TransportKind } from '../wire/protocol.ts'
import { createLegacyCall } from './legacy-call.ts'

export interface LegacyInbound {
  readonly channel: Channel
  readonly headers?: IncomingHttpHeaders
}

export interface LegacySessionOptions {
  readonly transport: TransportKind
  /** Where messages go that belong to no request. */
  readonly standalone: (message: RpcMessage) => void
  /** A server without sessions serves every request as if the handshake had been done. */
  readonly stateless?: { readonly version: string }
}

interface Running {
  readonly request: RpcRequest
  readonly abort: AbortController
}

/** One client of the handshake revisions: what it negotiated, what it waits for, what it is waited for. */
export class LegacySession {
  readonly id = randomUUID()
  readonly world: World
  readonly transport: TransportKind
  version: string = NEWEST_LEGACY
  clientCapabilities: JsonObject = {}
  clientInfo: unknown
  logLevel: LogLevel | undefined
  readonly #options: LegacySessionOptions
  readonly #subscriptions = new Set<string>()
  readonly #running = new Map<RequestId, Running>()
  readonly #asked = new Map<RequestId, PromiseWithResolvers<JsonObject>>()
  #phase: 'new' | 'opened' | 'closed' = 'new'
  #askCount = 0
  #stopListening: (() => void) | undefined

  constructor(world: World, options: LegacySessionOptions) {
    this.world = world
    this.transport = options.transport
    this.#options = options
    if (!options.stateless) return
    this.#phase = 'opened'
    this.version = options.stateless.version
  }

  /** Returns the answer; undefined when there is none (notifications, responses, cancelled requests). */
  async handle(message: RpcMessage, inbound: LegacyInbound): Promise<RpcResponse | undefined> {
    const { transport } = this
    const headers = inbound.headers ? { headers: inbound.headers } : {}
    this.world.stats.record({ transport, era: 'legacy', message, ...headers, ...(this.stateless ? {} : { session: this.id }) })
    if (isResponse(message)) this.#settle(message)
    else if (isRequest(message)) return this.#answer(message, inbound)
    else this.#notified(message)
    return undefined
  }

  /** Sends a request to the client and waits for its answer, up to a limit. Ids are small integers, as the client's may be. */
  async request(send: (message: RpcMessage) => void, body: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    this.#askCount += 1
    const id = this.#askCount
    const answer = Promise.withResolvers<JsonObject>()
    const limit = AbortSignal.any([signal, this.world.signal, AbortSignal.timeout(this.world.options.askTimeoutMs)])
    const giveUp = () => answer.reject(limit.reason)
    limit.addEventListener('abort', giveUp, { once: true })
    this.#asked.set(id, answer)
    try {
      send({ jsonrpc: '2.0', id, ...body } as RpcRequest)
      return await answer.promise
    } finally {
      limit.removeEventListener('abort', giveUp)
      this.#asked.delete(id)
    }
  }

  standalone(message: RpcMessage): void {
    this.#options.standalone(message)
  }

  get stateless(): boolean {
    return this.#options.stateless !== undefined
  }

  get running(): number {
    return this.#running.size
  }

  close(): void {
    this.#phase = 'closed'
    this.#stopListening?.()
    for (const { abort } of this.#running.values()) abort.abort(new Error('session closed'))
    for (const answer of this.#asked.values()) answer.reject(new Error('session closed'))
  }

  async #answer(request: RpcRequest, inbound: LegacyInbound): Promise<RpcResponse | undefined> {
    const abort = new AbortController()
    const signal = AbortSignal.any([abort.signal, this.world.signal])
    this.#running.set(request.id, { request, abort })
    try {
      return success(request.id, await this.#run(request, createLegacyCall(this, { request, inbound, signal })))
    } catch (error) {
      return signal.aborted ? undefined : answerFor(request, error)
    } finally {
      this.#running.delete(request.id)
    }
  }

  async #run(request: RpcRequest, call: Call): Promise<JsonObject> {
    if (request.method === 'ping') return {}
    if (request.method === 'initialize') return this.#initialize(call.params)
    const own = OWN_METHODS.has(request.method)
    if (!own && !isFeature(request.method)) throw new RpcError(METHOD_NOT_FOUND, `Method not found: ${request.method}`)
    if (this.#phase === 'new') throw new RpcError(BAD_SESSION, 'Server not initialized')
    return own ? this.#runOwn(request.method, call.params) : runFeature(request.method, call)
  }

  #initialize(params: JsonObject): JsonObject {
    if (this.#phase === 'opened' && !this.stateless) throw new RpcError(INVALID_REQUEST, 'Server already initialized')
    this.#phase = 'opened'
    const wanted = params['protocolVersion']
    this.version = isLegacyVersion(wanted) ? wanted : NEWEST_LEGACY
    this.clientCapabilities = objectOf(params['capabilities'])
    this.clientInfo = params['clientInfo']
    return {
      protocolVersion: this.version,
      capabilities: this.stateless ? STATELESS_CAPABILITIES : CAPABILITIES,
      serverInfo: serverInfo(this.world),
      instructions: 'A server for tests.',
    }
  }

  #runOwn(method: string, params: JsonObject): JsonObject {
    if (method === 'logging/setLevel') {
      if (!isLogLevel(params['level'])) throw new RpcError(INVALID_PARAMS, 'Unknown log level')
      this.logLevel = params['level']
      return {}
    }
    const { uri } = params
    if (typeof uri !== 'string') throw new RpcError(INVALID_PARAMS, 'uri must be a string')
    if (method === 'resources/subscribe') this.#subscriptions.add(uri)
    else this.#subscriptions.delete(uri)
    return {}
  }

  #notified(message: RpcNotification): void {
    if (message.method === 'notifications/initialized') this.#stopListening ??= this.world.changes.on((change) => this.#changed(change))
    const requestId = message.params?.['requestId']
    if (message.method !== 'notifications/cancelled' || !isRequestId(requestId)) return
    const running = this.#running.get(requestId)
    if (!running || running.request.method === 'initialize') return
    const { method, params } = running.request
    const name = params?.['name']
    this.world.stats.recordCancelled({ requestId, method, by: 'notification', ...(typeof name === 'string' ? { name } : {}) })
    running.abort.abort(new Error('cancelled by the client'))
  }

  #changed(change: Change): void {
    if (change.kind === 'list') this.standalone(notification(`notifications/${change.list}/list_changed`))
    if (change.kind !== 'resource' || !this.#subscriptions.has(change.uri)) return
    this.standalone(notification('notifications/resources/updated', { uri: change.uri }))
  }

  #settle(response: RpcResponse): void {
    const asked = response.id === undefined ? undefined : this.#asked.get(response.id)
    if (response.error) asked?.reject(new RpcError(response.error.code, response.error.message, { data: response.error.data }))
    else asked?.resolve(objectOf(response.result))
  }
}

const OWN_METHODS = new Set(['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'])

const STATELESS_CAPABILITIES = { tools: {}, resources: {}, prompts: {}, logging: {}, completions: {} }

const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  logging: {},
  completions: {},
}

/** A capability that a tool misses in its client is a failed tool, not a protocol error. */
function answerFor(request: RpcRequest, error: unknown): RpcResponse {
  if (error instanceof RawAnswer) return error.response
  if (error instanceof MissingCapability && request.method === 'tools/call') return success(request.id, errorResult(error.message))
  if (error instanceof RpcError) return failure(request.id, error)
  return failure(request.id, new RpcError(INTERNAL_ERROR, error instanceof Error ? error.message : String(error)))
}
