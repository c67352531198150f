import type { Exchange } from '@thv/http/server/exchange'
import { type HeaderPairs, sendEmpty } from '@thv/http/server/respond'
import type { SendOptions } from '@thv/http/server/sse-writer'
import { type RequestId, serialise } from '@thv/mcp/json-rpc'
import { type Rejection, responseOf } from '@thv/mcp/wire-errors'
import type { ClientStream } from '../streams/client-stream.ts'
import type { AcceptedForms } from './accepted-forms.ts'
import { sendMessage } from './send-message.ts'
import { sendRejection } from './send-rejection.ts'

/** The way back to the client for one request. After `finish`, `reject` or `abandon` nothing more is sent. */
export interface Reply {
  /** Something can be sent before the answer. */
  readonly canStream: boolean
  /** The stream of this reply, if it has become one. */
  readonly stream: ClientStream | undefined
  /** The stream that it will be, if it becomes one: its id is known before the client has seen it. */
  readonly reserved?: ClientStream | undefined
  /** Makes it a stream if it can be one; also to keep the connection of a long call open. */
  openStream(): ClientStream | undefined
  /** A message ahead of the answer; false if it cannot be sent. */
  event(text: string, options?: SendOptions): boolean
  finish(text: string): void
  reject(rejection: Rejection, id: RequestId): void
  /** The client does not want the answer any more. */
  abandon(): void
}

export interface HttpReplyOptions {
  readonly exchange: Exchange
  readonly accepts: AcceptedForms
  readonly headers?: HeaderPairs
  openStream(): ClientStream
}

/**
 * The answer to a POST: one JSON body, unless something has to be said first; then it becomes an event stream. Nothing is sent before
 * it is known which, so the common call costs one write.
 */
export class HttpReply implements Reply {
  readonly #options: HttpReplyOptions
  #stream: ClientStream | undefined
  #reserved: ClientStream | undefined
  #isOver = false

  constructor(options: HttpReplyOptions) {
    this.#options = options
  }

  get canStream(): boolean {
    if (this.#isOver) return false
    return this.#stream === undefined ? this.#options.accepts.sse && !this.#options.exchange.closed : this.#stream.isOpen
  }

  get stream(): ClientStream | undefined {
    return this.#stream
  }

  get reserved(): ClientStream | undefined {
    return this.#reserved
  }

  /** Undefined if it cannot become a stream. */
  reserve(): ClientStream | undefined {
    if (this.#stream !== undefined || !this.canStream) return this.#stream
    this.#reserved ??= this.#options.openStream()
    return this.#reserved
  }

  openStream(): ClientStream | undefined {
    if (this.#stream !== undefined || !this.canStream) return this.#stream
    const { exchange, headers } = this.#options
    this.#stream = this.#reserved ?? this.#options.openStream()
    this.#stream.connect(exchange, headers === undefined ? {} : { headers })
    return this.#stream
  }

  event(text: string, options?: SendOptions): boolean {
    const stream = this.#isOver ? undefined : this.openStream()
    return stream !== undefined && stream.send(text, options) !== 'lost'
  }

  finish(text: string, status = 200): void {
    if (this.#isOver) return
    const stream = this.#options.accepts.json ? this.#stream : this.openStream()
    this.#end()
    if (stream !== undefined) {
      stream.send(text)
      stream.end()
    } else sendMessage(this.#options.exchange, text, { status, headers: this.#options.headers ?? [] })
  }

  reject(rejection: Rejection, id: RequestId): void {
    if (this.#isOver) return
    if (this.#stream !== undefined) {
      this.finish(serialise(responseOf(rejection, id)))
      return
    }
    this.#end()
    sendRejection(this.#options.exchange, rejection, id)
  }

  abandon(): void {
    if (this.#isOver) return
    this.#end()
    if (this.#stream !== undefined) this.#stream.end()
    else sendEmpty(this.#options.exchange, 202)
  }

  /** A stream that was never opened has nothing to come back to. */
  #end(): void {
    this.#isOver = true
    if (this.#stream === undefined) this.#reserved?.end()
  }
}
