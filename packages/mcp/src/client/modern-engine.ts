import { withTimeLimit } from '@thv/kernel/deadline'
import { wireErrors } from '@thv/kernel/error-registry'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { META, type RequestStamp, stampRequest } from '../envelope.ts'
import { isErrorResponse, isObject, type JsonObject, type JsonRpcNotification, type JsonRpcRequest, type RequestId } from '../json-rpc.ts'
import { METHODS, NOTIFICATIONS } from '../methods.ts'
import type { ParsedMessage } from '../parse-body.ts'
import type { Contradiction, Observation } from '../probe.ts'
import { MODERN_VERSION } from '../versions.ts'
import { type ClientContext, tell } from './client-context.ts'
import { FootingLost, protocolError } from './client-errors.ts'
import type { Engine, EngineListening, EngineListenOptions, EngineRequestOptions, ServerIdentity } from './engine.ts'
import { answerInput } from './input-rounds.ts'
import { type Link, type LinkAnswer, type LinkContext, NO_HEADERS, responseOf, resultOf } from './link.ts'
import type { ListenFilter } from './mcp-client.ts'
import { openModernListening } from './modern-listening.ts'
import { allPages } from './pages.ts'
import { type ProgressRoutes, withProgressToken } from './progress.ts'
import { ToolAnnotations } from './tool-annotations.ts'

export interface ModernEngineOptions {
  readonly link: Link
  readonly context: ClientContext
  readonly identity: ServerIdentity
  /** Told every answer; says so if it contradicts that the server is modern. */
  observe?(observation: Observation): Contradiction | undefined
}

/** A server of 2026-07-28. There is no session: every request says all there is to know about it. */
export class ModernEngine implements Engine {
  readonly era = 'modern'
  readonly protocolVersion = MODERN_VERSION
  readonly context: ClientContext
  readonly link: Link
  /** Listen streams by the id of their request, which is in each of their notifications. */
  readonly listenings = new Map<RequestId, (notification: JsonRpcNotification) => void>()
  readonly #observe: ModernEngineOptions['observe']
  readonly #annotations: ToolAnnotations
  readonly #over = new AbortController()
  readonly #progress: ProgressRoutes = new Map()
  /** Of requests that say no more than the client does. */
  readonly #plainStamp: RequestStamp
  #identity: ServerIdentity

  constructor({ link, context, identity, observe }: ModernEngineOptions) {
    this.link = link
    this.context = context
    this.#identity = identity
    this.#observe = observe
    this.#annotations = new ToolAnnotations((text) => context.warn(text))
    this.#plainStamp = this.#stamp({})
  }

  get transport() {
    return this.link.transport
  }

  get over(): AbortSignal {
    return this.#over.signal
  }

  get identity(): ServerIdentity {
    return this.#identity
  }

  async request(method: string, params: JsonObject, options: EngineRequestOptions): Promise<JsonObject> {
    const first = await this.#sendOnce(method, params, options)
    if (options.returnInputRequired || first['resultType'] !== 'input_required') return first
    const { context } = this
    const send = (round: JsonObject) => this.#sendOnce(method, round, options)
    const { handlers = context.handlers, signal } = options
    return await answerInput(first, { context, method, params, handlers, signal, send })
  }

  abandon(reason: ThvError): void {
    this.link.abandon?.(reason)
  }

  async notify(method: string, params: JsonObject, signal: AbortSignal): Promise<void> {
    this.#demandFooting()
    await this.link.send({ jsonrpc: '2.0', method, params }, signal)
  }

  listen(filter: ListenFilter, options: EngineListenOptions): Promise<EngineListening> {
    return openModernListening(this, filter, options)
  }

  async close(): Promise<void> {
    this.end(new ThvError('aborted', 'the MCP client is closed'))
    await this.link.close()
  }

  end(reason: ThvError): void {
    if (!this.over.aborted) this.#over.abort(reason)
  }

  /** With the envelope that every modern request has. */
  stamped(method: string, params: JsonObject, options: Pick<EngineRequestOptions, 'capabilities' | 'logLevel'> = {}): JsonRpcRequest {
    const isPlain = options.capabilities === undefined && options.logLevel === undefined
    const stamp = isPlain ? this.#plainStamp : this.#stamp(options)
    return stampRequest({ jsonrpc: '2.0', id: this.context.nextId(), method, params }, stamp)
  }

  #stamp({ capabilities, logLevel }: Pick<EngineRequestOptions, 'capabilities' | 'logLevel'>): RequestStamp {
    return {
      [META.protocolVersion]: MODERN_VERSION,
      [META.clientCapabilities]: capabilities ?? this.context.capabilities,
      [META.clientInfo]: this.context.clientInfo,
      ...(logLevel && { [META.logLevel]: logLevel }),
    }
  }

  /** A message that came on no request's own stream. */
  receive(message: ParsedMessage): void {
    if (message.kind === 'notification') this.#notified(message.message)
    else this.context.warn('ignored a request of the MCP server, which a modern server never sends')
  }

  /** One request, sent again at most once where the server refused it before doing anything. */
  async #sendOnce(method: string, params: JsonObject, options: EngineRequestOptions): Promise<JsonObject> {
    const first = await this.#exchange(method, params, options)
    const isRefused = errorOf(first.answer) !== undefined && (await this.#mayRepeat(first, params, options))
    const { request, answer } = isRefused ? await this.#exchange(method, params, options) : first
    const contradiction = this.#observe?.({ method, status: answer.status, body: answer.body })
    if (contradiction?.mayRetry) throw this.#contradicted(answer, request)
    const result = this.#checked(resultOf(responseOf(answer, request), answer.status), options)
    return method === METHODS.toolsList && this.transport === 'streamable-http' ? this.#annotations.learn(result) : result
  }

  async #exchange(method: string, params: JsonObject, options: EngineRequestOptions): Promise<Exchange> {
    this.#demandFooting()
    const { onProgress } = options
    const plain = this.stamped(method, params, options)
    const request = onProgress ? { ...plain, params: withProgressToken(plain.params ?? {}, plain.id) } : plain
    const headers = method === METHODS.toolsCall ? this.#annotations.headersFor(params) : NO_HEADERS
    if (onProgress) this.#progress.set(request.id, onProgress)
    try {
      const answer = await this.link.request(request, new RequestScope(this.#receiveFor, { method, options, headers }))
      return { request, answer }
    } catch (error) {
      const ended = options.cancellation ?? options.signal
      if (ended.aborted) void this.cancel(request.id, ended.reason)
      throw error
    } finally {
      if (onProgress) this.#progress.delete(request.id)
    }
  }

  readonly #receiveFor = (message: ParsedMessage, { method, options }: Sent): void => {
    if (message.kind === 'notification') this.#notified(message.message, options)
    else throw protocolError(`sent a request in the answer to ${method}`) // ends the request
  }

  /** On a pipe a notification cancels; over HTTP, closing the stream does. It is not awaited. */
  async cancel(requestId: RequestId, reason: unknown): Promise<void> {
    if (this.transport !== 'stdio' || this.over.aborted) return
    const { clock, limits, warn } = this.context
    const limit = { clock, timeoutMs: limits.farewellMs, what: 'a cancellation', signals: [this.over] }
    const params = { requestId, reason: errorMessage(reason) }
    try {
      await withTimeLimit(limit, (signal) => this.link.send({ jsonrpc: '2.0', method: NOTIFICATIONS.cancelled, params }, signal))
    } catch (error) {
      if (!this.over.aborted) warn(`a request could not be cancelled: ${errorMessage(error)}`)
    }
  }

  /** -32022 that lists our version is cured by saying it again; -32020 by learning which arguments go into headers. */
  async #mayRepeat({ request, answer }: Exchange, params: JsonObject, options: EngineRequestOptions): Promise<boolean> {
    const error = errorOf(answer)
    if (error?.code === UNSUPPORTED_VERSION) return isObject(error.data) && isListed(error.data['supported'])
    if (error?.code !== HEADER_MISMATCH || request.method !== METHODS.toolsCall || this.transport !== 'streamable-http') return false
    const hadSome = this.#annotations.of(params).length > 0
    await this.#refreshTools(options)
    return hadSome || this.#annotations.of(params).length > 0
  }

  async #refreshTools({ signal }: EngineRequestOptions): Promise<void> {
    const method = METHODS.toolsList
    await allPages({ method, params: {}, limits: this.context.limits, request: (params) => this.#sendOnce(method, params, { signal }) })
  }

  #checked(result: JsonObject, { capabilities = this.context.capabilities }: EngineRequestOptions): JsonObject {
    const { resultType } = result
    // Absent means complete: older servers leave it out, and the call is done either way.
    const isKnown = resultType === undefined || resultType === 'complete' || resultType === 'input_required'
    if (!isKnown && !(resultType === 'task' && declaresTasks(capabilities)))
      throw protocolError(`sent a result of the unknown type ${JSON.stringify(resultType)}`)
    this.#identity = withServerInfo(this.#identity, result)
    return result
  }

  #notified(notification: JsonRpcNotification, options?: EngineRequestOptions): void {
    const { method, params } = notification
    if (method === NOTIFICATIONS.cancelled) return // the server ends a listen stream, and answers it too
    const meta = params?.['_meta']
    const listening = isObject(meta) ? this.listenings.get(meta[META.subscriptionId] as RequestId) : undefined
    const onProgress = method === NOTIFICATIONS.progress ? this.#progress.get(params?.['progressToken'] as RequestId) : undefined
    if (listening) listening(notification)
    else if (onProgress) tell(this.context, onProgress, params ?? {})
    else tell(this.context, options?.onNotification ?? this.context.onNotification, notification)
  }

  #contradicted(answer: LinkAnswer, request: JsonRpcRequest): FootingLost {
    const lost = new FootingLost('the MCP server does not speak the modern era any more', {
      mayRetry: true,
      cause: failureIn(answer, request),
    })
    this.end(lost)
    return lost
  }

  #demandFooting(): void {
    if (this.over.aborted) throw new FootingLost('the connection has ended', { mayRetry: true, cause: this.over.reason })
  }
}

interface Sent {
  readonly method: string
  readonly options: EngineRequestOptions
  readonly headers: Readonly<Record<string, string>>
}

/** A request on its way. */
class RequestScope implements LinkContext {
  readonly cancellation: EngineRequestOptions['cancellation']
  readonly headers: Sent['headers']
  readonly #sent: Sent
  readonly #onMessage: (message: ParsedMessage, sent: Sent) => void

  constructor(onMessage: (message: ParsedMessage, sent: Sent) => void, sent: Sent) {
    this.cancellation = sent.options.cancellation
    this.headers = sent.headers
    this.#sent = sent
    this.#onMessage = onMessage
  }

  /** One that nothing asks for is not made. */
  get signal(): AbortSignal {
    return this.#sent.options.signal
  }

  receive(message: ParsedMessage): void {
    this.#onMessage(message, this.#sent)
  }
}

interface Exchange {
  readonly request: JsonRpcRequest
  readonly answer: LinkAnswer
}

const UNSUPPORTED_VERSION = wireErrors.unsupported_protocol_version.jsonRpcCode
const HEADER_MISMATCH = wireErrors.header_mismatch.jsonRpcCode
const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

function errorOf({ body }: LinkAnswer) {
  return body?.kind === 'response' && isErrorResponse(body.message) ? body.message.error : undefined
}

function isListed(versions: unknown): boolean {
  return Array.isArray(versions) && versions.includes(MODERN_VERSION)
}

function declaresTasks(capabilities: JsonObject): boolean {
  return isObject(capabilities['extensions']) && TASKS_EXTENSION in capabilities['extensions']
}

function failureIn(answer: LinkAnswer, request: JsonRpcRequest): unknown {
  try {
    resultOf(responseOf(answer, request), answer.status)
    return undefined
  } catch (error) {
    return error
  }
}

/** A server may name itself in any result; without a discovery that is the only place. */
function withServerInfo(identity: ServerIdentity, { _meta: meta }: JsonObject): ServerIdentity {
  const serverInfo = isObject(meta) ? meta[META.serverInfo] : undefined
  return identity.serverInfo === undefined && isObject(serverInfo) ? { ...identity, serverInfo } : identity
}
