import type { ServerResponse } from 'node:http'
import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { Exchange } from './exchange.ts'
import type { HeaderPairs } from './respond.ts'
import { type FrameKind, type OfferOutcome, SseQueue } from './sse-queue.ts'

export type { FrameKind } from './sse-queue.ts'

export interface SseWriterOptions {
  readonly clock?: Clock
  /** A comment is sent after this much silence, so that no intermediary takes the connection for dead. */
  readonly keepAliveMs?: number
  /** Limit of the bytes that wait for a slow client. */
  readonly maxFrames?: number
  readonly maxBytes?: number
  readonly headers?: HeaderPairs
  readonly onDrop?: (kind: FrameKind) => void
  /** How long `end` waits for the client to take what is left before it cuts the connection. */
  readonly endTimeoutMs?: number
}

export interface SendOptions {
  readonly kind?: FrameKind
  /** See Frame.key. */
  readonly key?: string
}

/** `closed`: the client is gone or the stream was ended; `overflow`: the client is so slow that the connection was cut. */
export type SendOutcome = 'written' | 'closed' | OfferOutcome

const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')

/** Begins an event stream: status and headers go out at once. Frames are given as encoded bytes, each with its empty line. */
export function openSse(exchange: Exchange, options: SseWriterOptions = {}): SseWriter {
  return new SseWriter(exchange, options)
}

export class SseWriter {
  readonly #exchange: Exchange
  readonly #response: ServerResponse
  readonly #queue: SseQueue
  readonly #clock: Clock
  readonly #keepAliveMs: number
  readonly #endTimeoutMs: number
  readonly #closed = Promise.withResolvers<void>()
  readonly #waiting: { resolve(): void; reject(reason: unknown): void }[] = []
  #timer: Timer | undefined
  #endTimer: Timer | undefined
  #lastWriteAt: number
  #ended = false

  constructor(exchange: Exchange, options: SseWriterOptions) {
    const { clock = systemClock, keepAliveMs = 15_000, maxFrames = 256, maxBytes = 1 << 20, endTimeoutMs = 5_000 } = options
    this.#exchange = exchange
    this.#response = exchange.response
    this.#clock = clock
    this.#keepAliveMs = keepAliveMs
    this.#endTimeoutMs = endTimeoutMs
    this.#queue = new SseQueue({ maxFrames, maxBytes, onDrop: options.onDrop })
    this.#lastWriteAt = clock.monotonic()
    this.#start(options.headers ?? [])
  }

  /** No more frames are taken. */
  get closed(): boolean {
    return this.#ended || this.#exchange.closed
  }

  /** Frames that wait for the client. */
  get pending(): number {
    return this.#queue.size
  }

  /** Never waits. A source that can wait asks `ready` first. */
  send(frame: Uint8Array | string, { kind = 'message', key }: SendOptions = {}): SendOutcome {
    if (this.closed) return 'closed'
    const bytes = typeof frame === 'string' ? Buffer.from(frame) : frame
    if (this.#queue.size === 0 && !this.#response.writableNeedDrain) {
      this.#write(bytes)
      return 'written'
    }
    const outcome = this.#queue.offer({ bytes, kind, key })
    if (outcome === 'overflow') this.#exchange.destroy(new ThvError('queue_full', 'the client does not read its event stream'))
    return outcome
  }

  /** Resolves when nothing waits for the client any more; rejects with the reason when it is gone, or with the signal's. */
  ready(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    if (this.#exchange.closed) return Promise.reject(goneError())
    if (this.#queue.size === 0 && !this.#response.writableNeedDrain) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
        reject(signal?.reason)
      }
      const forget = () => signal?.removeEventListener('abort', onAbort)
      const waiter = {
        resolve: () => {
          forget()
          resolve()
        },
        reject: (reason: unknown) => {
          forget()
          reject(reason)
        },
      }
      this.#waiting.push(waiter)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** Sends what waits, then ends the stream at a frame boundary. Resolves when it is closed, by whomever. */
  end(): Promise<void> {
    if (!this.#ended) {
      this.#ended = true
      this.#timer?.cancel()
      this.#endTimer = this.#clock.setTimer(this.#endTimeoutMs, () =>
        this.#exchange.destroy(new ThvError('timeout', 'the client did not take the end of its event stream')),
      )
      this.#flush()
    }
    if (this.#exchange.closed) this.#close()
    return this.#closed.promise
  }

  #start(headers: HeaderPairs): void {
    const response = this.#response
    response.on('close', () => this.#close())
    if (this.#exchange.closed) return
    response.on('drain', () => this.#flush())
    response.writeHead(200, ['Content-Type', 'text/event-stream', 'Cache-Control', 'no-store', 'X-Accel-Buffering', 'no', ...headers])
    response.flushHeaders()
    this.#arm(this.#keepAliveMs)
  }

  #write(bytes: Uint8Array): void {
    this.#lastWriteAt = this.#clock.monotonic()
    this.#exchange.bytesSent += bytes.byteLength
    this.#response.write(bytes)
  }

  #flush(): void {
    if (this.#exchange.closed) return
    while (this.#queue.size > 0 && !this.#response.writableNeedDrain) {
      const frame = this.#queue.shift()
      if (frame) this.#write(frame.bytes)
    }
    if (this.#queue.size > 0) return
    if (this.#ended) this.#response.end()
    if (!this.#response.writableNeedDrain) for (const waiter of this.#waiting.splice(0)) waiter.resolve()
  }

  #arm(ms: number): void {
    this.#timer = this.#clock.setTimer(ms, () => this.#keepAlive())
  }

  /** A client that has not taken the last bytes gets no more: the server's stall limit is for it. */
  #keepAlive(): void {
    const silentMs = this.#clock.monotonic() - this.#lastWriteAt
    const due = silentMs >= this.#keepAliveMs
    if (due && !this.#response.writableNeedDrain) this.#write(KEEP_ALIVE)
    this.#arm(due ? this.#keepAliveMs : this.#keepAliveMs - silentMs)
  }

  #close(): void {
    this.#timer?.cancel()
    this.#endTimer?.cancel()
    this.#queue.clear()
    for (const waiter of this.#waiting.splice(0)) waiter.reject(goneError())
    this.#closed.resolve()
  }
}

function goneError(): ThvError {
  return new ThvError('aborted', 'the event stream is closed')
}
