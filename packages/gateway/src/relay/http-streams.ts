import type { OutboundRequest } from '@thv/http/outbound/outbound-call'
import type { Clock } from '@thv/kernel/clock'
import { META } from '@thv/mcp/envelope'
import { HEADERS } from '@thv/mcp/header-names'
import { type RequestId, resultResponse, serialise } from '@thv/mcp/json-rpc'
import { NOTIFICATIONS } from '@thv/mcp/methods'
import { messageFrame } from '@thv/mcp/sse-encoder'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext, RequestContext } from '@thv/middleware/pipeline/request-context'
import { editedFrames } from './answer-frames.ts'
import type { BackendClient } from './backend-client.ts'
import type { HeldAnswer } from './relay-call.ts'
import type { HttpBackendLimits } from './relay-limits.ts'
import { type StreamOptions, StreamRelay } from './stream-relay.ts'

export interface HttpStreamsOptions {
  readonly pipeline: Pipeline
  readonly clock: Clock
  readonly limits: HttpBackendLimits
}

export interface StreamRequest {
  /** The client's id of the session; with it a new stream takes the place of the old one. */
  readonly sessionId?: string
  readonly backendId?: string
  readonly lastEventId?: string | undefined
}

/** The signal that lets a backend notice that the old stream is gone. */
const CONFLICT_WAITS_MS = [50, 150, 400, 900]

/** Streams that stay open: of GET, and of modern listens. They have connections of their own and no limit of time. */
export class HttpStreams {
  readonly #options: HttpStreamsOptions
  readonly #open = new Map<StreamRelay, string | undefined>()

  constructor(options: HttpStreamsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#open.size
  }

  /** The returned response has not been passed on, as with `HttpCalls.relay`. */
  async get(backend: BackendClient, context: RequestContext, request: StreamRequest = {}): Promise<HeldAnswer | undefined> {
    const send = () => this.#get(backend, context, request)
    let held = await send()
    if (held?.status === 401 && (await backend.renewCredentials(context))) held = await send()
    // The backend still holds the stream of a client that has gone, or may have: the newest stream counts.
    for (const waitMs of CONFLICT_WAITS_MS) {
      if (held?.status !== 409 || request.sessionId === undefined) break
      await this.finish(request.sessionId)
      await this.#options.clock.sleep(waitMs)
      held = await send()
    }
    return held
  }

  #get(backend: BackendClient, context: RequestContext, request: StreamRequest): Promise<HeldAnswer | undefined> {
    const { pipeline } = this.#options
    const { exchange } = context
    const { backendId, lastEventId, sessionId } = request
    const edit = (frames: Buffer) => this.#edited(frames, context)
    return backend.following(backend.path(exchange), async (path) => {
      const relay = this.#relay(context, pipeline.editsStrays ? { edit } : {})
      const headers = backend.headers(context, { [HEADERS.sessionId]: backendId, [HEADERS.lastEventId]: lastEventId })
      return await this.#send(relay, { backend, sessionId, request: { method: 'GET', path, headers } })
    })
  }

  /** A modern `subscriptions/listen`. */
  async listen(backend: BackendClient, context: MessageContext): Promise<HeldAnswer | undefined> {
    const held = await this.#listen(backend, context)
    return held?.status === 401 && (await backend.renewCredentials(context)) ? await this.#listen(backend, context) : held
  }

  #listen(backend: BackendClient, context: MessageContext): Promise<HeldAnswer | undefined> {
    const { pipeline } = this.#options
    const { exchange, outgoing } = context
    const { id, text: body } = outgoing
    return backend.following(backend.path(exchange), async (path) => {
      // Its own result has no list; a response to another request of the client might.
      const edit = (frames: Buffer) => this.#edited(frames, context)
      const relay = this.#relay(context, {
        ...(pipeline.editsStrays && { edit }),
        ...(id !== undefined && { farewell: () => listenResult(id) }),
      })
      const headers = backend.headers(context, { [HEADERS.sessionId]: undefined, [HEADERS.lastEventId]: undefined })
      return await this.#send(relay, { backend, sessionId: undefined, request: { method: 'POST', path, headers, body } })
    })
  }

  #edited(frames: Buffer, context: RequestContext): Buffer {
    const { pipeline } = this.#options
    if (frames.includes(NOTIFICATIONS.toolsListChanged)) pipeline.toolsChanged()
    return editedFrames(frames, (data) => pipeline.strayResponseText(context, data))
  }

  /** Ends all, each at the end of a frame. */
  async finishAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((relay) => relay.finish()))
  }

  /** Ends those of one session. */
  async finish(sessionId: string): Promise<void> {
    const relays = [...this.#open].filter(([, id]) => id === sessionId)
    await Promise.all(relays.map(([relay]) => relay.finish()))
  }

  #relay(context: RequestContext, options: Pick<StreamOptions, 'edit' | 'farewell'>): StreamRelay {
    const { clock, limits, pipeline } = this.#options
    const onStart = () => {
      context.endStream = () => {
        void relay.finish()
        return true
      }
      pipeline.streaming(context)
    }
    const relay = new StreamRelay(context.exchange, { clock, maxFrameBytes: limits.frameBytes, onStart, ...options })
    return relay
  }

  async #send(relay: StreamRelay, { backend, sessionId, request }: Sending): Promise<HeldAnswer | undefined> {
    this.#open.set(relay, sessionId)
    try {
      await backend.target.send({ ...request, purpose: 'stream', signal: relay.signal, bodyTimeoutMs: 0 }, relay)
    } catch (error) {
      if (!relay.failed()) throw error
    } finally {
      this.#open.delete(relay)
    }
    return relay.held
  }
}

interface Sending {
  readonly backend: BackendClient
  readonly sessionId: string | undefined
  readonly request: OutboundRequest
}

function listenResult(id: RequestId): string {
  return messageFrame(serialise(resultResponse(id, { resultType: 'complete', _meta: { [META.subscriptionId]: id } })))
}
