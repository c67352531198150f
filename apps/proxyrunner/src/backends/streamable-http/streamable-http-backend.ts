import type { SessionUse, Upstream, UpstreamStatus } from '@thv/gateway/backend'
import { AbandonedSessions } from '@thv/gateway/relay/abandoned-sessions'
import { resultOf } from '@thv/gateway/relay/ask'
import { Backend } from '@thv/gateway/relay/backend-client'
import { BackendMonitor } from '@thv/gateway/relay/backend-monitor'
import { LegacySessions } from '@thv/gateway/relay/backend-sessions'
import { HttpCalls } from '@thv/gateway/relay/http-calls'
import { HttpStreams } from '@thv/gateway/relay/http-streams'
import { passOn } from '@thv/gateway/relay/pass-on'
import type { HeldAnswer } from '@thv/gateway/relay/relay-call'
import { HTTP_UPSTREAM_LIMITS, type HttpUpstreamLimits } from '@thv/gateway/relay/relay-limits'
import { unavailable } from '@thv/gateway/response/backend-rejection'
import { Refused } from '@thv/gateway/response/rejected-error'
import { afterMessage, type HttpSessionStore, STATEFUL_METHODS } from '@thv/gateway/sessions/session-record'
import type { Exchange } from '@thv/http/server/exchange'
import type { Clock } from '@thv/kernel/clock'
import { METHODS } from '@thv/mcp/methods'
import type { Chain } from '@thv/middleware/pipeline/pipeline'
import type { RequestContext } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import type { BackendPlace } from '../backend-location.ts'

export interface HttpUpstreamOptions {
  readonly place: BackendPlace
  readonly chain: Chain
  readonly store: HttpSessionStore
  readonly clock: Clock
  readonly log: Log
  readonly limits?: Partial<HttpUpstreamLimits>
  /** False: the backend is not asked again and again whether it is there. */
  readonly watches?: boolean
  readonly onRecovered?: (outcome: 'recovered' | 'lost') => void
}

/**
 * An MCP server that speaks streamable HTTP. Each request goes to it in the era it came in, and its refusals go back as they are; so a
 * client of either era finds what the server itself offers.
 */
export function createHttpUpstream(options: HttpUpstreamOptions): Upstream {
  return new HttpUpstream(options)
}

/** Nobody waits for it. */
const ABANDONED_MS = 10_000

class HttpUpstream implements Upstream {
  readonly #options: HttpUpstreamOptions
  readonly #calls: HttpCalls
  readonly #streams: HttpStreams
  readonly #sessions: LegacySessions
  readonly #limits: HttpUpstreamLimits
  readonly #closing = new AbortController()
  #backend: Backend | undefined
  #monitor: BackendMonitor | undefined
  #generation = 0
  #sessionCount = 0

  constructor(options: HttpUpstreamOptions) {
    const { place, chain, store, clock, log, onRecovered = () => {} } = options
    const limits = { ...HTTP_UPSTREAM_LIMITS, ...options.limits }
    this.#options = options
    this.#limits = limits
    this.#calls = new HttpCalls({ chain, clock, log, limits, onUnreachable: () => this.#monitor?.nudge() })
    this.#streams = new HttpStreams({ chain, clock, limits })
    this.#sessions = new LegacySessions({ store, clock, log, limits, onRecovered })
    const abandoned = new AbandonedSessions({
      ...{ backend: () => this.#backend, log, timeoutMs: Math.min(limits.askTimeoutMs, ABANDONED_MS), signal: this.#closing.signal },
    })
    store.onEnded(({ value }) => abandoned.end(value))
    place.onChange(() => this.#placed())
    this.#placed()
  }

  get status(): UpstreamStatus {
    const { place, store } = this.#options
    const monitor = this.#monitor?.state
    store.size().then(
      (size) => {
        this.#sessionCount = size
      },
      () => {}, // a store that does not work shows in every request
    )
    return {
      ready: place.state.ready && monitor?.alive === true,
      message: place.state.ready ? (monitor?.message ?? 'the backend has no address yet') : place.state.message,
      eras: monitor?.eras,
      versions: monitor?.versions,
      sessions: this.#sessionCount,
      inFlight: this.#calls.inFlight,
    }
  }

  async post(context: RequestContext): Promise<void> {
    const backend = this.#ready()
    const { exchange, received, principal, sessionId } = context
    const { method, kind } = received
    let held: HeldAnswer | undefined
    if (context.era === 'modern') {
      held = await (method === METHODS.listen ? this.#streams.listen(backend, context) : this.#calls.relay(backend, context))
    } else if (method === METHODS.initialize && kind === 'request') {
      held = await this.#sessions.begin(backend, context)
    } else if (sessionId === undefined) {
      held = await this.#calls.relay(backend, context)
    } else {
      const ref = { id: sessionId, owner: principal }
      const changesSession = method !== undefined && STATEFUL_METHODS.has(method)
      held = await this.#sessions.use({ backend, exchange, ref }, (backendId) =>
        changesSession ? this.#ask(backend, context, backendId) : this.#calls.relay(backend, context, backendId),
      )
    }
    if (held !== undefined) passOn(exchange, held, received.kind === 'request' ? received.id : undefined)
  }

  async openStream(exchange: Exchange, { sessionId, principal, lastEventId }: SessionUse): Promise<void> {
    const backend = this.#ready()
    const ref = { id: sessionId, owner: principal }
    let isFirst = true
    using _ = this.#sessions.keepAlive(ref)
    const held = await this.#sessions.use({ backend, exchange, ref }, (backendId) => {
      // A session that was begun anew has no events of before.
      const from = isFirst ? lastEventId : undefined
      isFirst = false
      return this.#streams.get(backend, exchange, { principal, sessionId, backendId, lastEventId: from })
    })
    if (held !== undefined) passOn(exchange, held, undefined)
  }

  async endSession(exchange: Exchange, { sessionId, principal }: SessionUse): Promise<void> {
    const held = await this.#sessions.end({ backend: this.#ready(), exchange, ref: { id: sessionId, owner: principal } })
    passOn(exchange, held, undefined)
    if (held.status < 300) await this.#streams.finish(sessionId)
  }

  /** Usually refused with 405, which tells a client that there is nothing to be had; that is the backend's to say. */
  async withoutSession(exchange: Exchange, principal: string): Promise<void> {
    const backend = this.#ready()
    const held =
      exchange.method === 'GET'
        ? await this.#streams.get(backend, exchange, { principal })
        : await backend.ask({
            method: 'DELETE',
            path: backend.path(exchange),
            headers: backend.headers(exchange, { principal }, {}),
            timeoutMs: this.#limits.askTimeoutMs,
          })
    if (held !== undefined) passOn(exchange, held, undefined)
  }

  async drain(signal: AbortSignal): Promise<void> {
    await this.#streams.finishAll()
    await this.#calls.quiet(signal)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#streams.finishAll()
    this.#calls.close()
  }

  #ready(): Backend {
    if (this.#backend === undefined) throw new Refused(unavailable('it is being started'))
    return this.#backend
  }

  /** A request that changes the session: the answer is looked at before it is passed on. */
  async #ask(backend: Backend, context: RequestContext, backendId: string): Promise<HeldAnswer> {
    const { outgoing, exchange, principal, sessionId = '' } = context
    const { id } = outgoing
    const answer = await backend.ask({
      method: 'POST',
      path: backend.path(exchange),
      headers: backend.headers(exchange, context, { 'mcp-session-id': backendId, 'last-event-id': undefined }),
      body: outgoing.text,
      timeoutMs: this.#limits.askTimeoutMs,
      ...(id !== undefined && { id }),
    })
    const isAccepted = id === undefined ? answer.status < 300 : resultOf(answer) !== undefined
    if (isAccepted) await this.#sessions.change({ id: sessionId, owner: principal }, (session) => afterMessage(session, outgoing))
    delete answer.headers['mcp-session-id']
    return answer
  }

  #placed(): void {
    const { place, chain, clock, log, watches = true } = this.#options
    const { current, state } = place
    if (state.generation !== this.#generation) {
      this.#generation = state.generation
      this.#monitor?.restarted()
    }
    if (current === undefined || this.#backend !== undefined) return
    this.#backend = new Backend({ ...current, chain, clock })
    const { checkIntervalMs: intervalMs, checkTimeoutMs: timeoutMs, checkThreshold: threshold } = this.#limits
    this.#monitor = new BackendMonitor({ backend: this.#backend, clock, log, intervalMs, timeoutMs, threshold, watches })
    void this.#monitor.run(this.#closing.signal)
  }
}
