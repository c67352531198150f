import { acceptedForms } from '@thv/gateway/response/accepted-forms'
import { unavailable } from '@thv/gateway/response/backend-rejection'
import { HttpReply } from '@thv/gateway/response/reply'
import { sendRejection } from '@thv/gateway/response/send-rejection'
import { type LiveSessionRecord, LiveSessions, type SessionKey } from '@thv/gateway/sessions/live-sessions'
import { partyOf } from '@thv/gateway/sessions/party'
import { SessionStreams } from '@thv/gateway/streams/session-streams'
import type { Exchange } from '@thv/http/server/exchange'
import { sendEmpty } from '@thv/http/server/respond'
import { METHODS } from '@thv/mcp/methods'
import { type ParsedRequest, parseText } from '@thv/mcp/parse-body'
import { mintSessionId } from '@thv/mcp/session-id'
import { isRejection, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext, SessionContext } from '@thv/middleware/pipeline/request-context'
import type { SessionStore } from '@thv/store/session-store'
import type { StdioDeps } from '../process/stdio-deps.ts'
import type { ProcessPool } from '../process-pool.ts'
import type { LegacyService } from './legacy-service.ts'
import { LegacySession, recordOf, restoreFrom } from './legacy-session.ts'

export interface LegacyEndpointOptions {
  readonly deps: StdioDeps
  readonly pool: ProcessPool
  readonly service: LegacyService
  readonly pipeline: Pipeline
  readonly store: SessionStore<LiveSessionRecord>
}

/** Streamable HTTP of the handshake era: sessions, their POSTs and their streams. */
export class LegacyEndpoint {
  readonly sessions: LiveSessions<LegacySession>
  readonly #options: LegacyEndpointOptions

  constructor(options: LegacyEndpointOptions) {
    this.#options = options
    const { deps, pool, store } = options
    this.sessions = new LiveSessions<LegacySession>({
      store,
      clock: deps.clock,
      log: deps.log,
      ttlMs: deps.config.sessionTtlMs,
      recordOf,
      revive: (key, record) => this.#revive(key, record),
      onEnd: (session) => pool.release(session),
    })
  }

  async post(context: MessageContext): Promise<void> {
    const { received, outgoing, exchange } = context
    if (received.method === METHODS.initialize && outgoing.kind === 'request') return this.#initialize(context, outgoing)
    const session = await this.sessions.find(context.sessionId, context.caller.principal, exchange)
    if (isRejection(session)) return sendRejection(exchange, session, received.kind === 'request' ? received.id : undefined)
    if (outgoing.kind === 'request') return this.#request(session, context, outgoing)
    if (outgoing.kind === 'response') this.#options.service.answered(session, outgoing)
    else this.#options.service.notified(session, outgoing)
    sendEmpty(exchange, 202)
  }

  /** The newest stream wins: a client that comes again has lost the one before, whether it knows or not. */
  async openStream(context: SessionContext): Promise<void> {
    const { exchange, sessionId, caller, lastEventId } = context
    const session = await this.sessions.find(sessionId, caller.principal, exchange)
    if (isRejection(session)) return sendRejection(exchange, session)
    if (!acceptedForms(exchange.headers['accept']).sse) return sendRejection(exchange, reject('not_acceptable'))
    if (exchange.closed) return
    const stream = streamsOf(session).connect(exchange, lastEventId)
    context.endStream = () => {
      stream.disconnect(exchange)
      return true
    }
    this.#options.pipeline.streaming(context)
  }

  async endSession({ exchange, sessionId, caller }: SessionContext): Promise<void> {
    const session = await this.sessions.find(sessionId, caller.principal, exchange)
    const problem = isRejection(session) ? session : await this.sessions.end(session)
    if (problem === undefined) sendEmpty(exchange, 204)
    else sendRejection(exchange, problem)
  }

  /** Ends streams that could stay open without end; answers that are on their way are not touched. */
  endStandalone(): void {
    for (const session of this.sessions.all()) streamsOf(session).endStandalone()
  }

  async #initialize(context: MessageContext, request: ParsedRequest): Promise<void> {
    const { exchange, caller } = context
    const { service } = this.#options
    const { principal } = caller
    const session = this.#session({ id: mintSessionId(), principal, party: partyOf(principal, exchange) }, request)
    const answer = await service.open(session, context)
    if (isRejection(answer)) return sendRejection(exchange, answer, request.id)
    const problem = answer.isOpen ? await this.#keep(session, exchange) : undefined
    if (problem !== undefined) return sendRejection(exchange, problem, request.id)
    this.#reply(exchange, session, answer.isOpen ? ['Mcp-Session-Id', session.id] : []).finish(answer.text)
  }

  /** A client that has gone away never learned the id. */
  async #keep(session: LegacySession, exchange: Exchange): Promise<Rejection | undefined> {
    const problem = exchange.closed ? unavailable('the client has gone') : await this.sessions.add(session)
    if (problem === undefined) return undefined
    session.end()
    this.#options.pool.release(session)
    return problem
  }

  #request(session: LegacySession, context: MessageContext, request: ParsedRequest): Promise<void> {
    const streams = streamsOf(session)
    const reply = this.#reply(context.exchange, session)
    streams.begin(reply)
    return new Promise((resolve, fail) => {
      const onDone = () => {
        // In the next turn: what is answered is still being written.
        queueMicrotask(() => streams.done(reply))
        resolve()
      }
      this.#options.service.request(session, { context, request, reply, onDone }).catch(fail)
    })
  }

  #reply(exchange: Exchange, session: LegacySession, headers: readonly string[] = []): HttpReply {
    return new HttpReply({
      exchange,
      accepts: acceptedForms(exchange.headers['accept']),
      headers,
      openStream: () => streamsOf(session).openPost(),
    })
  }

  #session({ id, principal, party }: SessionKey, initialize: ParsedRequest): LegacySession {
    const { clock, metrics, config } = this.#options.deps
    const { replayEvents, replayBytes, askTimeoutMs } = config
    const outlet = new SessionStreams({ clock, metrics }, { version: () => session.version, replayEvents, replayBytes })
    const session: LegacySession = new LegacySession({ id, principal, party, initialize, outlet, clock, askTimeoutMs })
    return session
  }

  /** A session that another runner, or an earlier one, has opened. */
  #revive(key: SessionKey, record: LiveSessionRecord): LegacySession | Rejection {
    const initialize = parseText(record.initialize)
    if (initialize.kind !== 'request') return reject('session_not_found')
    const session = this.#session(key, initialize)
    restoreFrom(session, record)
    const process = this.#options.pool.assign(session, record.subscriptions)
    return isRejection(process) ? process : session
  }
}

/** Sessions of this front have streams; those of HTTP+SSE never get here. */
function streamsOf({ outlet }: LegacySession): SessionStreams {
  if (outlet instanceof SessionStreams) return outlet
  throw new RangeError('not a session of streamable HTTP')
}
