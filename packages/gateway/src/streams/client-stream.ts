import type { Exchange } from '@thv/http/server/exchange'
import type { HeaderPairs } from '@thv/http/server/respond'
import { openSse, type SendOptions, type SseWriter } from '@thv/http/server/sse-writer'
import type { Clock } from '@thv/kernel/clock'
import type { EventLog, StreamId } from '@thv/mcp/event-log'
import type { SseEvent } from '@thv/mcp/sse-decoder'
import { encodeEvent, messageFrame, primingFrame, retryFrame } from '@thv/mcp/sse-encoder'

export interface StreamDeps {
  readonly clock: Clock
  readonly metrics: StreamMetrics
}

export interface StreamMetrics {
  /** A frame that a slow client never received. */
  dropped(kind: 'notification' | 'progress' | 'log', reason: 'slow_client'): void
}

/** A client's stream as back-pressure sees it. */
export interface Taker {
  /** Frames that wait for the client. */
  readonly pending: number
  ready(signal: AbortSignal): Promise<void>
  /** The client did not keep up the last time somebody waited for it; it is not waited for again until it has caught up. */
  isSlow: boolean
  /** Not waited for before this moment. */
  holdableAt: number
}

/** `stored`: the client is not connected, but receives it when it comes back. */
export type Delivery = 'sent' | 'stored' | 'lost'

/**
 * A stream of events to one client, the logical one: with an event log it outlives the connections that carry it. Frames that a slow
 * client leaves waiting are bounded: progress goes first, then logs; a client that does not even take its answers is cut off.
 */
export class ClientStream implements Taker {
  isSlow = false
  holdableAt = Number.NEGATIVE_INFINITY
  readonly #env: StreamDeps
  readonly #events: EventLog | undefined
  readonly #id: StreamId | undefined
  #writer: SseWriter | undefined
  /** That carries the stream now. */
  #exchange: Exchange | undefined
  #hasEnded = false

  /** Without a log there is nothing to come back to, and events have no ids. */
  constructor(env: StreamDeps, events?: EventLog) {
    this.#env = env
    this.#events = events
    this.#id = events?.open()
  }

  get id(): StreamId | undefined {
    return this.#id
  }

  /** A client is connected. */
  get isOpen(): boolean {
    return this.#writer !== undefined && !this.#writer.closed
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  get pending(): number {
    return this.#writer?.pending ?? 0
  }

  ready(signal: AbortSignal): Promise<void> {
    return this.#writer?.ready(signal) ?? Promise.resolve()
  }

  /** The newest connection carries the stream; the one before is ended at a frame boundary. */
  connect(exchange: Exchange, { headers = [], missed }: { headers?: HeaderPairs; missed?: readonly SseEvent[] } = {}): void {
    const before = this.#writer
    this.#exchange = exchange
    this.#writer = openSse(exchange, {
      clock: this.#env.clock,
      headers,
      maxFrames: MAX_FRAMES,
      onDrop: (kind) => this.#env.metrics.dropped(kind === 'message' ? 'notification' : kind, 'slow_client'),
    })
    this.isSlow = false
    void before?.end()
    if (missed === undefined) this.#prime()
    else for (const event of missed) this.#writer.send(encodeEvent(event))
  }

  /** Ends this connection at a frame boundary, if it still carries the stream. The stream itself goes on: the client can come back. */
  disconnect(exchange: Exchange): void {
    if (this.#exchange === exchange) void this.#writer?.end()
  }

  send(text: string, options: SendOptions = {}): Delivery {
    if (this.#hasEnded) return 'lost'
    const frame = this.#frame(text, options)
    const outcome = frame === undefined ? 'closed' : (this.#writer?.send(frame, options) ?? 'closed')
    if (outcome !== 'closed' && outcome !== 'overflow') return 'sent'
    return this.#events !== undefined && options.kind !== 'progress' ? 'stored' : 'lost'
  }

  /** A frame that is no message, such as the `endpoint` event. */
  sendEvent(event: SseEvent): void {
    this.#writer?.send(encodeEvent(event))
  }

  /** Nothing follows on this connection; the client is to come back with this id. Without one, as older clients choke on it, with the one it has. */
  comeAgain(afterMs: number, id: string | undefined): void {
    this.#writer?.send(id === undefined ? retryFrame(afterMs) : primingFrame(id, afterMs))
    this.end()
  }

  /** Nothing will follow. */
  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    if (this.#id !== undefined) this.#events?.end(this.#id)
    void this.#writer?.end()
  }

  /** Progress is worth nothing to who comes back later, so it is neither kept nor given an id. */
  #frame(text: string, { kind }: SendOptions): string | undefined {
    if (this.#events === undefined || this.#id === undefined || kind === 'progress') return messageFrame(text)
    const event = this.#events.append(this.#id, text)
    return event === undefined ? undefined : encodeEvent(event)
  }

  #prime(): void {
    const event = this.#id === undefined ? undefined : this.#events?.prime(this.#id)
    if (event !== undefined) this.#writer?.send(encodeEvent(event))
  }
}

/** As many as a server can put into one chunk of its pipe: between two chunks the pipe can be held. */
const MAX_FRAMES = 1_024
