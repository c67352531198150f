import type { SseEndpoint, SseMessageContext } from '@thv/gateway/backend'
import { endpointOf } from '@thv/gateway/endpoints/endpoint-url'
import { prepareHop } from '@thv/gateway/relay/prepare-hop'
import { unavailable } from '@thv/gateway/response/backend-rejection'
import type { Reply } from '@thv/gateway/response/reply'
import { sendRejection } from '@thv/gateway/response/send-rejection'
import { partyOf } from '@thv/gateway/sessions/party'
import { ClientStream } from '@thv/gateway/streams/client-stream'
import type { Outlet } from '@thv/gateway/streams/session-streams'
import type { Exchange } from '@thv/http/server/exchange'
import { sendText } from '@thv/http/server/respond'
import type { SendOptions } from '@thv/http/server/sse-writer'
import { errorResponse, type RequestId, serialise } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import { mintSessionId } from '@thv/mcp/session-id'
import { errorObjectOf, isRejection, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext, RequestContext } from '@thv/middleware/pipeline/request-context'
import type { StdioDeps } from '../process/stdio-deps.ts'
import type { ProcessPool } from '../process-pool.ts'
import type { LegacyService } from './legacy-service.ts'
import { LegacySession } from './legacy-session.ts'

export interface SseClientsOptions {
  readonly deps: StdioDeps
  readonly pool: ProcessPool
  readonly service: LegacyService
  readonly pipeline: Pipeline
}

/** One `GET /sse` that is open. Its session begins with `initialize` and ends with the stream. */
interface SseClient {
  readonly id: string
  readonly principal: string
  readonly party: string
  readonly stream: ClientStream
  session: LegacySession | undefined
  isOpening: boolean
}

/**
 * HTTP+SSE, the form of 2024-11-05: whatever a client is to get comes over its one stream. Every client has its own stream, session and
 * ids, so no client sees messages of another (ToolHive (Go) sends everything to all), and nothing is kept for absent clients.
 */
export class SseClients implements SseEndpoint {
  readonly #options: SseClientsOptions
  readonly #clients = new Map<string, SseClient>()

  constructor(options: SseClientsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#clients.size
  }

  async open(context: RequestContext): Promise<void> {
    const { exchange, caller } = context
    const { config } = this.#options.deps
    if (this.#clients.size >= config.maxSseClients) return sendRejection(exchange, unavailable('there is no room for another session'))
    if (exchange.closed) return
    const { principal } = caller
    const party = partyOf(principal, exchange)
    const client: SseClient = {
      id: mintSessionId(),
      principal,
      party,
      stream: this.#stream(exchange),
      session: undefined,
      isOpening: false,
    }
    this.#clients.set(client.id, client)
    context.endStream = () => this.#endIdle(client)
    this.#options.pipeline.streaming(context)
    client.stream.sendEvent({ event: 'endpoint', data: endpointOf(exchange, client.id, config) })
    exchange.signal.addEventListener('abort', () => this.#gone(client), { once: true })
    if (exchange.closed) this.#gone(client)
  }

  async message(context: SseMessageContext): Promise<void> {
    const client = this.#find(context)
    if (client === undefined) return sendRejection(context.exchange, reject('session_not_found'), idOf(context))
    await prepareHop(this.#options.pipeline, context)
    sendText(context.exchange, 'Accepted', { status: 202 })
    const { outgoing } = context
    const { service } = this.#options
    if (outgoing.kind === 'request') await this.#request(client, context, outgoing)
    else if (client.session === undefined) return
    else if (outgoing.kind === 'response') service.answered(client.session, outgoing)
    else service.notified(client.session, outgoing)
  }

  async reject(context: SseMessageContext, rejection: Rejection): Promise<void> {
    const client = this.#find(context)
    const id = idOf(context)
    if (client === undefined) return sendRejection(context.exchange, reject('session_not_found'), id)
    sendText(context.exchange, 'Accepted', { status: 202 })
    if (id !== undefined) new SseReply(client.stream).reject(rejection, id)
  }

  end(): void {
    for (const client of [...this.#clients.values()]) {
      client.stream.end()
      this.#gone(client)
    }
  }

  async #request(client: SseClient, context: MessageContext, request: ParsedRequest): Promise<void> {
    const reply = new SseReply(client.stream)
    if (request.method === METHODS.initialize) return this.#initialize(client, context, request)
    if (client.session === undefined && request.method !== METHODS.ping) {
      return reply.reject(reject('invalid_request', { detail: 'initialize must come first' }), request.id)
    }
    const session = client.session ?? this.#session(client, request)
    await new Promise<void>((resolve, fail) => {
      this.#options.service.request(session, { context, request, reply, onDone: resolve }).catch(fail)
    })
  }

  async #initialize(client: SseClient, context: MessageContext, request: ParsedRequest): Promise<void> {
    const reply = new SseReply(client.stream)
    if (client.session !== undefined || client.isOpening) {
      return reply.reject(reject('invalid_request', { detail: 'the session is initialized already' }), request.id)
    }
    client.isOpening = true
    const session = this.#session(client, request)
    const answer = await this.#options.service.open(session, context)
    client.isOpening = false
    if (isRejection(answer)) return reply.reject(answer, request.id)
    if (answer.isOpen && this.#clients.has(client.id)) client.session = session
    else this.#options.pool.release(session)
    reply.finish(answer.text)
  }

  /** A session of another caller looks like one that does not exist. */
  #find({ sessionId, caller }: SseMessageContext): SseClient | undefined {
    const client = this.#clients.get(sessionId)
    return client?.principal === caller.principal && client.stream.isOpen ? client : undefined
  }

  #stream(exchange: Exchange): ClientStream {
    const { clock, metrics } = this.#options.deps
    const stream = new ClientStream({ clock, metrics })
    stream.connect(exchange)
    return stream
  }

  #session({ id, principal, party, stream }: SseClient, initialize: ParsedRequest): LegacySession {
    const { clock, config } = this.#options.deps
    const outlet = new SseOutlet(stream)
    return new LegacySession({ id, principal, party, initialize, outlet, clock, askTimeoutMs: config.askTimeoutMs })
  }

  /** The stream carries all answers, so it ends only when none is awaited. */
  #endIdle(client: SseClient): boolean {
    if (client.isOpening || client.session?.isIdle === false) return false
    client.stream.end()
    this.#gone(client)
    return true
  }

  #gone(client: SseClient): void {
    if (!this.#clients.delete(client.id) || client.session === undefined) return
    client.session.end()
    this.#options.pool.release(client.session)
  }
}

function idOf({ received }: MessageContext): RequestId | undefined {
  return received.kind === 'request' ? received.id : undefined
}

/** Answers go the way of everything else. */
class SseReply implements Reply {
  readonly stream: ClientStream

  constructor(stream: ClientStream) {
    this.stream = stream
  }

  get canStream(): boolean {
    return this.stream.isOpen
  }

  openStream(): ClientStream {
    return this.stream
  }

  event(text: string, options?: SendOptions): boolean {
    return this.stream.send(text, options) !== 'lost'
  }

  finish(text: string): void {
    this.stream.send(text)
  }

  reject(rejection: Rejection, id: RequestId): void {
    this.stream.send(serialise(errorResponse(id, errorObjectOf(rejection))))
  }

  abandon(): void {}
}

class SseOutlet implements Outlet {
  readonly #stream: ClientStream

  constructor(stream: ClientStream) {
    this.#stream = stream
  }

  get isConnected(): boolean {
    return this.#stream.isOpen
  }

  newest(): ClientStream | undefined {
    return this.#stream.isOpen ? this.#stream : undefined
  }

  deliver(text: string, options?: SendOptions): boolean {
    return this.#stream.send(text, options) !== 'lost'
  }

  withdraw(): void {}

  end(): void {
    this.#stream.end()
  }
}
