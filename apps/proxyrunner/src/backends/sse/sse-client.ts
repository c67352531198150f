import { editedData } from '@thv/gateway/relay/answer-frames'
import { CallCancellation } from '@thv/gateway/relay/call-cancellation'
import type { CallWatch } from '@thv/gateway/relay/call-watch'
import { encodedAnswer, isEncoded } from '@thv/gateway/relay/encoded-answer'
import { type HeldAnswer, isEventStream } from '@thv/gateway/relay/relay-call'
import { brokenAnswer, connectionLost, timedOut } from '@thv/gateway/response/backend-rejection'
import { RejectedError } from '@thv/gateway/response/rejected-error'
import type { MutableHeaderMap } from '@thv/http/header-map'
import type { ResponseFlow, ResponseSink } from '@thv/http/outbound/outbound-call'
import { openSse, type SseWriter } from '@thv/http/server/sse-writer'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { ByteAccumulator } from '@thv/mcp/byte-accumulator'
import { errorResponse, type RequestId, serialise } from '@thv/mcp/json-rpc'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import { type ParsedBody, parseText } from '@thv/mcp/parse-body'
import { SseDecoder, type SseEvent } from '@thv/mcp/sse-decoder'
import { encodeEvent, messageFrame } from '@thv/mcp/sse-encoder'
import { errorObjectOf, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext, RequestContext } from '@thv/middleware/pipeline/request-context'
import { OpenCalls } from './open-calls.ts'

export interface SseClientOptions {
  readonly id: string
  /** Of the request that opened the stream. */
  readonly context: RequestContext
  readonly pipeline: Pipeline
  readonly clock: Clock
  readonly watch: CallWatch
  /** Of the backend's `/sse`: what its endpoint is relative to. */
  readonly backendUrl: string
  /** The URL that the client must POST to. */
  readonly endpoint: string
  readonly idleMs: number
  readonly frameBytes: number
}

/** Answers that are no streams are small. */
const MAX_HELD = 1024 * 1024

/**
 * One client of HTTP+SSE with a stream of its own to the backend, so that messages of the backend on it are for this client and no
 * other. Every call that the backend leaves unanswered, for whatever reason, is answered with an error.
 */
export class SseClient implements ResponseSink {
  readonly id: string
  readonly principal: string
  /** Set when the backend's answer is no stream. */
  held: HeldAnswer | undefined
  readonly signal = new CallCancellation()
  readonly #options: SseClientOptions
  readonly #decoder: SseDecoder
  readonly #calls: OpenCalls
  readonly #body = new ByteAccumulator()
  #messagesPath: string | undefined
  #writer: SseWriter | undefined
  #flow: ResponseFlow | undefined
  #status = 0
  #headers: MutableHeaderMap = {}
  #waits = false
  /** Questions of the backend that the client has not answered: people take their time. */
  #questions = 0

  constructor(options: SseClientOptions) {
    this.id = options.id
    this.principal = options.context.caller.principal
    this.#options = options
    this.#calls = new OpenCalls({
      clock: options.clock,
      watch: options.watch,
      idleLimitMs: () => (this.#questions > 0 ? Infinity : options.idleMs),
      onExpired: (id) => this.reject(id, timedOut('no sign of life within the time limit')),
    })
    this.#decoder = new SseDecoder((event) => this.#event(event), { maxLineBytes: options.frameBytes, maxEventBytes: options.frameBytes })
    const { exchange } = options.context
    exchange.addEventListener('abort', this)
    if (exchange.aborted) this.handleEvent()
  }

  /** Where the backend takes this client's messages; undefined until it has said so. */
  get messagesPath(): string | undefined {
    return this.#messagesPath
  }

  get inFlight(): number {
    return this.#calls.size
  }

  /** The client went away, and with it the session. */
  handleEvent(): void {
    this.#calls.takeAll()
    this.signal.cancel(this.#options.context.exchange.reason)
  }

  /**
   * Called with each message before it is sent: the answer may be here before the POST is. False when there are too many. Throws
   * RejectedError for an id in use: the answer to the one request would be taken for that to the other, and edited as such.
   */
  sending(context: MessageContext): boolean {
    const { received } = context
    if (received.kind === 'request' && this.#calls.has(received.id))
      throw new RejectedError(reject('invalid_request', { detail: 'the id is in use' }))
    if (received.kind === 'response' && this.#questions > 0) {
      this.#questions--
      this.#calls.active() // the time that people took was not the backend's silence
    }
    return received.kind !== 'request' || this.#calls.add(received.id, context)
  }

  /** It was refused, or could not be sent: the answer has gone to the POST. */
  notSent({ received }: MessageContext): void {
    if (received.kind === 'request') this.#calls.take(received.id)
  }

  /** An error of ours on the client's stream. */
  reject(id: RequestId, rejection: Rejection): void {
    this.#writer?.send(messageFrame(serialise(errorResponse(id, errorObjectOf(rejection)))))
  }

  start(status: number, headers: MutableHeaderMap, flow: ResponseFlow): void {
    this.#status = status
    this.#headers = headers
    this.#flow = flow
    if (status === 200 && isEncoded(headers)) throw encodedAnswer()
  }

  data(chunk: Buffer): void {
    if (this.#status !== 200 || !isEventStream(this.#headers)) {
      if (this.#body.length + chunk.length > MAX_HELD) throw new ThvError('message_too_large', `an answer is over ${MAX_HELD} bytes`)
      this.#body.append(chunk)
      return
    }
    this.#decoder.push(chunk)
    if (this.#writer !== undefined && this.#writer.pending > 0 && !this.#waits) void this.#waitFor(this.#writer)
  }

  end(): void {
    if (this.#writer !== undefined) this.lost(connectionLost())
    else if (this.#status === 200) throw new RejectedError(brokenAnswer('it opens no stream'))
    else this.held = { status: this.#status, headers: this.#headers, body: this.#body.take(Buffer.alloc(0)) }
  }

  /** The backend has not said in time where it takes messages. */
  tooSlow(): void {
    if (this.#writer === undefined) this.signal.cancel(new ThvError('timeout', 'the backend named no endpoint in time'))
  }

  /** The backend's stream is no more. True when the client received an error; else there is no stream yet to tell it on. */
  lost(rejection: Rejection): boolean {
    for (const id of this.#calls.takeAll()) this.reject(id, rejection)
    if (this.#writer !== undefined) void this.#writer.end()
    return this.#writer !== undefined || this.#options.context.exchange.closed
  }

  /** Ends it from this side. */
  async finish(rejection: Rejection): Promise<void> {
    this.lost(rejection)
    const ended = this.#writer?.end()
    this.signal.cancel(new ThvError('aborted', 'the stream was ended'))
    await ended
  }

  /** The stream carries all answers, so it ends only when none is awaited. */
  #endIdle(): boolean {
    if (this.#calls.size > 0) return false
    void this.#writer?.end()
    this.signal.cancel(new ThvError('aborted', 'the stream was ended'))
    return true
  }

  #event(event: SseEvent): void {
    if (event.event === 'endpoint') this.#endpoint(event.data)
    else if (this.#writer !== undefined) this.#message(this.#writer, event)
  }

  /** S4: never to another server, whose name the backend could choose freely. */
  #endpoint(data: string): void {
    const { backendUrl, endpoint, context, clock, pipeline } = this.#options
    const url = URL.parse(data, backendUrl)
    if (url === null || url.origin !== new URL(backendUrl).origin)
      throw new RejectedError(brokenAnswer('its endpoint is on another server'))
    this.#messagesPath = url.pathname + url.search
    if (this.#writer !== undefined) return
    this.#writer = openSse(context.exchange, { clock })
    context.endStream = () => this.#endIdle()
    pipeline.streaming(context)
    this.#writer.send(encodeEvent({ event: 'endpoint', data: endpoint }))
  }

  #message(writer: SseWriter, event: SseEvent): void {
    const message = parseText(event.data)
    this.#calls.active()
    if (message.kind === 'request') this.#questions++
    const data = message.kind === 'response' ? this.#answer(message, event.data) : this.#other(message, event.data)
    if (data !== undefined) writer.send(data === event.data ? encodeEvent(event) : encodeEvent({ ...event, data }))
  }

  /** A batch, and what is too deep to be read, could hold a list. */
  #other({ kind, method }: ParsedBody, text: string): string {
    const { pipeline, context } = this.#options
    if (method === NOTIFICATIONS.toolsListChanged) pipeline.toolsChanged()
    if (kind !== 'invalid' || !pipeline.editsStrays) return text
    return editedData(text, (data) => pipeline.strayResponseText(context, data))
  }

  /** Undefined for requests that were never sent, or are no longer open. */
  #answer(message: ParsedBody, text: string): string | undefined {
    if (message.id === undefined) return text
    const asked = this.#calls.take(message.id)
    if (asked === undefined) return undefined
    const { method = '' } = asked.received
    return this.#options.pipeline.edits(method) ? this.#options.pipeline.responseText(asked, text) : text
  }

  async #waitFor(writer: SseWriter): Promise<void> {
    this.#waits = true
    this.#flow?.pause()
    try {
      await writer.ready()
    } catch {
      // The client is gone, which ends everything else too.
    }
    this.#waits = false
    this.#flow?.resume()
  }
}
