import { isThvError, ThvError } from '@thv/kernel/errors'
import type { Dispatcher } from 'undici'
import type { Cancellation } from '../cancellation.ts'
import type { MutableHeaderMap } from '../header-map.ts'
import { OutboundError, outboundError } from './outbound-error.ts'

export interface OutboundRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** Flat name-value pairs. Host, length and connection headers are set by the client. */
  readonly headers: string[]
  readonly body?: Uint8Array | string | null | undefined
  /** `stream` for what stays open without a limit: GET and listen streams. They must not take connections away from requests. */
  readonly purpose?: 'request' | 'stream' | undefined
  /** An AbortSignal, or the exchange whose client the call is for. */
  readonly signal?: Cancellation | undefined
  readonly maxResponseBytes?: number | undefined
  /** Instead of those of the outbound. */
  readonly headersTimeoutMs?: number | undefined
  readonly bodyTimeoutMs?: number | undefined
}

/** Where an answer goes. What a method throws ends the call with that error. */
export interface ResponseSink {
  /** Once, with the final status. The headers belong to the sink. */
  start(status: number, headers: MutableHeaderMap, flow: ResponseFlow): void
  /** After `flow.pause()` a chunk or two may still come. */
  data(chunk: Buffer): void
  end(): void
}

export interface ResponseFlow {
  pause(): void
  resume(): void
}

/** Counts the calls to one backend. */
export interface CallCounter {
  readonly origin: string
  /** Called once, whatever the outcome. */
  settled(): void
}

/** One call on undici's own handler interface: no streams and no promises in between, and `sent` known exactly. */
export class OutboundCall implements Dispatcher.DispatchHandler, ResponseFlow {
  readonly done: Promise<void>
  readonly #counter: CallCounter
  readonly #request: OutboundRequest
  readonly #sink: ResponseSink
  readonly #resolve: () => void
  readonly #reject: (error: unknown) => void
  readonly #limit: number
  #controller: Dispatcher.DispatchController | undefined
  #sent = false
  #answered = false
  #settled = false
  #bytes = 0

  constructor(counter: CallCounter, request: OutboundRequest, sink: ResponseSink) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.done = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#counter = counter
    this.#request = request
    this.#sink = sink
    this.#limit = request.maxResponseBytes ?? Infinity
    request.signal?.addEventListener('abort', this, { once: true })
  }

  pause(): void {
    this.#controller?.pause()
  }

  resume(): void {
    this.#controller?.resume()
  }

  /** The signal aborted. The call rejects at once: undici would wait until the request has a connection. */
  handleEvent(): void {
    this.#fail(abortReason(this.#request.signal, { sent: this.#sent, answered: this.#answered }))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Thrown, not aborted: the connection has seen nothing of the request and stays good.
    if (this.#settled) throw new ThvError('aborted', 'given up before it was sent')
    this.#controller = controller
    this.#sent = true
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: MutableHeaderMap): void {
    if (this.#settled || status < 200) return
    this.#answered = true
    try {
      const length = headers['content-length']
      if (length !== undefined && Number(length) > this.#limit && this.#request.method !== 'HEAD') throw this.#tooLarge()
      this.#sink.start(status, headers, this)
    } catch (error) {
      this.#fail(error)
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return
    this.#bytes += chunk.length
    try {
      if (this.#bytes > this.#limit) throw this.#tooLarge()
      this.#sink.data(chunk)
    } catch (error) {
      this.#fail(error)
    }
  }

  onResponseEnd(): void {
    if (this.#settled) return
    try {
      this.#sink.end()
      if (this.#settle()) this.#resolve()
    } catch (error) {
      this.#fail(error)
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#fail(outboundError(error, this.#counter.origin, { sent: this.#sent, answered: this.#answered }))
  }

  #tooLarge(): OutboundError {
    const message = `${this.#counter.origin} answered with more than ${this.#limit} bytes`
    return new OutboundError('backend_response_too_large', message, { sent: true, answered: true })
  }

  #fail(error: unknown): void {
    if (!this.#settle()) return
    this.#reject(error)
    this.#controller?.abort(error instanceof Error ? error : new Error('given up'))
  }

  #settle(): boolean {
    if (this.#settled) return false
    this.#settled = true
    this.#request.signal?.removeEventListener('abort', this)
    this.#counter.settled()
    return true
  }
}

/** Always code `aborted`, with the reason as cause; a coded reason (a time limit) is passed on as it is. */
export function abortReason(signal: Cancellation | undefined, state: { sent: boolean; answered: boolean }): ThvError {
  const reason: unknown = signal?.reason
  if (isThvError(reason)) return reason
  return new ThvError('aborted', 'the call to the backend was given up', { cause: reason, details: { ...state } })
}
