import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import type { Cancellation } from '@thv/http/cancellation'
import { withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { stripParams } from '../envelope.ts'
import { isObject, type JsonObject, type JsonRpcNotification, type JsonRpcRequest, type RequestId } from '../json-rpc.ts'
import { INPUT_METHODS, METHODS, NOTIFICATIONS } from '../methods.ts'
import type { ParsedMessage } from '../parse-body.ts'
import { isLegacyVersion, type LegacyVersion } from '../versions.ts'
import { type ClientContext, tell } from './client-context.ts'
import { FootingLost } from './client-errors.ts'
import type { Engine, EngineListening, EngineListenOptions, EnginePassOptions, EngineRequestOptions, ServerIdentity } from './engine.ts'
import { openLegacyListening } from './legacy-listening.ts'
import type { LegacyMemory } from './legacy-memory.ts'
import { type Link, type LinkAnswer, type LinkContext, responseOf, resultOf, type Written } from './link.ts'
import type { ListenFilter } from './mcp-client.ts'
import { type ProgressRoutes, withProgressToken } from './progress.ts'
import { ServerRequests } from './server-requests.ts'

/** A link that carries a legacy session. */
export interface LegacyLink extends Link {
  /** Where messages go that came on no request's own stream. */
  receive: (message: ParsedMessage) => void
  /** The session has ended without anybody asking for it. */
  onLost: (reason: ThvError) => void
  /** The version is known now; it shows in later messages. */
  negotiated(version: LegacyVersion): void
  /** Opens the way for messages that belong to no request, where one must be opened. False when the server has none. */
  openStandalone(): Promise<boolean>
}

export interface LegacyEngineOptions {
  readonly link: LegacyLink
  readonly context: ClientContext
  readonly memory: LegacyMemory
  readonly signal: AbortSignal
  /** Sees the answer to `initialize` before anyone judges it; what it throws ends the handshake. */
  inspect?(answer: LinkAnswer): void
}

/** One legacy session, from its handshake on. */
export class LegacyEngine implements Engine {
  readonly era = 'legacy'
  readonly protocolVersion: LegacyVersion
  readonly identity: ServerIdentity
  readonly context: ClientContext
  readonly link: LegacyLink
  /** Receivers of changes, besides the client itself, and the resources subscribed for them. */
  readonly listeners = new Map<(notification: JsonRpcNotification) => void, readonly string[]>()
  readonly memory: LegacyMemory
  readonly #over = new AbortController()
  readonly #serverRequests: ServerRequests
  readonly #progress: ProgressRoutes = new Map()
  /**
   * Runs work in the context (AsyncLocalStorage) in which the session was opened. Messages of the server come in that of the request that opened
   * the connection, and any request may end a session: headers that depend on the context would be those of another user.
   */
  readonly #inOwnContext = AsyncLocalStorage.snapshot()

  /** Does the handshake. When it fails the link is still open, for whatever else may be tried. */
  static async open(options: LegacyEngineOptions): Promise<LegacyEngine> {
    const { link, context, signal } = options
    const { version, identity } = await handshake(options)
    link.negotiated(version)
    const engine = new LegacyEngine(options, version, identity)
    await link.send({ jsonrpc: '2.0', method: NOTIFICATIONS.initialized }, signal)
    await engine.#restore(signal)
    if (context.hasListeners) await engine.#openStandalone(signal)
    return engine
  }

  private constructor(options: LegacyEngineOptions, version: LegacyVersion, identity: ServerIdentity) {
    const { link, context, memory } = options
    this.protocolVersion = version
    this.identity = identity
    this.link = link
    this.context = context
    this.memory = memory
    this.#serverRequests = new ServerRequests({ context, send: (response, signal) => link.send(response, signal) })
    link.receive = (message) => this.#inOwnContext(() => this.#receive(message))
    link.onLost = (reason) => this.#end(reason)
  }

  get transport() {
    return this.link.transport
  }

  get over(): AbortSignal {
    return this.#over.signal
  }

  async request(method: string, params: JsonObject, options: EngineRequestOptions): Promise<JsonObject> {
    const message = this.#message(method, params, options)
    let answer: LinkAnswer
    try {
      answer = await this.#send(message, options)
    } catch (error) {
      this.#failed(error, message.id, options)
      throw error
    } finally {
      if (options.onProgress) this.#progress.delete(message.id)
    }
    const result = resultOf(responseOf(answer, message), answer.status)
    this.memory.note(method, params)
    return result
  }

  async pass(method: string, params: JsonObject, options: EnginePassOptions): Promise<JsonObject | string> {
    const message = this.#message(method, params, options)
    let answer: LinkAnswer
    try {
      answer = await this.#send(message, options, { text: options.write(message.id), id: options.answerId })
    } catch (error) {
      this.#failed(error, message.id, options)
      throw error
    } finally {
      if (options.onProgress) this.#progress.delete(message.id)
    }
    return answer.text ?? resultOf(responseOf(answer, message), answer.status)
  }

  abandon(reason: ThvError): void {
    this.link.abandon?.(reason)
  }

  #message(method: string, params: JsonObject, { onProgress }: EngineRequestOptions): JsonRpcRequest {
    const id = this.context.nextId()
    const own = withoutAnswers(stripParams(params), method)
    return { jsonrpc: '2.0', id, method, params: onProgress ? withProgressToken(own, id) : own }
  }

  /** The caller forgets the progress token afterward. */
  #send(message: JsonRpcRequest, options: EngineRequestOptions, written?: Written): Promise<LinkAnswer> {
    this.#demandFooting()
    if (options.onProgress) this.#progress.set(message.id, options.onProgress)
    return this.link.request(message, new RequestScope(this.#receiveFor, options, written))
  }

  #failed(error: unknown, id: RequestId, options: EngineRequestOptions): void {
    const ended = options.cancellation ?? options.signal
    if (error instanceof FootingLost) this.#end(error)
    else if (ended.aborted) void this.#cancel(id, ended.reason)
  }

  async notify(method: string, params: JsonObject, signal: AbortSignal): Promise<void> {
    this.#demandFooting()
    await this.link.send({ jsonrpc: '2.0', method, params: stripParams(params) }, signal)
  }

  listen(filter: ListenFilter, options: EngineListenOptions): Promise<EngineListening> {
    return openLegacyListening(this, filter, options)
  }

  async close(): Promise<void> {
    this.#end(new ThvError('aborted', 'the MCP client is closed'))
    await this.#inOwnContext(() => this.link.close())
  }

  #demandFooting(): void {
    if (this.over.aborted) throw new FootingLost('the session has ended', { mayRetry: true, cause: this.over.reason })
  }

  readonly #receiveFor = (message: ParsedMessage, options: EngineRequestOptions): void => this.#receive(message, options)

  /** `options` are those of the request on whose own stream the message came. */
  #receive(message: ParsedMessage, options?: EngineRequestOptions): void {
    if (message.kind === 'request')
      this.#serverRequests.answer(message.message, options?.handlers ?? this.context.handlers, options?.signal)
    else if (message.kind === 'notification') this.#notified(message.message, options)
  }

  #notified(notification: JsonRpcNotification, options?: EngineRequestOptions): void {
    const { method, params } = notification
    if (method === NOTIFICATIONS.cancelled) {
      this.#serverRequests.cancel(params?.['requestId'])
      return
    }
    const onProgress = method === NOTIFICATIONS.progress ? this.#progress.get(params?.['progressToken'] as RequestId) : undefined
    if (onProgress) {
      tell(this.context, onProgress, params ?? {})
      return
    }
    for (const listener of this.listeners.keys()) tell(this.context, listener, notification)
    tell(this.context, options?.onNotification ?? this.context.onNotification, notification)
  }

  /** In this era closing the stream does not cancel, so a notification is sent, without waiting for it. */
  async #cancel(requestId: RequestId, reason: unknown): Promise<void> {
    const { clock, limits, warn } = this.context
    const limit = { clock, timeoutMs: limits.farewellMs, what: 'a cancellation', signals: [this.over] }
    const params = { requestId, reason: errorMessage(reason) }
    try {
      await withTimeLimit(limit, (signal) => this.link.send({ jsonrpc: '2.0', method: NOTIFICATIONS.cancelled, params }, signal))
    } catch (error) {
      if (!this.over.aborted) warn(`a request could not be cancelled: ${errorMessage(error)}`)
    }
  }

  /**
   * Many servers ask on this stream even during a call, and what they ask before it is open is lost: so it is waited for. Not long, as
   * some send its headers only with the first event.
   */
  async #openStandalone(signal: AbortSignal): Promise<void> {
    const given = new AbortController()
    const patience = this.context.clock.sleep(STANDALONE_WAIT_MS, AbortSignal.any([signal, given.signal]))
    patience.catch(() => {}) // ended by the stream, or with the whole handshake
    await Promise.race([this.link.openStandalone(), patience])
    given.abort()
  }

  /** State of the last session: log level and subscriptions. */
  async #restore(signal: AbortSignal): Promise<void> {
    for (const [method, params] of this.memory.entries()) {
      try {
        await this.request(method, params, { signal })
      } catch (error) {
        if (signal.aborted) throw error
        this.context.warn(`${method} could not be repeated in the new session: ${errorMessage(error)}`)
      }
    }
  }

  #end(reason: ThvError): void {
    if (this.over.aborted) return
    this.#over.abort(reason)
    this.#serverRequests.close()
  }
}

const STANDALONE_WAIT_MS = 1_000

type OnMessage = (message: ParsedMessage, options: EngineRequestOptions) => void

/** A request on its way. Messages on its stream are taken in the context (AsyncLocalStorage) of its caller; a snapshot for each would cost a microsecond. */
class RequestScope extends AsyncResource implements LinkContext {
  readonly cancellation: Cancellation | undefined
  readonly written: Written | undefined
  readonly #options: EngineRequestOptions
  readonly #onMessage: OnMessage

  constructor(onMessage: OnMessage, options: EngineRequestOptions, written: Written | undefined) {
    super('MCP_REQUEST', SCOPE_OPTIONS)
    this.cancellation = options.cancellation
    this.written = written
    this.#options = options
    this.#onMessage = onMessage
  }

  /** One that nothing asks for is not made. */
  get signal(): AbortSignal {
    return this.#options.signal
  }

  receive(message: ParsedMessage): void {
    this.runInAsyncScope(this.#onMessage, undefined, message, this.#options)
  }
}

const SCOPE_OPTIONS = { requireManualDestroy: true }

/** Only modern servers know answers in a request, and who made it may have taken this one for modern. */
function withoutAnswers(params: JsonObject, method: string): JsonObject {
  if ((params['inputResponses'] === undefined && params['requestState'] === undefined) || !INPUT_METHODS.has(method)) return params
  const { inputResponses: _, requestState: _state, ...rest } = params
  return rest
}

async function handshake({
  link,
  context,
  signal,
  inspect,
}: LegacyEngineOptions): Promise<{ version: LegacyVersion; identity: ServerIdentity }> {
  const { clientInfo, capabilities, legacyVersion } = context
  const params = { protocolVersion: legacyVersion, capabilities, clientInfo }
  const message: JsonRpcRequest = { jsonrpc: '2.0', id: context.nextId(), method: METHODS.initialize, params }
  const answer = await link.request(message, { signal, receive: () => {} })
  inspect?.(answer)
  const result = resultOf(responseOf(answer, message), answer.status)
  const version = result['protocolVersion']
  if (!isLegacyVersion(version))
    throw new ThvError('mcp_no_common_version', `the MCP server wants to speak revision ${JSON.stringify(version)}`)
  const { serverInfo, capabilities: offered, instructions } = result
  const identity = {
    serverInfo: isObject(serverInfo) ? serverInfo : undefined,
    capabilities: isObject(offered) ? offered : {},
    instructions: typeof instructions === 'string' ? instructions : undefined,
  }
  return { version, identity }
}
