import type { HeaderMap, MutableHeaderMap } from '@thv/http/header-map'
import type { ResponseSink } from '@thv/http/outbound/outbound-call'
import { ThvError } from '@thv/kernel/errors'
import { type ParsedBody, parseBody, parseText } from '../../parse-body.ts'
import { SseDecoder, type SseEvent } from '../../sse-decoder.ts'

export interface AnswerReaderOptions {
  readonly maxBytes: number
  /** Events of a stream as they come. */
  onEvent(event: SseEvent): void
  /** The headers are there: a stream is open from now on. */
  onStart?(): void
}

/** Takes an HTTP answer in: a stream by its events, everything else as one body. Holds what is known also after the answer broke off. */
export class AnswerReader implements ResponseSink {
  status = 0
  headers: HeaderMap = {}
  /** Of a stream. */
  events = 0
  readonly #options: AnswerReaderOptions
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #decoder: SseDecoder | undefined

  constructor(options: AnswerReaderOptions) {
    this.#options = options
  }

  get isStream(): boolean {
    return this.#decoder !== undefined
  }

  /** Empty when no event had an id. */
  get lastEventId(): string {
    return this.#decoder?.lastEventId ?? ''
  }

  get retry(): number | undefined {
    return this.#decoder?.retry
  }

  /** Of an answer that is no stream: what came, unread. */
  get text(): string {
    return this.#whole.toString('utf8')
  }

  /** Of an answer that is no stream; undefined when it is empty. */
  get body(): ParsedBody | undefined {
    if (this.#bytes === 0) return undefined
    return parseBody(this.#whole, { maxBytes: this.#options.maxBytes, maxDepth: MAX_DEPTH })
  }

  /** Mostly it came in one piece, which is not copied. */
  get #whole(): Buffer {
    const [only] = this.#chunks
    return this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks)
  }

  start(status: number, headers: MutableHeaderMap): void {
    this.status = status
    this.headers = headers
    if (status >= 200 && status < 300 && /^text\/event-stream\b/i.test(String(headers['content-type']))) {
      const { maxBytes, onEvent } = this.#options
      const limits = { maxLineBytes: maxBytes, maxEventBytes: maxBytes }
      this.#decoder = new SseDecoder((event) => {
        this.events++
        onEvent(event)
      }, limits)
    }
    this.#options.onStart?.()
  }

  data(chunk: Buffer): void {
    if (this.#decoder) {
      this.#decoder.push(chunk)
      return
    }
    this.#bytes += chunk.length
    const { maxBytes } = this.#options
    if (this.#bytes > maxBytes)
      throw new ThvError('message_too_large', `an answer of the MCP server is over the limit of ${maxBytes} bytes`)
    this.#chunks.push(chunk)
  }

  end(): void {}
}

/** The message in an event; undefined for events that carry none: other names, and empty data, which only primes a stream. */
export function messageIn(event: SseEvent): ParsedBody | undefined {
  if ((event.event !== undefined && event.event !== 'message') || event.data === '') return undefined
  return parseText(event.data, MAX_DEPTH)
}

/** As everywhere: code that walks a message may recurse. */
const MAX_DEPTH = 128
