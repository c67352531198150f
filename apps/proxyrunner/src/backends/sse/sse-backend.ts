import type { Backend, BackendStatus, SseEndpoint, SseMessageContext } from '@thv/gateway/backend'
import { type EndpointConfig, endpointOf } from '@thv/gateway/endpoints/endpoint-url'
import type { BackendClient } from '@thv/gateway/relay/backend-client'
import { CallWatch } from '@thv/gateway/relay/call-watch'
import { passOn } from '@thv/gateway/relay/pass-on'
import { HTTP_BACKEND_LIMITS, type HttpBackendLimits } from '@thv/gateway/relay/relay-limits'
import { rejectionOf, unavailable } from '@thv/gateway/response/backend-rejection'
import { RejectedError } from '@thv/gateway/response/rejected-error'
import { sendText } from '@thv/http/server/respond'
import type { Clock } from '@thv/kernel/clock'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { mintSessionId } from '@thv/mcp/session-id'
import { reject, retryLater } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { BackendInfo, RequestContext } from '@thv/middleware/pipeline/request-context'
import type { ToolsRequest } from '@thv/middleware/pipeline/tool-source'
import type { Log } from '@thv/telemetry/log'
import type { BackendLocation } from '../backend-location.ts'
import { LocatedBackend } from '../located-backend.ts'
import { toolsOverSse } from './own-tool-list.ts'
import { SseClient } from './sse-client.ts'

export interface SseBackendOptions {
  readonly info: BackendInfo
  readonly location: BackendLocation
  readonly pipeline: Pipeline
  readonly clock: Clock
  readonly log: Log
  readonly endpoint: EndpointConfig
  readonly limits?: Partial<HttpBackendLimits>
  readonly maxClients?: number
  readonly watches?: boolean
}

/** An MCP server that speaks HTTP+SSE (2024-11-05). Each client gets a stream of its own to it. */
export function createSseBackend(options: SseBackendOptions): Backend {
  return new SseBackend(options)
}

const DRAIN_POLL_MS = 20

class SseBackend implements Backend {
  readonly streamable = false
  readonly sse: SseEndpoint
  readonly #options: SseBackendOptions
  readonly #limits: HttpBackendLimits
  readonly #located: LocatedBackend
  readonly #watch: CallWatch
  readonly #clients = new Map<string, SseClient>()

  constructor(options: SseBackendOptions) {
    this.#options = options
    this.#limits = { ...HTTP_BACKEND_LIMITS, ...options.limits }
    this.#watch = new CallWatch(options.clock, this.#limits)
    this.sse = {
      open: (context) => this.#open(context),
      message: (context) => this.#message(context),
      reject: async (context, rejection) => {
        const client = this.#find(context)
        sendText(context.exchange, 'Accepted', { status: 202 })
        if (context.received.kind === 'request') client.reject(context.received.id, rejection)
      },
    }
    this.#located = new LocatedBackend({ ...options, limits: this.#limits, era: 'legacy' })
  }

  get status(): BackendStatus {
    return { ...this.#located.status, eras: ['legacy'], sessions: this.#clients.size, inFlight: this.#watch.size }
  }

  /** Not spoken; the gateway does not offer it. */
  async post(): Promise<void> {
    throw new RejectedError(reject('method_not_allowed'))
  }

  async openStream(): Promise<void> {
    throw new RejectedError(reject('method_not_allowed'))
  }

  async endSession(): Promise<void> {
    throw new RejectedError(reject('method_not_allowed'))
  }

  async tools(request: ToolsRequest): Promise<readonly JsonObject[]> {
    const { askTimeoutMs: timeoutMs, frameBytes } = this.#limits
    return await toolsOverSse(this.#located.ready, { request, timeoutMs, frameBytes })
  }

  /** The streams carry the answers to what is under way, so they are the last to go. */
  async drain(signal: AbortSignal): Promise<void> {
    while (this.#watch.size > 0 && !signal.aborted) await this.#options.clock.sleep(DRAIN_POLL_MS, signal).catch(() => undefined) // the loop sees it
    await Promise.all([...this.#clients.values()].map((client) => client.finish(retryLater('draining', 1_000))))
  }

  async close(): Promise<void> {
    this.#located.close()
    this.#watch.close()
    await Promise.all([...this.#clients.values()].map((client) => client.finish(retryLater('draining', 1_000))))
  }

  async #open(context: RequestContext): Promise<void> {
    const { exchange } = context
    const { pipeline, clock, endpoint, maxClients = 10_000 } = this.#options
    const backend = this.#located.ready
    await backend.prepare(context)
    if (this.#clients.size >= maxClients) throw new RejectedError(unavailable('there are too many clients'))
    const { idleMs, frameBytes } = this.#limits
    const open = async (path: string) => {
      const id = mintSessionId()
      const backendUrl = backend.target.seenOrigin + path
      const shared = { id, context, pipeline, clock, watch: this.#watch, idleMs, frameBytes }
      const client = new SseClient({ ...shared, backendUrl, endpoint: endpointOf(exchange, id, endpoint) })
      await this.#stream(backend, client, { context, path })
      return client.held
    }
    let held = await backend.following(backend.path(exchange), open)
    if (held?.status === 401 && (await backend.renewCredentials(context))) held = await backend.following(backend.path(exchange), open)
    if (held !== undefined) passOn(context, held, undefined)
  }

  async #stream(backend: BackendClient, client: SseClient, { context, path }: { context: RequestContext; path: string }): Promise<void> {
    const headers = backend.headers(context, { accept: 'text/event-stream' })
    this.#clients.set(client.id, client)
    const timer = this.#options.clock.setTimer(this.#limits.askTimeoutMs, () => client.tooSlow())
    try {
      await backend.target.send({ method: 'GET', path, headers, purpose: 'stream', signal: client.signal, bodyTimeoutMs: 0 }, client)
    } catch (error) {
      const rejection = error instanceof RejectedError ? error.rejection : rejectionOf(error)
      if (rejection === undefined || !client.lost(rejection)) throw error
      if (!context.exchange.closed) this.#located.nudge()
    } finally {
      timer.cancel()
      this.#clients.delete(client.id)
    }
  }

  async #message(context: SseMessageContext): Promise<void> {
    const client = this.#find(context)
    const backend = this.#located.ready
    await backend.prepare(context)
    const path = client.messagesPath
    if (path === undefined) throw new RejectedError(reject('session_not_found'))
    if (!client.sending(context)) throw new RejectedError(unavailable('too many calls are waiting for it'))
    try {
      const body = context.outgoing.text
      const answer = await backend.ask(context, { method: 'POST', path, body, timeoutMs: this.#limits.askTimeoutMs })
      if (answer.status >= 300) client.notSent(context)
      passOn(context, answer, undefined)
    } catch (error) {
      client.notSent(context)
      throw error
    }
  }

  /** A session of another caller looks like one that does not exist. */
  #find({ sessionId, caller }: SseMessageContext): SseClient {
    const client = this.#clients.get(sessionId)
    if (client?.principal !== caller.principal) throw new RejectedError(reject('session_not_found'))
    return client
  }
}
