import type { BackendClient } from '@thv/gateway/relay/backend-client'
import { allTools, initializeRequest, listRequest } from '@thv/gateway/relay/tool-list'
import type { MutableHeaderMap } from '@thv/http/header-map'
import type { ResponseSink } from '@thv/http/outbound/outbound-call'
import { abortable } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import { isErrorResponse, isObject, type JsonObject, type JsonRpcRequest, type RequestId, serialise } from '@thv/mcp/json-rpc'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import { type ParsedResponse, parseText } from '@thv/mcp/parse-body'
import { SseDecoder } from '@thv/mcp/sse-decoder'
import type { ToolsRequest } from '@thv/middleware/pipeline/tool-source'

export interface OwnSseListOptions {
  readonly request: ToolsRequest
  readonly timeoutMs: number
  readonly frameBytes: number
}

/** The tools of an HTTP+SSE backend, over a stream of our own that is closed afterwards. No other header of the client reaches the backend. */
export async function toolsOverSse(backend: BackendClient, { request, timeoutMs, frameBytes }: OwnSseListOptions): Promise<JsonObject[]> {
  const hop = await backend.ownHop(request.caller)
  const own: MutableHeaderMap = request.authorization === undefined ? {} : { authorization: request.authorization }
  const over = new AbortController()
  const signal = linkSignals(over.signal, request.signal)
  const path = backend.ownPath
  const stream = new OwnStream(backend.target.seenOrigin + path, frameBytes)
  const headers = backend.headers(hop, { ...own, accept: 'text/event-stream' })
  const ended = backend.target.send({ method: 'GET', path, headers, purpose: 'stream', signal, bodyTimeoutMs: 0 }, stream)
  ended.catch((error: unknown) => stream.failed(error))
  const post = async (body: string) => {
    const messages = await abortable(stream.endpoint, signal)
    const { status } = await backend.ask(hop, { method: 'POST', path: messages, set: own, isOwn: true, body, timeoutMs, signal })
    if (status >= 300) throw new ThvError('backend_protocol', `the backend does not take messages (status ${status})`)
  }
  const call = async (message: JsonRpcRequest) => {
    const answer = stream.answerTo(message.id)
    await post(serialise(message))
    return resultIn(await abortable(answer, signal))
  }
  try {
    await call(initializeRequest())
    await post(serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.initialized }))
    return await allTools((cursor) => call(listRequest(cursor)))
  } finally {
    over.abort(new ThvError('aborted', 'the list is complete'))
  }
}

class OwnStream implements ResponseSink {
  readonly #endpoint = Promise.withResolvers<string>()
  readonly #answers = new Map<RequestId, PromiseWithResolvers<ParsedResponse>>()
  readonly #decoder: SseDecoder

  constructor(url: string, frameBytes: number) {
    this.#endpoint.promise.catch(() => undefined) // told to those who wait for it
    this.#decoder = new SseDecoder(({ event, data }) => (event === 'endpoint' ? this.#named(data, url) : this.#message(data)), {
      maxLineBytes: frameBytes,
      maxEventBytes: frameBytes,
    })
  }

  /** Where the backend takes our messages. */
  get endpoint(): Promise<string> {
    return this.#endpoint.promise
  }

  answerTo(id: RequestId): Promise<ParsedResponse> {
    const waiting = Promise.withResolvers<ParsedResponse>()
    waiting.promise.catch(() => undefined) // told to those who wait for it
    this.#answers.set(id, waiting)
    return waiting.promise
  }

  start(status: number): void {
    if (status !== 200) throw new ThvError('backend_protocol', `the backend opens no stream (status ${status})`)
  }

  data(chunk: Buffer): void {
    this.#decoder.push(chunk)
  }

  end(): void {
    this.failed(new ThvError('backend_protocol', 'the stream has ended'))
  }

  failed(error: unknown): void {
    this.#endpoint.reject(error)
    for (const waiting of this.#answers.values()) waiting.reject(error)
  }

  /** Never another server, whose name the backend could choose freely. */
  #named(data: string, base: string): void {
    const url = URL.parse(data, base)
    if (url === null || url.origin !== new URL(base).origin) throw new ThvError('backend_protocol', 'its endpoint is on another server')
    this.#endpoint.resolve(url.pathname + url.search)
  }

  #message(data: string): void {
    const message = parseText(data)
    if (message.kind !== 'response' || message.id === undefined) return
    this.#answers.get(message.id)?.resolve(message)
    this.#answers.delete(message.id)
  }
}

function resultIn({ message }: ParsedResponse): JsonObject {
  if (isErrorResponse(message) || !isObject(message.result)) throw new ThvError('backend_protocol', 'the backend does not list its tools')
  return message.result
}
