import { acceptedForms } from '@thv/gateway/response/accepted-forms'
import { unavailable } from '@thv/gateway/response/backend-rejection'
import { HttpReply } from '@thv/gateway/response/reply'
import { sendRejection } from '@thv/gateway/response/send-rejection'
import { partyOf } from '@thv/gateway/sessions/party'
import { ClientStream, type StreamMetrics } from '@thv/gateway/streams/client-stream'
import { wireErrors } from '@thv/kernel/error-registry'
import { fillsForms, modernError, modernResult, relayedCapabilities } from '@thv/mcp/bridge/projections'
import { isLogLevel, LOG_LEVELS, META, metaOf } from '@thv/mcp/envelope'
import type { ErrorObject, JsonObject } from '@thv/mcp/json-rpc'
import { INPUT_METHODS, METHODS } from '@thv/mcp/methods'
import { checkParamHeaders, collectAnnotations } from '@thv/mcp/param-headers'
import type { ParsedRequest } from '@thv/mcp/parse-body'
import { isRejection, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import type { CompositeClient } from '../compose/composite-calls.ts'
import type { CompositeOffer } from '../compose/composite-offers.ts'
import { failureText } from '../members/failure-text.ts'
import type { Member } from '../members/member.ts'
import type { ListKind } from '../members/member-lists.ts'
import type { Offer } from '../offer.ts'
import { ParkedCalls } from '../parked/parked-calls.ts'
import { findRoute } from '../route/find-route.ts'
import { type CallingClient, VirtualCall } from '../route/virtual-call.ts'
import { ByteClient } from './byte-client.ts'
import { ListenStream, readFilter } from './listen-stream.ts'
import { RelayedStates } from './relayed-states.ts'
import { unaskedClient } from './unasked-client.ts'

const MAX_LISTENS = 4_096
/** Of one principal, or of one address without authentication. */
const MAX_LISTENS_PER_PARTY = 256

/** Clients of revision 2026-07-28: each request stands alone. */
export class ModernEndpoint {
  readonly #offer: Offer
  readonly #metrics: StreamMetrics
  readonly #listens = new Map<ListenStream, string>()
  readonly #parked: ParkedCalls
  readonly #relayed: RelayedStates
  readonly #serverInfo: string

  constructor(offer: Offer, metrics: StreamMetrics) {
    this.#offer = offer
    this.#metrics = metrics
    this.#serverInfo = JSON.stringify(offer.serverInfo)
    this.#parked = new ParkedCalls(offer.clock, offer.sealKeys)
    this.#relayed = new RelayedStates(offer.clock, offer.sealKeys.sealFor('relayed states'), offer.usedStates)
  }

  /** A promise only where there is something to wait for. */
  post(context: MessageContext): Promise<void> | undefined {
    const { outgoing: request, exchange } = context
    if (request.kind !== 'request') return undefined
    const reply = this.#reply(context)
    const { method } = request
    switch (method) {
      case METHODS.discover:
        this.#call(context, { request, reply }).finish(this.#stamped(this.#offer.discovery, method))
        return undefined
      case METHODS.toolsList:
      case METHODS.promptsList:
      case METHODS.resourcesList:
      case METHODS.resourceTemplatesList:
        return this.#list(context, { request, reply })
      case METHODS.toolsCall:
      case METHODS.promptsGet:
      case METHODS.resourcesRead:
      case METHODS.complete:
        return this.#forward(context, { request, reply })
      case METHODS.listen:
        return this.#listen(context, { request, reply })
      default:
        sendRejection(exchange, reject('method_not_found'), request.id)
        return undefined
    }
  }

  announce(changed: ReadonlySet<ListKind>): void {
    for (const listen of this.#listens.keys()) listen.changed(changed)
  }

  /** Backends that have left, or are others now: clients that subscribed there listen again. */
  dropMembers(members: readonly Member[]): void {
    for (const listen of [...this.#listens.keys()]) if (members.some(({ name }) => listen.backends.has(name))) listen.drain()
  }

  endListens(): void {
    for (const listen of [...this.#listens.keys()]) listen.drain()
  }

  async close(): Promise<void> {
    this.endListens()
    await this.#parked.close()
  }

  async #list(context: MessageContext, { request, reply }: Answering): Promise<void> {
    const { view, pipeline, serverInfo, isPerCaller } = this.#offer
    const ttlMs = view.isMissing ? 0 : view.freshForMs
    const isPrivate = isPerCaller || pipeline.edits(request.method) || context.caller.identity !== undefined
    const cacheScope = isPrivate ? 'private' : 'public'
    const extra = { resultType: 'complete', ttlMs, cacheScope, _meta: { [META.serverInfo]: serverInfo } }
    const text = await this.#offer.listText(context, request, { project: undefined, extra })
    if (typeof text === 'string') reply.finish(text)
    else this.#call(context, { request, reply }).reject(text)
  }

  async #forward(context: MessageContext, answering: Answering): Promise<void> {
    const { request } = answering
    const params = request.message.params ?? {}
    const call = this.#call(context, answering)
    const current = this.#offer.view.current()
    const view = current instanceof Promise ? await current : current
    const offered = this.#offer.lacksLogin(request)
      ? await whilePresent(context, call, () => this.#offer.compositeAfterLogin(call, request))
      : { found: this.#offer.composites.find(request.method, params) }
    if (offered === undefined) return
    const { found: composite } = offered
    if (composite !== undefined && 'challenge' in composite) return call.challenge(composite.challenge)
    if (composite !== undefined) return await this.#compose(context, { params, call, composite })
    if (this.#offer.search.isFind(request.method, params)) return await this.#find(context, params, call)
    const known = findRoute(view, request.method, params)
    const routed = this.#offer.isUnrouted(known)
      ? await whilePresent(context, call, () => this.#offer.routeAfterLogin(call, request))
      : { found: known }
    if (routed === undefined) return
    const { found } = routed
    if (found === undefined) return call.finish(this.#stamped({ completion: { values: [], total: 0, hasMore: false } }, request.method))
    if ('challenge' in found) return call.challenge(found.challenge)
    const isInner = this.#offer.search.isInner(request)
    if (isInner && isRejection(found)) return call.finish(this.#stamped(this.#offer.search.refused(found), request.method))
    const mismatch = isRejection(found) || isInner ? undefined : this.#headerProblem(context, params)
    if (mismatch !== undefined) return sendRejection(context.exchange, mismatch, request.id)
    if (isRejection(found)) return call.reject(found)
    const member = this.#offer.member(found.backend)
    if (member === undefined) return call.reject(reject('internal_error'))
    const meta = metaOf(request.message)
    const level = meta?.[META.logLevel]
    const capabilities = relayedCapabilities(meta?.[META.clientCapabilities])
    if (context.exchange.aborted) return call.handleEvent()
    const client = this.#clientFor(context, { member, request, params: found.params, capabilities })
    const logLevel = isLogLevel(level) ? level : undefined
    await call.run(member, client, { params: found.params, capabilities, returnInputRequired: true, logLevel, exchange: context.exchange })
  }

  async #find(context: MessageContext, params: JsonObject, call: VirtualCall): Promise<void> {
    await whilePresent(context, call, () =>
      call.work(async ({ signal }) => {
        const found = await this.#offer.search.find({ context, params, signal, project: (tool) => tool })
        return isRejection(found) ? found : this.#stamped(found, METHODS.toolsCall)
      }),
    )
  }

  /** Backends of steps can ask nothing: their sessions are shared, and the client does not know them. */
  async #compose(context: MessageContext, { params, call, composite }: Composing): Promise<void> {
    const { caller, exchange, outgoing } = context
    if (outgoing.kind !== 'request') return
    const { principal } = caller
    const capabilities = relayedCapabilities(metaOf(outgoing.message)?.[META.clientCapabilities])
    const client: CompositeClient = {
      ...{ principal, party: partyOf(principal, exchange), identity: caller.identity, isAsking: () => false },
      asks: fillsForms(capabilities) ? 'input_required' : 'no',
      clientOf: async (member) => ({ client: member.shared, options: { capabilities: {} } }),
    }
    await whilePresent(context, call, () =>
      call.work(async (running) => {
        const answer = await this.#offer.composites.run({ offer: composite, params, client }, running)
        return isRejection(answer) ? answer : this.#stamped(this.#offer.limited(answer, METHODS.toolsCall), METHODS.toolsCall)
      }),
    )
  }

  /** A legacy backend that may ask gets a session for the call alone; all else goes over the shared one. */
  #clientFor(context: MessageContext, sending: Sending): CallingClient {
    const { caller, exchange } = context
    const { member, request, params, capabilities } = sending
    const { method } = request
    const { principal } = caller
    const { era } = member.shared
    if (!INPUT_METHODS.has(method)) return era === 'modern' ? this.#byteClient(context, sending, member.shared) : member.shared
    if (era !== 'legacy') {
      const relayed = this.#relayed.clientFor({ member, method, params, capabilities, principal, exchange })
      return era === 'modern' && params['requestState'] === undefined ? this.#byteClient(context, sending, relayed) : relayed
    }
    const { inputResponses, requestState, ...rest } = params
    const mayPark = this.#offer.config.bridge.parkedCalls && Object.keys(capabilities).length > 0
    // A call that is parked already goes on, also where no further one may be.
    if (!mayPark && requestState === undefined) return unaskedClient(member.shared, capabilities)
    const party = partyOf(principal, exchange)
    return this.#parked.clientFor({ member, method, params: rest, capabilities, principal, party, inputResponses, requestState })
  }

  /** Both hops are modern: bytes pass, unless something else than the name is different for the backend, or the result has to be read. */
  #byteClient({ caller, exchange, trace }: MessageContext, { member, request, params, capabilities }: Sending, client: CallingClient) {
    const { method, message } = request
    if (params['arguments'] !== message.params?.['arguments'] || this.#offer.limitsResults(method)) return client
    // The headers of the request are those of `call_tool`.
    if (this.#offer.search.isInner(request)) return client
    const { principal } = caller
    const asked = (result: JsonObject) =>
      this.#stamped(this.#relayed.sealed(result, { member, method, params, capabilities, principal, exchange }), method)
    return new ByteClient({ member, request, exchange, params, capabilities, trace, serverInfo: this.#serverInfo, client, asked })
  }

  /** Arguments that the tool wants repeated in headers must stand there as they stand in the body. */
  #headerProblem({ exchange }: MessageContext, { name, arguments: args }: JsonObject): Rejection | undefined {
    const route = typeof name === 'string' ? this.#offer.view.now.tools.get(name) : undefined
    if (route === undefined) return undefined
    const found = annotationsOf(route.item)
    return 'annotations' in found ? checkParamHeaders(found.annotations, args, exchange.headers) : undefined
  }

  async #listen(context: MessageContext, { request, reply }: Answering): Promise<void> {
    const { exchange } = context
    const filter = readFilter(request.message.params ?? {})
    if (filter === undefined) return sendRejection(exchange, reject('invalid_params', { detail: 'notifications is malformed' }), request.id)
    if (!reply.canStream) return sendRejection(exchange, reject('not_acceptable'), request.id)
    const party = partyOf(context.caller.principal, exchange)
    if (!this.#hasRoomFor(party))
      return sendRejection(exchange, unavailable('too many subscriptions are open', LISTEN_RETRY_MS), request.id)
    const stream = new ListenStream(reply, request.id, filter)
    this.#listens.set(stream, party)
    const onGone = () => stream.end()
    exchange.signal.addEventListener('abort', onGone, { once: true })
    context.endStream = () => {
      stream.drain()
      return true
    }
    stream.acknowledge()
    this.#offer.pipeline.streaming(context)
    await this.#subscribe(stream, filter.resourceSubscriptions ?? [])
    if (exchange.signal.aborted) onGone()
    await stream.done
    this.#listens.delete(stream)
    exchange.signal.removeEventListener('abort', onGone)
  }

  #hasRoomFor(party: string): boolean {
    if (this.#listens.size >= MAX_LISTENS) return false
    let own = 0
    for (const each of this.#listens.values()) if (each === party) own++
    return own < MAX_LISTENS_PER_PARTY
  }

  /** Each resource at the backend that has it. One that cannot be subscribed to stays silent, as one that never changes. */
  async #subscribe(stream: ListenStream, uris: readonly string[]): Promise<void> {
    const { view, log } = this.#offer
    const byBackend = new Map<string, string[]>()
    for (const uri of uris) {
      const found = findRoute(view.now, METHODS.resourcesRead, { uri })
      if (found !== undefined && !isRejection(found)) byBackend.set(found.backend, [...(byBackend.get(found.backend) ?? []), uri])
    }
    stream.backends = new Set(byBackend.keys())
    await Promise.all(
      [...byBackend].map(async ([backend, resourceSubscriptions]) => {
        const client = this.#offer.member(backend)?.shared
        const options = { timeoutMs: SUBSCRIBE_MS, onNotification: stream.updated.bind(stream) }
        try {
          const listening = await client?.listen({ resourceSubscriptions }, options)
          if (listening !== undefined) stream.add(listening)
        } catch (error) {
          log.info('could not subscribe at a backend', { backend, error: failureText(error) })
        }
      }),
    )
  }

  #call(context: MessageContext, { request, reply }: Answering): VirtualCall {
    const level = metaOf(request.message)?.[META.logLevel]
    const { retry, isIdempotent } = this.#offer.retryOf(request)
    return new VirtualCall({
      context,
      request,
      reply,
      deps: this.#offer,
      timeoutMs: this.#offer.timeoutMs(request),
      retry,
      isIdempotent,
      isAsking: () => false,
      wantsLog: ({ level: of }) => isLogLevel(level) && (!isLogLevel(of) || LOG_LEVELS.indexOf(of) >= LOG_LEVELS.indexOf(level)),
      project: (result, client) => this.#stamped(this.#offer.limited(result, request.method), request.method, client.era === 'legacy'),
      projectError: (error, client) => {
        const projected = client.era === 'legacy' ? modernError(error) : error
        return { error: projected, status: statusOf(projected) }
      },
    })
  }

  #stamped(result: JsonObject, method: string, isLegacy = false): JsonObject {
    return modernResult(result, { method, serverInfo: this.#offer.serverInfo, isLegacy })
  }

  #reply({ exchange }: MessageContext): HttpReply {
    const { clock } = this.#offer
    const accepts = acceptedForms(exchange.headers['accept'])
    return new HttpReply({ exchange, accepts, openStream: () => new ClientStream({ clock, metrics: this.#metrics }) })
  }
}

/** By the item of the list: schemas are walked once. */
const annotations = new WeakMap<JsonObject, ReturnType<typeof collectAnnotations>>()

function annotationsOf(tool: JsonObject): ReturnType<typeof collectAnnotations> {
  const known = annotations.get(tool)
  if (known !== undefined) return known
  const found = collectAnnotations(tool['inputSchema'])
  annotations.set(tool, found)
  return found
}

interface Answering {
  readonly request: ParsedRequest
  readonly reply: HttpReply
}

interface Composing {
  readonly params: JsonObject
  readonly call: VirtualCall
  readonly composite: CompositeOffer
}

interface Sending {
  readonly member: Member
  readonly request: ParsedRequest
  readonly params: JsonObject
  readonly capabilities: JsonObject
}

const SUBSCRIBE_MS = 15_000
const LISTEN_RETRY_MS = 10_000

/** A modern client cancels a call by hanging up. Undefined where it has. */
async function whilePresent<T>({ exchange }: MessageContext, call: VirtualCall, work: () => Promise<T>): Promise<T | undefined> {
  if (exchange.aborted) {
    call.handleEvent()
    return undefined
  }
  exchange.addEventListener('abort', call)
  try {
    return await work()
  } finally {
    exchange.removeEventListener('abort', call)
  }
}

/** Errors that the standard gives an HTTP status of its own. */
function statusOf({ code }: ErrorObject): number {
  if (code === wireErrors.method_not_found.jsonRpcCode) return 404
  const { header_mismatch, missing_client_capability, unsupported_protocol_version } = wireErrors
  const isRefused = [header_mismatch, missing_client_capability, unsupported_protocol_version].some((error) => error.jsonRpcCode === code)
  return isRefused ? 400 : 200
}
