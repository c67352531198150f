import type { MutableHeaderMap } from '@thv/http/header-map'
import type { ResponseFlow, ResponseSink } from '@thv/http/outbound/outbound-call'
import type { Exchange } from '@thv/http/server/exchange'
import { openSse, type SseWriter } from '@thv/http/server/sse-writer'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { ByteAccumulator } from '@thv/mcp/byte-accumulator'
import { CallCancellation } from './call-cancellation.ts'
import { encodedAnswer, isEncoded } from './encoded-answer.ts'
import { type HeldAnswer, isEventStream } from './relay-call.ts'
import { FrameSplitter } from './sse-frames.ts'

export interface StreamOptions {
  readonly clock: Clock
  /** One event must fit into this. */
  readonly maxFrameBytes: number
  /** The backend's answer is a stream, and the client's has begun. */
  readonly onStart?: (() => void) | undefined
  /** Looks at whole frames before they are passed on. */
  readonly edit?: ((frames: Buffer) => Buffer) | undefined
  /** The last frame when the stream is ended from this side. */
  readonly farewell?: (() => string) | undefined
}

/** Answers that are no streams are small. */
const MAX_HELD = 1024 * 1024
const NOTHING = Buffer.alloc(0)

/**
 * A stream that stays open: of a GET, or of a modern `subscriptions/listen`. Frames are passed on whole and with back-pressure, and a
 * comment now and then keeps the connection alive. Always ends at a frame boundary.
 */
export class StreamRelay implements ResponseSink {
  /** Set when the backend's answer is no stream. */
  held: HeldAnswer | undefined
  readonly signal = new CallCancellation()
  readonly #exchange: Exchange
  readonly #options: StreamOptions
  readonly #body = new ByteAccumulator()
  readonly #splitter: FrameSplitter
  #writer: SseWriter | undefined
  #flow: ResponseFlow | undefined
  #status = 0
  #headers: MutableHeaderMap = {}
  #waits = false

  constructor(exchange: Exchange, options: StreamOptions) {
    this.#exchange = exchange
    this.#options = options
    this.#splitter = new FrameSplitter({ maxHeldBytes: options.maxFrameBytes, onLarge: 'fail' })
    exchange.addEventListener('abort', this)
    if (exchange.aborted) this.handleEvent()
  }

  /** The client went away: the stream has no reader, and the next client opens it again. */
  handleEvent(): void {
    this.signal.cancel(this.#exchange.reason)
  }

  start(status: number, headers: MutableHeaderMap, flow: ResponseFlow): void {
    this.#status = status
    this.#headers = headers
    this.#flow = flow
    if (status !== 200 || !isEventStream(headers)) return
    if (isEncoded(headers)) throw encodedAnswer()
    this.#writer = openSse(this.#exchange, { clock: this.#options.clock })
    this.#options.onStart?.()
  }

  data(chunk: Buffer): void {
    if (this.#writer === undefined) {
      if (this.#body.length + chunk.length > MAX_HELD) throw new ThvError('message_too_large', `an answer is over ${MAX_HELD} bytes`)
      this.#body.append(chunk)
      return
    }
    const frames = this.#splitter.push(chunk)
    if (frames === undefined) return
    this.#writer.send(this.#options.edit?.(frames) ?? frames)
    if (this.#writer.pending > 0 && !this.#waits) void this.#waitFor(this.#writer)
  }

  end(): void {
    if (this.#writer === undefined) this.held = { status: this.#status, headers: this.#headers, body: this.#body.take(NOTHING) }
    else void this.#writer.end()
  }

  /** Ends it from this side, with a proper farewell where there is one. */
  async finish(): Promise<void> {
    const { farewell } = this.#options
    if (farewell !== undefined) this.#writer?.send(farewell())
    const ended = this.#writer?.end()
    this.signal.cancel(new ThvError('aborted', 'the stream was ended'))
    await ended
  }

  /** True when the client's stream has ended. */
  failed(): boolean {
    if (this.#writer !== undefined) void this.#writer.end()
    return this.#writer !== undefined || this.#exchange.closed
  }

  async #waitFor(writer: SseWriter): Promise<void> {
    this.#waits = true
    this.#flow?.pause()
    try {
      await writer.ready()
    } catch {
      // The client is gone, which ends the call too.
    }
    this.#waits = false
    this.#flow?.resume()
  }
}
