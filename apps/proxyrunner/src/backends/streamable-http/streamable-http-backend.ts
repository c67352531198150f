import type { Backend, BackendStatus } from '@thv/gateway/backend'
import { AbandonedSessions } from '@thv/gateway/relay/abandoned-sessions'
import { resultOf } from '@thv/gateway/relay/ask'
import type { BackendClient } from '@thv/gateway/relay/backend-client'
import { BackendSessions } from '@thv/gateway/relay/backend-sessions'
import { HttpCalls } from '@thv/gateway/relay/http-calls'
import { HttpStreams } from '@thv/gateway/relay/http-streams'
import { editedAnswer, passOn } from '@thv/gateway/relay/pass-on'
import type { HeldAnswer } from '@thv/gateway/relay/relay-call'
import { HTTP_BACKEND_LIMITS, type HttpBackendLimits } from '@thv/gateway/relay/relay-limits'
import { toolsOverHttp } from '@thv/gateway/relay/tool-list'
import { noteResponse } from '@thv/gateway/response/outcome'
import { RejectedError } from '@thv/gateway/response/rejected-error'
import { afterMessage, type HttpSessionStore, STATEFUL_METHODS } from '@thv/gateway/sessions/session-record'
import type { Clock } from '@thv/kernel/clock'
import type { JsonObject, RequestId } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { withLinks } from '@thv/mcp/url-elicitation'
import { reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { BackendInfo, MessageContext, RequestContext, SessionContext } from '@thv/middleware/pipeline/request-context'
import type { ToolsRequest } from '@thv/middleware/pipeline/tool-source'
import type { SessionRef } from '@thv/store/session-store'
import type { Log } from '@thv/telemetry/log'
import type { BackendLocation } from '../backend-location.ts'
import { LocatedBackend } from '../located-backend.ts'
import { IdsInUse } from './ids-in-use.ts'

export interface StreamableHttpBackendOptions {
  readonly info: BackendInfo
  readonly location: BackendLocation
  readonly pipeline: Pipeline
  readonly store: HttpSessionStore
  readonly clock: Clock
  readonly log: Log
  readonly limits?: Partial<HttpBackendLimits>
  /** False: the backend is not asked again and again whether it is there. */
  readonly watches?: boolean
  readonly onRecovered?: (outcome: 'recovered' | 'lost') => void
}

/**
 * An MCP server that speaks streamable HTTP. Each request goes to it in the era it came in, and its refusals go back as they are; so a
 * client of either era finds what the server itself offers.
 */
export function createStreamableHttpBackend(options: StreamableHttpBackendOptions): Backend {
  return new StreamableHttpBackend(options)
}

/** No caller waits for it. */
const ABANDONED_MS = 10_000

class StreamableHttpBackend implements Backend {
  readonly #options: StreamableHttpBackendOptions
  readonly #calls: HttpCalls
  readonly #streams: HttpStreams
  readonly #sessions: BackendSessions
  readonly #limits: HttpBackendLimits
  readonly #located: LocatedBackend
  readonly #ids = new IdsInUse()
  #sessionCount = 0

  constructor(options: StreamableHttpBackendOptions) {
    const { pipeline, store, clock, log, onRecovered = () => {} } = options
    const limits = { ...HTTP_BACKEND_LIMITS, ...options.limits }
    this.#options = options
    this.#limits = limits
    const located = new LocatedBackend({ ...options, limits })
    this.#located = located
    this.#calls = new HttpCalls({ pipeline, clock, log, limits, onUnreachable: () => located.nudge() })
    this.#streams = new HttpStreams({ pipeline, clock, limits })
    this.#sessions = new BackendSessions({ store, pipeline, clock, log, limits, onRecovered })
    const abandoned = new AbandonedSessions({
      ...{ backend: () => located.client, log, timeoutMs: Math.min(limits.askTimeoutMs, ABANDONED_MS), signal: located.signal },
    })
    store.onEnded(({ value }) => abandoned.end(value))
  }

  get status(): BackendStatus {
    const { store } = this.#options
    store.size().then(
      (size) => {
        this.#sessionCount = size
      },
      () => {}, // a store that does not work shows in every request
    )
    return { ...this.#located.status, sessions: this.#sessionCount, inFlight: this.#calls.inFlight }
  }

  async post(context: MessageContext): Promise<void> {
    const backend = this.#located.ready
    const { received, sessionId } = context
    const { method, kind } = received
    let held: HeldAnswer | undefined
    try {
      const preparing = backend.prepare(context)
      if (preparing !== undefined) await preparing
      if (context.era === 'modern') {
        held = await (method === METHODS.listen ? this.#streams.listen(backend, context) : this.#calls.relay(backend, context))
      } else if (method === METHODS.initialize && kind === 'request') {
        held = await this.#sessions.begin(backend, context)
      } else if (sessionId === undefined) {
        held = await this.#calls.relay(backend, context)
      } else {
        const isAlone = kind === 'request' && this.#options.pipeline.editsStrays
        held = await (isAlone ? this.#useAlone(backend, context, sessionId) : this.#use(backend, context, sessionId))
      }
    } catch (error) {
      throw error instanceof RejectedError && error.rejection.links ? await this.#withLinks(context, error) : error
    }
    if (held !== undefined) this.#passOn(context, held, received.kind === 'request' ? received.id : undefined)
  }

  /** Whether the client shows links is written in its session. */
  async #withLinks({ sessionId, caller }: MessageContext, error: RejectedError): Promise<RejectedError> {
    const client = sessionId === undefined ? undefined : await this.#sessions.clientOf({ id: sessionId, owner: caller.principal })
    return client === undefined ? error : new RejectedError(withLinks(error.rejection, client))
  }

  #use(backend: BackendClient, context: MessageContext, sessionId: string): Promise<HeldAnswer | undefined> {
    const { received, caller } = context
    const ref = { id: sessionId, owner: caller.principal }
    const changesSession = received.method !== undefined && STATEFUL_METHODS.has(received.method)
    return this.#sessions.use({ backend, context, ref }, (backendId) =>
      changesSession ? this.#ask(backend, context, backendId) : this.#calls.relay(backend, context, backendId),
    )
  }

  /** Where lists are filtered, no other request of the session has the id meanwhile. */
  async #useAlone(backend: BackendClient, context: MessageContext, sessionId: string): Promise<HeldAnswer | undefined> {
    const key = this.#ids.claim(context)
    if (key === undefined) throw new RejectedError(reject('invalid_request', { detail: 'the id is in use' }))
    try {
      return await this.#use(backend, context, sessionId)
    } finally {
      this.#ids.release(key)
    }
  }

  async openStream(context: SessionContext): Promise<void> {
    const backend = this.#located.ready
    await backend.prepare(context)
    const { sessionId, lastEventId } = context
    const ref = refOf(context)
    let isFirst = true
    using _ = this.#sessions.keepAlive(ref)
    const held = await this.#sessions.use({ backend, context, ref }, (backendId) => {
      // A session that was initialized again has no earlier events.
      const from = isFirst ? lastEventId : undefined
      isFirst = false
      return this.#streams.get(backend, context, { sessionId, backendId, lastEventId: from })
    })
    if (held !== undefined) this.#passOn(context, held)
  }

  async endSession(context: SessionContext): Promise<void> {
    const backend = this.#located.ready
    await backend.prepare(context)
    const held = await this.#sessions.end({ backend, context, ref: refOf(context) })
    passOn(context, held, undefined)
    if (held.status < 300) await this.#streams.finish(context.sessionId)
  }

  /** Backends usually answer 405, which tells a client that there is no stream. */
  async withoutSession(context: RequestContext): Promise<void> {
    const { exchange } = context
    const backend = this.#located.ready
    await backend.prepare(context)
    const held =
      exchange.method === 'GET'
        ? await this.#streams.get(backend, context)
        : await backend.ask(context, { method: 'DELETE', path: backend.path(exchange), timeoutMs: this.#limits.askTimeoutMs })
    if (held !== undefined) this.#passOn(context, held)
  }

  async tools(request: ToolsRequest): Promise<readonly JsonObject[]> {
    return await toolsOverHttp(this.#located.ready, { request, timeoutMs: this.#limits.askTimeoutMs })
  }

  async drain(signal: AbortSignal): Promise<void> {
    await this.#streams.finishAll()
    await this.#calls.quiet(signal)
  }

  async close(): Promise<void> {
    this.#located.close()
    await this.#streams.finishAll()
    this.#calls.close()
  }

  #passOn(context: RequestContext, held: HeldAnswer, id?: RequestId): void {
    passOn(context, editedAnswer(this.#options.pipeline, context, held), id)
  }

  /** A request that changes the session: the answer is looked at before it is passed on. */
  async #ask(backend: BackendClient, context: MessageContext, backendId: string): Promise<HeldAnswer> {
    const { outgoing, exchange, caller, sessionId = '' } = context
    const { id } = outgoing
    const answer = await backend.ask(context, {
      method: 'POST',
      path: backend.path(exchange),
      set: { 'mcp-session-id': backendId, 'last-event-id': undefined },
      body: outgoing.text,
      timeoutMs: this.#limits.askTimeoutMs,
      ...(id !== undefined && { id }),
    })
    if (answer.response !== undefined) noteResponse(context, answer.response, this.#options.pipeline)
    const isAccepted = id === undefined ? answer.status < 300 : resultOf(answer) !== undefined
    if (isAccepted) await this.#sessions.change({ id: sessionId, owner: caller.principal }, (session) => afterMessage(session, outgoing))
    delete answer.headers['mcp-session-id']
    return answer
  }
}

function refOf({ sessionId, caller }: SessionContext): SessionRef {
  return { id: sessionId, owner: caller.principal }
}
