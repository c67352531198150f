import { acceptedForms } from '@thv/gateway/response/accepted-forms'
import { unavailable } from '@thv/gateway/response/backend-rejection'
import { HttpReply } from '@thv/gateway/response/reply'
import { sendRejection } from '@thv/gateway/response/send-rejection'
import { type LiveSessionRecord, LiveSessions, type SessionKey } from '@thv/gateway/sessions/live-sessions'
import { partyOf } from '@thv/gateway/sessions/party'
import type { StreamMetrics } from '@thv/gateway/streams/client-stream'
import { SessionStreams } from '@thv/gateway/streams/session-streams'
import type { Exchange } from '@thv/http/server/exchange'
import { sendEmpty } from '@thv/http/server/respond'
import { legacyError, legacyRefusal, legacyResult, legacyTool } from '@thv/mcp/bridge/projections'
import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import type { McpClient } from '@thv/mcp/client/mcp-client'
import { isLogLevel } from '@thv/mcp/envelope'
import { isObject, type JsonObject, type JsonRpcNotification, serialise } from '@thv/mcp/json-rpc'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedNotification, ParsedRequest } from '@thv/mcp/parse-body'
import { mintSessionId } from '@thv/mcp/session-id'
import { isRejection, reject } from '@thv/mcp/wire-errors'
import type { MessageContext, SessionContext } from '@thv/middleware/pipeline/request-context'
import type { SessionStore } from '@thv/store/session-store'
import type { CompositeClient } from '../compose/composite-calls.ts'
import type { CompositeOffer } from '../compose/composite-offers.ts'
import type { RunningWorkflows } from '../compose/running-workflows.ts'
import { failureText } from '../members/failure-text.ts'
import { LocalRefusal } from '../members/local-refusal.ts'
import type { Member } from '../members/member.ts'
import type { ListKind } from '../members/member-lists.ts'
import type { Offer } from '../offer.ts'
import { findRoute } from '../route/find-route.ts'
import { VirtualCall } from '../route/virtual-call.ts'
import type { SendToClient } from './client-questions.ts'
import { LeftWorkflows } from './left-workflows.ts'
import { passingClient } from './passing-client.ts'
import { MAX_RECORD_BYTES, recordBytes, recordOf, VirtualSession } from './virtual-session.ts'

export interface LegacyEndpointOptions {
  readonly offer: Offer
  readonly store: SessionStore<LiveSessionRecord>
  readonly ttlMs: number
  readonly metrics: StreamMetrics
  /** Where replicas share sessions. */
  readonly running?: RunningWorkflows | undefined
}

const REPLAY = { replayEvents: 256, replayBytes: 1 << 20 }

/** Methods whose requests go on to a backend. */
const FORWARDED: ReadonlySet<string> = new Set([METHODS.toolsCall, METHODS.promptsGet, METHODS.resourcesRead, METHODS.complete])

const CHANGES: Readonly<Record<ListKind, string>> = {
  tools: NOTIFICATIONS.toolsListChanged,
  prompts: NOTIFICATIONS.promptsListChanged,
  resources: NOTIFICATIONS.resourcesListChanged,
  resourceTemplates: NOTIFICATIONS.resourcesListChanged,
}

/** Clients of the handshake era: sessions, their POSTs and their streams. */
export class LegacyEndpoint {
  readonly sessions: LiveSessions<VirtualSession>
  readonly #options: LegacyEndpointOptions
  readonly #left: LeftWorkflows | undefined

  constructor(options: LegacyEndpointOptions) {
    const { offer, store, ttlMs, running } = options
    this.#options = options
    this.#left = running && new LeftWorkflows(running, offer)
    this.sessions = new LiveSessions<VirtualSession>({
      ...{ store, ttlMs, clock: offer.clock, log: offer.log, recordOf },
      revive: (key, record) => this.#revive(key, record),
      onEnd: () => undefined,
    })
  }

  async post(context: MessageContext): Promise<void> {
    const { received, outgoing, exchange } = context
    if (received.method === METHODS.initialize && outgoing.kind === 'request') return await this.#initialize(context, outgoing)
    const found = this.sessions.find(context.sessionId, context.caller.principal, exchange)
    const session = found instanceof Promise ? await found : found
    if (isRejection(session)) return sendRejection(exchange, session, received.kind === 'request' ? received.id : undefined)
    if (outgoing.kind === 'request') return await this.#request(session, context, outgoing)
    if (outgoing.kind === 'response') session.questions.answered(outgoing)
    else await this.#notified(session, outgoing)
    sendEmpty(exchange, 202)
  }

  async openStream(context: SessionContext): Promise<void> {
    const { exchange, sessionId, caller, lastEventId } = context
    const session = await this.sessions.find(sessionId, caller.principal, exchange)
    if (isRejection(session)) return sendRejection(exchange, session)
    if (!acceptedForms(exchange.headers['accept']).sse) return sendRejection(exchange, reject('not_acceptable'))
    if (exchange.closed) return
    if (this.#left !== undefined && lastEventId !== undefined) {
      if ((await this.#left.tell(session, exchange, lastEventId)) || exchange.closed) return
    }
    const stream = session.outlet.connect(exchange, lastEventId)
    context.endStream = () => {
      stream.disconnect(exchange)
      return true
    }
    this.#options.offer.pipeline.streaming(context)
  }

  async endSession({ exchange, sessionId, caller }: SessionContext): Promise<void> {
    const session = await this.sessions.find(sessionId, caller.principal, exchange)
    const problem = isRejection(session) ? session : await this.sessions.end(session)
    if (problem === undefined) sendEmpty(exchange, 204)
    else sendRejection(exchange, problem)
  }

  /** Lists have changed: every session that is open hears of it. */
  announce(changed: ReadonlySet<ListKind>): void {
    const methods = new Set([...changed].map((kind) => CHANGES[kind]))
    for (const method of methods) {
      const text = serialise({ jsonrpc: '2.0', method })
      for (const session of this.sessions.all()) if (session.isInitialized) session.outlet.announce(text, method)
    }
  }

  /** Backends that have left, or are others now: sessions go on without them. */
  dropMembers(members: readonly Member[]): void {
    const { offer } = this.#options
    for (const session of this.sessions.all()) for (const member of members) session.drop(member, offer.member(member.name))
  }

  endStandalone(): void {
    for (const session of this.sessions.all()) session.outlet.endStandalone()
  }

  async #initialize(context: MessageContext, request: ParsedRequest): Promise<void> {
    const { exchange, caller } = context
    const { offer } = this.#options
    const down = offer.refusal()
    if (down !== undefined) return sendRejection(exchange, down, request.id)
    const { principal } = caller
    const params = request.message.params ?? {}
    if (recordBytes(params, []) > MAX_RECORD_BYTES) {
      const detail = `the handshake of a session may take ${MAX_RECORD_BYTES} bytes`
      return sendRejection(exchange, reject('invalid_params', { detail }), request.id)
    }
    const session = this.#session({ id: mintSessionId(), principal, party: partyOf(principal, exchange) }, params)
    const problem = exchange.closed ? unavailable('the client has gone') : await this.sessions.add(session)
    if (problem !== undefined) {
      session.end()
      return sendRejection(exchange, problem, request.id)
    }
    const result = { protocolVersion: session.version, capabilities: offer.capabilities, serverInfo: offer.serverInfo }
    const reply = this.#reply(exchange, session, ['Mcp-Session-Id', session.id])
    this.#call(session, context, { request, reply }).finish(result)
  }

  async #request(session: VirtualSession, context: MessageContext, request: ParsedRequest): Promise<void> {
    const reply = this.#reply(context.exchange, session)
    const call = this.#call(session, context, { request, reply })
    if (session.calls.has(request.id)) return call.reject(reject('invalid_request', { detail: 'the id is in use' }))
    session.calls.set(request.id, call)
    session.outlet.begin(reply)
    try {
      const answering = { request, reply, call }
      await (FORWARDED.has(request.method) ? this.#forward(session, context, answering) : this.#answer(session, context, answering))
    } finally {
      session.calls.delete(request.id)
      queueMicrotask(() => session.outlet.done(reply))
    }
  }

  async #answer(session: VirtualSession, context: MessageContext, { request, reply, call }: Answering): Promise<void> {
    const { offer } = this.#options
    const { method, message } = request
    const params = message.params ?? {}
    switch (method) {
      case METHODS.ping:
        return call.finish({})
      case METHODS.toolsList:
      case METHODS.promptsList:
      case METHODS.resourcesList:
      case METHODS.resourceTemplatesList: {
        const text = await offer.listText(context, request, { project: method === METHODS.toolsList ? legacyTool : undefined })
        return typeof text === 'string' ? reply.finish(text) : call.reject(text)
      }
      case METHODS.setLevel:
        if (!isLogLevel(params['level'])) return call.reject(reject('invalid_params', { detail: 'unknown level' }))
        await session.setLevel(params['level'])
        await this.sessions.save(session)
        return call.finish({})
      case METHODS.resourcesSubscribe:
      case METHODS.resourcesUnsubscribe:
        return await this.#subscription(session, { request, reply, call })
      default:
        return call.reject(reject('method_not_found'))
    }
  }

  async #forward(session: VirtualSession, context: MessageContext, { request, reply, call }: Answering): Promise<void> {
    const { offer } = this.#options
    const params = request.message.params ?? {}
    const current = offer.view.current()
    const view = current instanceof Promise ? await current : current
    const offered = offer.lacksLogin(request)
      ? await offer.compositeAfterLogin(call, request)
      : { found: offer.composites.find(request.method, params) }
    if (offered === undefined) return
    const { found: composite } = offered
    if (composite !== undefined && 'challenge' in composite) return call.challenge(composite.challenge)
    if (composite !== undefined) return await this.#compose(session, { request, reply, call, identity: context.caller.identity }, composite)
    const { search } = offer
    if (search.isFind(request.method, params))
      return await call.work(async ({ signal }) => {
        const answer = await search.find({ context, params, signal, project: legacyTool })
        return isRejection(answer) ? answer : legacyResult(answer)
      })
    const known = findRoute(view, request.method, params)
    const routed = offer.isUnrouted(known) ? await offer.routeAfterLogin(call, request) : { found: known }
    if (routed === undefined) return
    const { found } = routed
    if (found === undefined) return call.finish(NO_COMPLETION)
    if ('challenge' in found) return call.challenge(found.challenge)
    if (isRejection(found)) return search.isInner(request) ? call.finish(search.refused(found)) : call.reject(found)
    const member = offer.member(found.backend)
    if (member === undefined) return call.reject(reject('internal_error'))
    const open = session.clientOf(member)
    const client = needsLevel(session, open) ? await atLevel(session, open, call.signal) : open
    const send = wayTo(session, reply)
    const handlers = session.handlers(send)
    const passing = offer.limitsResults(request.method) ? undefined : passingClient(client, request, found.params)
    await call.run(member, passing ?? client, { params: found.params, handlers, logLevel: session.level })
    session.linksDone(send)
  }

  /** Steps use the sessions of this client at the backends; questions of steps and of backends reach it on the stream of its call. */
  async #compose(session: VirtualSession, { request, reply, call, identity }: Composing, composite: CompositeOffer): Promise<void> {
    const { offer } = this.#options
    const send = wayTo(session, reply)
    const handlers = session.handlers(send)
    const noted = this.#left?.note(session, { requestId: request.id, reply, call })
    const client: CompositeClient = {
      journal: noted?.journal,
      ...{ principal: session.principal, party: session.party, identity, isAsking: () => session.questions.size > 0 },
      asks: session.canFillForms ? (params, signal) => session.questions.ask({ method: METHODS.elicit, params }, send, signal) : 'no',
      clientOf: async (member, signal) => ({
        client: await atLevel(session, session.clientOf(member), signal),
        options: { handlers, logLevel: session.level },
      }),
    }
    try {
      await call.work(async (running) => {
        const answer = await offer.composites.run({ offer: composite, params: request.message.params ?? {}, client }, running)
        return isRejection(answer) ? answer : legacyResult(offer.limited(answer, request.method))
      })
    } finally {
      session.linksDone(send)
      noted?.end()
    }
  }

  async #subscription(session: VirtualSession, { request, call }: Answering): Promise<void> {
    const { offer } = this.#options
    const params = request.message.params ?? {}
    const found = findRoute(await offer.view.current(), request.method, params)
    if (found === undefined || isRejection(found)) return call.reject(found ?? reject('internal_error'))
    const member = offer.member(found.backend)
    const { uri } = params
    if (member === undefined || typeof uri !== 'string') return call.reject(reject('invalid_params'))
    try {
      await (request.method === METHODS.resourcesSubscribe ? session.subscribe(member, uri) : session.unsubscribe(uri))
      await this.sessions.save(session)
      call.finish({})
    } catch (error) {
      if (error instanceof LocalRefusal) return call.reject(reject('invalid_params', { detail: error.message }))
      const detail = error instanceof McpErrorResponse ? 'the backend refused it' : 'the backend did not answer'
      call.reject(reject('internal_error', { detail, data: { backend: member.name } }))
    }
  }

  async #notified(session: VirtualSession, { method, message }: ParsedNotification): Promise<void> {
    if (method === NOTIFICATIONS.initialized && !session.isInitialized) {
      session.isInitialized = true
      await this.sessions.save(session)
    } else if (method === NOTIFICATIONS.rootsListChanged) session.rootsChanged()
    else if (method === NOTIFICATIONS.cancelled) cancel(session, message)
  }

  #call(session: VirtualSession, context: MessageContext, { request, reply }: Pick<Answering, 'request' | 'reply'>): VirtualCall {
    const { offer } = this.#options
    const { retry, isIdempotent } = offer.retryOf(request)
    return new VirtualCall({
      context,
      request,
      reply,
      session,
      deps: offer,
      timeoutMs: offer.timeoutMs(request),
      retry,
      isIdempotent,
      isAsking: () => session.questions.size > 0,
      wantsLog: (params) => session.wantsLog(params),
      project: (result) => legacyResult(offer.limited(result, request.method)),
      projectError: (error, client) => {
        if (client.era !== 'modern') return { error, status: 200 }
        const result = legacyRefusal(error, request.method)
        return result === undefined ? { error: legacyError(error, request.method), status: 200 } : { result }
      },
    })
  }

  #reply(exchange: Exchange, session: VirtualSession, headers: readonly string[] = []): HttpReply {
    const accepts = acceptedForms(exchange.headers['accept'])
    return new HttpReply({ exchange, accepts, headers, openStream: () => session.outlet.openPost() })
  }

  #session({ id, principal, party }: SessionKey, params: JsonObject): VirtualSession {
    const { offer, metrics } = this.#options
    const { clock, log } = offer
    const outlet = new SessionStreams({ clock, metrics }, { version: () => session.version, ...REPLAY })
    const session: VirtualSession = new VirtualSession({ id, principal, party, params, outlet, clock, log })
    return session
  }

  #revive(key: SessionKey, record: LiveSessionRecord): VirtualSession {
    const params: unknown = JSON.parse(record.initialize)
    const session = this.#session(key, isObject(params) ? params : {})
    session.isInitialized = record.isInitialized
    session.level = isLogLevel(record.level) ? record.level : undefined
    if (record.subscriptions.length > 0) void this.#resubscribe(session, record.subscriptions)
    return session
  }

  /** The replica that had the session is gone, or serves it too. A resource that no backend has any more stays silent. */
  async #resubscribe(session: VirtualSession, uris: readonly string[]): Promise<void> {
    const { offer } = this.#options
    const view = await offer.view.current()
    for (const uri of uris) {
      const found = findRoute(view, METHODS.resourcesRead, { uri })
      const member = found === undefined || isRejection(found) ? undefined : offer.member(found.backend)
      await (member &&
        session.subscribe(member, uri).catch((error: unknown) => {
          offer.log.info('could not subscribe for a session of another replica', { backend: member.name, error: failureText(error) })
        }))
    }
  }
}

interface Answering {
  readonly request: ParsedRequest
  readonly reply: HttpReply
  readonly call: VirtualCall
}

interface Composing extends Answering {
  readonly identity: CompositeClient['identity']
}

/** Sends on the stream of the call, or on that of the session. */
function wayTo(session: VirtualSession, reply: HttpReply): SendToClient {
  return (text) => (reply.canStream ? reply.event(text) : session.outlet.deliver(text))
}

/** A client that is not connected yet does not know the level that the session asked for. */
function needsLevel(session: VirtualSession, client: McpClient): boolean {
  return client.era === undefined && session.level !== undefined
}

/** The session's client of a backend, at the level that the session asked for. */
async function atLevel(session: VirtualSession, client: McpClient, signal: AbortSignal): Promise<McpClient> {
  if (!needsLevel(session, client)) return client
  // Errors show in the call itself.
  await client.connect({ signal }).catch(() => undefined)
  await session.applyLevel(client)
  return client
}

const NO_COMPLETION = { completion: { values: [], total: 0, hasMore: false } }

function cancel(session: VirtualSession, { params = {} }: JsonRpcNotification): void {
  const { requestId } = params
  if (typeof requestId === 'string' || typeof requestId === 'number') session.calls.get(requestId)?.abandon('the client cancelled the call')
}
