import { HeldBody } from '@thv/gateway/relay/held-body'
import { isEventStream } from '@thv/gateway/relay/relay-call'
import { bytesKind, responseKind } from '@thv/gateway/relay/response-check'
import type { MutableHeaderMap } from '@thv/http/header-map'
import type { ResponseSink } from '@thv/http/outbound/outbound-call'
import { ThvError } from '@thv/kernel/errors'
import type { RequestId } from '@thv/mcp/json-rpc'
import { type ParsedNotification, parseText } from '@thv/mcp/parse-body'
import { SseDecoder, type SseEvent } from '@thv/mcp/sse-decoder'

export interface ByteAnswerOptions {
  readonly id: RequestId
  readonly maxBytes: number
  onNotification(notification: ParsedNotification): void
  /** The response has come on a stream, which has not ended yet. */
  onResponse(): void
}

/** The answer of a modern backend to one request: only its ends are looked at. Notifications before the response are few and small. */
export class ByteAnswer implements ResponseSink {
  status = 0
  headers: MutableHeaderMap = {}
  isStream = false
  /** The response to the request, as it is written. */
  response: string | undefined
  /** An answer that is not a response to the request with status 200. */
  other: Buffer | undefined
  readonly #options: ByteAnswerOptions
  readonly #body = new HeldBody()
  #decoder: SseDecoder | undefined

  constructor(options: ByteAnswerOptions) {
    this.#options = options
  }

  start(status: number, headers: MutableHeaderMap): void {
    this.status = status
    this.headers = headers
    if (status !== 200 || !isEventStream(headers)) return
    const { maxBytes } = this.#options
    this.isStream = true
    this.#decoder = new SseDecoder((event) => this.#take(event), { maxLineBytes: maxBytes, maxEventBytes: maxBytes })
  }

  data(chunk: Buffer): void {
    if (this.#decoder !== undefined) {
      this.#decoder.push(chunk)
      return
    }
    const { maxBytes } = this.#options
    if (this.#body.length + chunk.length > maxBytes) throw new ThvError('message_too_large', `an answer is over ${maxBytes} bytes`)
    this.#body.append(chunk)
  }

  end(): void {
    if (this.isStream) return
    const body = this.#body.take()
    if (this.status === 200 && bytesKind(body, this.#options.id) === 'ours') this.response = body.toString('utf8')
    else this.other = body
  }

  #take({ event, data }: SseEvent): void {
    const { id, onNotification, onResponse } = this.#options
    if (this.response !== undefined || (event !== undefined && event !== 'message') || data === '') return
    if (responseKind(data, id) === 'ours') {
      this.response = data
      onResponse()
      return
    }
    const parsed = parseText(data)
    if (parsed.kind === 'notification') onNotification(parsed)
  }
}
