import type { Cancellation } from '../cancellation.ts'
import { connectionTokens, type HeaderMap, HOP_BY_HOP, type MutableHeaderMap } from '../header-map.ts'
import type { Exchange } from '../server/exchange.ts'
import type { Target } from './outbound.ts'
import type { OutboundRequest, ResponseFlow, ResponseSink } from './outbound-call.ts'
import { OutboundError } from './outbound-error.ts'

export interface ForwardOptions
  extends Pick<OutboundRequest, 'body' | 'purpose' | 'maxResponseBytes' | 'headersTimeoutMs' | 'bodyTimeoutMs'> {
  readonly target: Target
  /** With its query; the client's own unless given. */
  readonly path?: string
  /** Names in lower case, set over what the client sent; undefined takes one away. Credentials for the backend come here. */
  readonly set?: HeaderMap
  /** The exchange itself when a client that goes away cancels its call; something else when it does not (legacy MCP). */
  readonly signal?: Cancellation | undefined
  /** Sees status and headers before the client does, and may edit the headers. What it throws ends the call. */
  readonly onResponse?: (status: number, headers: MutableHeaderMap) => void
}

export interface ForwardResult {
  readonly status: number
  readonly bytes: number
}

/**
 * Passes the request on and the answer back, chunk by chunk, as fast as the client reads. As `Target.send` it rejects when no complete
 * answer came: while nothing has been written to the client (`response.headersSent` is false) the caller answers; afterwards the
 * client's connection has been cut, so that it sees that the answer is not whole. When the client has gone and the signal does not end
 * the call, the rest of the answer is read and thrown away.
 */
export async function forward(exchange: Exchange, options: ForwardOptions): Promise<ForwardResult> {
  const { target, path = exchange.target, onResponse, set, ...rest } = options
  const sink = new ExchangeSink(exchange, onResponse)
  try {
    await target.send({ ...rest, method: exchange.method, path, headers: forwardedHeaders(exchange.headers, set) }, sink)
    return { status: sink.status, bytes: sink.bytes }
  } catch (error) {
    if (exchange.response.headersSent) exchange.destroy(error)
    throw error
  }
}

/** Headers that are never passed on: hop-by-hop headers, headers of the client's connection, and headers with claims about the client. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'content-length', // set by the client for the body it sends
  'expect',
  'forwarded',
  'host',
  'origin',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-proto',
  'x-real-ip',
])

/**
 * From the parsed headers, not the raw ones: the backend must see what was checked, and of two Authorization headers only one was.
 */
export function forwardedHeaders(headers: HeaderMap, set?: HeaderMap): string[] {
  const named = connectionTokens(headers['connection'])
  const pairs: string[] = []
  for (const name in headers) {
    if (NOT_FORWARDED.has(name) || named?.has(name) || (set !== undefined && Object.hasOwn(set, name))) continue
    append(pairs, name, headers[name])
  }
  if (set !== undefined) for (const name in set) append(pairs, name, set[name])
  return pairs
}

/** The headers of an answer as they go to the client. */
export function returnedHeaders(headers: HeaderMap): string[] {
  const named = connectionTokens(headers['connection'])
  const pairs: string[] = []
  for (const name in headers) if (!HOP_BY_HOP.has(name) && !named?.has(name)) append(pairs, name, headers[name])
  return pairs
}

function append(pairs: string[], name: string, value: string | string[] | undefined): void {
  if (typeof value === 'string') pairs.push(name, value)
  else if (value !== undefined) for (const one of value) pairs.push(name, one)
}

function flushHeaders(sink: ExchangeSink): void {
  sink.flushHeaders()
}

class ExchangeSink implements ResponseSink {
  status = 0
  bytes = 0
  readonly #exchange: Exchange
  readonly #onResponse: ForwardOptions['onResponse']
  #flow: ResponseFlow | undefined
  #listening = false

  constructor(exchange: Exchange, onResponse: ForwardOptions['onResponse']) {
    this.#exchange = exchange
    this.#onResponse = onResponse
  }

  start(status: number, headers: MutableHeaderMap, flow: ResponseFlow): void {
    this.status = status
    this.#flow = flow
    this.#onResponse?.(status, headers)
    if (this.#exchange.closed) return
    try {
      this.#exchange.response.writeHead(status, returnedHeaders(headers))
    } catch (cause) {
      const message = 'the backend answered with a status or header that cannot be passed on'
      throw new OutboundError('backend_protocol', message, { sent: true, answered: true, cause })
    }
    // The body mostly comes with the headers and goes out with them in one piece; the first event of a stream may be long in coming.
    if (headers['content-length'] === undefined) process.nextTick(flushHeaders, this)
  }

  flushHeaders(): void {
    if (this.bytes === 0 && !this.#exchange.closed && !this.#exchange.response.writableEnded) this.#exchange.response.flushHeaders()
  }

  data(chunk: Buffer): void {
    this.bytes += chunk.length
    const { response, closed } = this.#exchange
    if (closed || response.write(chunk)) return
    this.#flow?.pause()
    if (this.#listening) return
    this.#listening = true
    const resume = () => this.#flow?.resume()
    // A client that goes away never drains; nothing would end a call that stays paused.
    response.on('drain', resume).on('close', resume)
  }

  end(): void {
    if (!this.#exchange.closed) this.#exchange.response.end()
  }
}
