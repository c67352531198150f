import { unavailable } from '@thv/gateway/response/backend-rejection'
import { answerText } from '@thv/gateway/response/client-response'
import type { Reply } from '@thv/gateway/response/reply'
import { isLogLevel } from '@thv/mcp/envelope'
import { errorResponse, type JsonObject, type RequestId, resultResponse, serialise, spliceId } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedNotification, ParsedRequest, ParsedResponse } from '@thv/mcp/parse-body'
import { isLegacyVersion } from '@thv/mcp/versions'
import { errorObjectOf, isRejection, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import { type Greeting, isEraRefusal } from '../process/handshake.ts'
import type { ProcessLink } from '../process/process-connection.ts'
import { isUnavailable, type ProcessUnavailable } from '../process/process-unavailable.ts'
import type { StdioDeps } from '../process/stdio-deps.ts'
import type { ProcessPool } from '../process-pool.ts'
import { LegacyCall } from './legacy-call.ts'
import type { LegacyProcess } from './legacy-process.ts'
import type { LegacySession } from './legacy-session.ts'
import type { Consent } from './process-settings.ts'

export interface LegacyServiceOptions {
  readonly deps: StdioDeps
  readonly pool: ProcessPool
  readonly pipeline: Pipeline
  /** The settings of a session have changed. */
  onChange(session: LegacySession): void
}

/** The answer to an `initialize`; it may be the server's refusal. */
export interface Opened {
  readonly text: string
  readonly isOpen: boolean
}

/** One request of a client, and the way back. */
export interface Inbound {
  readonly context: MessageContext
  readonly request: ParsedRequest
  readonly reply: Reply
  /** The request is over, however. */
  onDone(): void
}

/** The handshake era, whichever HTTP form it comes in: what a client may say, and what becomes of it. */
export class LegacyService {
  readonly #options: LegacyServiceOptions

  constructor(options: LegacyServiceOptions) {
    this.#options = options
  }

  /**
   * Finds the new session a process and answers its `initialize`: a process of its own has answered itself, a shared one was greeted
   * long ago. The version agreed on is in the session afterwards. Of what is not open nothing is left.
   */
  async open(session: LegacySession, context: MessageContext): Promise<Opened | Rejection> {
    const { pool, pipeline } = this.#options
    const { id, message } = session.initialize
    const requested = message.params?.['protocolVersion']
    const refusal = () => pool.eras.rejectionOf('legacy', typeof requested === 'string' ? requested : '')
    if (pool.eras.isRefused('legacy')) return refusal()
    const process = pool.assign(session)
    if (isRejection(process)) return process
    const readiness = await process.slot.ready()
    const greeting = process.slot.greeting
    if (!isUnavailable(readiness) && greeting?.era === 'legacy') {
      session.version = agreedVersion(requested, greeting.version)
      const response = process.slot.isOwn ? greeting.response : sharedResponse(greeting, session.version)
      const text = answerText(response, context, pipeline)
      return typeof text === 'string' ? { text, isOpen: true } : text
    }
    pool.release(session)
    return isUnavailable(readiness) ? refusedOpen(readiness, id, refusal) : refusal()
  }

  async request(session: LegacySession, inbound: Inbound): Promise<void> {
    const { request, reply } = inbound
    const { id, method } = request
    if (method === METHODS.ping) return this.#finish(inbound, resultText(id, {}))
    if (session.calls.has(id)) return this.#reject(inbound, reject('invalid_request', { detail: 'the id is in use' }))
    const process = await this.#ready(session)
    if (isRejection(process)) return this.#reject(inbound, process)
    const { link } = process.slot
    if (link === undefined) return this.#reject(inbound, unavailable('it has just ended'))
    if (SETTINGS.has(method)) return this.#setting(session, inbound, { process, link })
    if (!process.slot.isOwn && method.startsWith(TASKS)) return this.#finish(inbound, errorText(id, reject('method_not_found')))
    const { deps, pipeline } = this.#options
    const call = new LegacyCall({ ...inbound, session, pipeline, config: deps.config, onDone: () => inbound.onDone(), reply })
    call.start(link)
  }

  notified(session: LegacySession, notification: ParsedNotification): void {
    const { method, message, text } = notification
    const link = session.process?.slot.link
    const isOwn = session.process?.slot.isOwn === true
    switch (method) {
      case NOTIFICATIONS.initialized:
        if (session.isInitialized) return
        session.isInitialized = true
        this.#options.onChange(session)
        // A shared process had its handshake when it started.
        if (isOwn) link?.send(text)
        return
      case NOTIFICATIONS.cancelled:
        this.#cancelled(session, message.params)
        return
      case NOTIFICATIONS.progress:
        if (!session.questions.progressed(notification)) this.#options.deps.metrics.dropped('progress', 'foreign_id')
        return
      case NOTIFICATIONS.rootsListChanged:
        // A shared process would ask for roots without a session that could answer.
        if (isOwn) link?.send(text)
        return
      default:
        link?.send(text)
    }
  }

  answered(session: LegacySession, response: ParsedResponse): void {
    if (!session.questions.answered(response)) this.#options.deps.metrics.dropped('response', 'foreign_id')
  }

  async #ready(session: LegacySession): Promise<LegacyProcess | Rejection> {
    const { process } = session
    if (process === undefined || session.hasEnded) return reject('session_not_found')
    const readiness = process.slot.link ?? (await process.slot.ready())
    if (isUnavailable(readiness)) return readiness.rejection
    if (process.slot.greeting?.era !== 'legacy') return this.#options.pool.eras.rejectionOf('legacy', session.version)
    return process
  }

  #cancelled(session: LegacySession, params: JsonObject | undefined): void {
    const id = params?.['requestId']
    const reason = params?.['reason']
    const call = typeof id === 'string' || typeof id === 'number' ? session.calls.get(id) : undefined
    call?.abandon(typeof reason === 'string' ? reason : 'cancelled by the client')
  }

  async #setting(
    session: LegacySession,
    inbound: Inbound,
    { process, link }: { process: LegacyProcess; link: ProcessLink },
  ): Promise<void> {
    const { method, id, message } = inbound.request
    const { level, uri } = message.params ?? {}
    let consent: Consent
    if (method === METHODS.setLevel && isLogLevel(level)) consent = await process.settings.setLevel(session, level, link)
    else if (method === METHODS.resourcesSubscribe && typeof uri === 'string')
      consent = await process.settings.subscribe(session, uri, link)
    else if (method === METHODS.resourcesUnsubscribe && typeof uri === 'string')
      consent = await process.settings.unsubscribe(session, uri, link)
    else return this.#finish(inbound, errorText(id, reject('invalid_params')))
    this.#options.onChange(session)
    if (consent.accepted) return this.#finish(inbound, resultText(id, {}))
    if (isRejection(consent.answer)) this.#reject(inbound, consent.answer)
    else this.#finish(inbound, spliceId(consent.answer.text, id))
  }

  #finish({ reply, onDone }: Inbound, text: string): void {
    reply.finish(text)
    onDone()
  }

  #reject({ reply, request, onDone }: Inbound, rejection: Rejection): void {
    reply.reject(rejection, request.id)
    onDone()
  }
}

/** The client's version, unless the server is older or the client's is unknown. */
function agreedVersion(requested: unknown, server: string): string {
  return isLegacyVersion(requested) && requested <= server ? requested : server
}

/**
 * The answer of a shared process as each of its clients gets it. Tasks are not offered: `tasks/list` would show each client what the
 * others do.
 */
function sharedResponse({ response, capabilities }: Extract<Greeting, { era: 'legacy' }>, version: string): ParsedResponse {
  const text = spliceMember(response.text, ['result', 'protocolVersion'], JSON.stringify(version))
  return { ...response, text: 'tasks' in capabilities ? spliceMember(text, ['result', 'capabilities', 'tasks'], undefined) : text }
}

/** A server that speaks another era is distinguished from one that rejects this client's `initialize`, whose error the client gets. */
function refusedOpen({ rejection, refused }: ProcessUnavailable, id: RequestId, refusal: () => Rejection): Opened | Rejection {
  if (refused === undefined) return rejection
  if (isEraRefusal(refused) || refused.response === undefined) return refusal()
  return { text: spliceId(refused.response.text, id), isOpen: false }
}

function resultText(id: RequestId, result: JsonObject): string {
  return serialise(resultResponse(id, result))
}

function errorText(id: RequestId, rejection: Rejection): string {
  return serialise(errorResponse(id, errorObjectOf(rejection)))
}

const SETTINGS: ReadonlySet<string> = new Set([METHODS.setLevel, METHODS.resourcesSubscribe, METHODS.resourcesUnsubscribe])
const TASKS = 'tasks/'
