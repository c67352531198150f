import { connectionTokens, type HeaderMap, HOP_BY_HOP } from '../header-map.ts'
import type { ResponseFlow } from '../outbound/outbound-call.ts'
import { OutboundError } from '../outbound/outbound-error.ts'
import type { Exchange } from './exchange.ts'

/**
 * The answer to a client that comes from a backend, whole or in pieces. Once the client has gone, whatever is written goes nowhere,
 * and the backend is not held up.
 */
export class ClientAnswer {
  readonly #exchange: Exchange
  #flow: ResponseFlow | undefined
  #written = false

  constructor(exchange: Exchange) {
    this.#exchange = exchange
  }

  get begun(): boolean {
    return this.#exchange.begun
  }

  get closed(): boolean {
    return this.#exchange.closed
  }

  /** Everything at once, with its length. */
  whole(status: number, headers: HeaderMap, body: Uint8Array): void {
    if (this.closed) return
    const pairs = pairsOf(headers)
    if (status !== 204 && status !== 304) pairs.push('content-length', String(body.byteLength))
    this.#writeHead(status, pairs)
    this.#exchange.bytesSent += body.byteLength
    this.#exchange.response.end(body)
  }

  /** For what follows in pieces. The first mostly comes with the head and goes out with it; but it may also be long in coming. */
  begin(status: number, headers: HeaderMap, extra: readonly string[] = []): void {
    if (this.closed) return
    const pairs = pairsOf(headers)
    this.#writeHead(status, extra.length === 0 ? pairs : pairs.concat(extra))
    process.nextTick(flushHead, this)
  }

  flushHead(): void {
    if (!this.#written && !this.closed && !this.#exchange.response.writableEnded) this.#exchange.response.flushHeaders()
  }

  /** Makes the backend wait when the client is slower. */
  write(bytes: Uint8Array, flow: ResponseFlow | undefined): void {
    this.#written = true
    if (!this.closed) this.#exchange.bytesSent += bytes.byteLength
    if (this.closed || this.#exchange.response.write(bytes) || flow === undefined) return
    flow.pause()
    if (this.#flow !== undefined) return
    this.#flow = flow
    // A client that goes away never drains, and nothing would end a call that stays paused.
    const resume = () => this.#flow?.resume()
    this.#exchange.response.on('drain', resume).on('close', resume)
  }

  end(): void {
    if (!this.closed) this.#exchange.response.end()
  }

  /** An answer that cannot be completed: the client must see that it was not. */
  cut(reason: unknown): void {
    this.#exchange.destroy(reason)
  }

  #writeHead(status: number, pairs: string[]): void {
    try {
      this.#exchange.response.writeHead(status, pairs)
    } catch (cause) {
      const message = 'the backend answered with a status or header that cannot be passed on'
      throw new OutboundError('backend_protocol', message, { sent: true, answered: true, cause })
    }
  }
}

function flushHead(answer: ClientAnswer): void {
  answer.flushHead()
}

/** Without the length: it may change on the way. In one pass, as this is done for every answer. */
function pairsOf(headers: HeaderMap): string[] {
  const named = connectionTokens(headers['connection'])
  const pairs: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || NOT_RETURNED.has(name) || named?.has(name) || name.startsWith(CROSS_ORIGIN)) continue
    if (typeof value === 'string') pairs.push(name, value)
    else for (const one of value) pairs.push(name, one)
  }
  return pairs
}

/** A cookie of the backend would be one of this host; what other origins may do here is not for the backend to say. */
const NOT_RETURNED: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'content-length', 'set-cookie'])
const CROSS_ORIGIN = 'access-control-'
