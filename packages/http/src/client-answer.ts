import type { Exchange } from './exchange.ts'
import { connectionTokens, type HeaderMap, HOP_BY_HOP } from './header-map.ts'
import type { ResponseFlow } from './outbound-call.ts'
import { OutboundError } from './outbound-error.ts'

/** Told when the head turns out to be one that cannot be sent after `begin` has returned; nothing has been sent then. */
export interface AnswerOwner {
  headFailed(error: OutboundError): void
}

/**
 * The answer to a client that comes from a backend, whole or in pieces. Once the client has gone, whatever is written goes nowhere,
 * and the backend is not held up.
 *
 * An answer that was begun waits for the end of the tick: mostly all of it came in the same packet, and then it goes out in one piece,
 * with its length.
 */
export class ClientAnswer {
  readonly #exchange: Exchange
  readonly #owner: AnswerOwner | undefined
  /** Begun, but not sent. */
  #head: { readonly status: number; readonly pairs: string[] } | undefined
  #first: Uint8Array | undefined
  #flow: ResponseFlow | undefined
  #listens = false

  constructor(exchange: Exchange, owner?: AnswerOwner) {
    this.#exchange = exchange
    this.#owner = owner
  }

  get begun(): boolean {
    return this.#head !== undefined || this.#exchange.begun
  }

  get closed(): boolean {
    return this.#exchange.closed
  }

  /** Everything at once, with its length. */
  whole(status: number, headers: HeaderMap, body: Uint8Array): void {
    if (!this.#exchange.closed) this.#whole(status, pairsOf(headers), body)
  }

  /** For what follows in pieces. They mostly come with the head; but they may also be long in coming. */
  begin(status: number, headers: HeaderMap, extra?: readonly string[]): void {
    if (this.#exchange.closed) return
    const pairs = pairsOf(headers)
    this.#head = { status, pairs: extra === undefined ? pairs : pairs.concat(extra) }
    process.nextTick(flush, this)
  }

  /** Makes the backend wait when the client is slower. */
  write(bytes: Uint8Array, flow: ResponseFlow | undefined): void {
    this.#flow = flow
    if (this.#head !== undefined && this.#first === undefined) {
      this.#first = bytes
      return
    }
    this.#sendBegun()
    this.#write(bytes)
  }

  end(): void {
    const head = this.#head
    if (this.#exchange.closed) return
    if (head === undefined) this.#exchange.response.end()
    else {
      this.#head = undefined
      this.#whole(head.status, head.pairs, this.#first ?? NOTHING)
    }
  }

  /** An answer that cannot be completed: the client must see that it was not. */
  cut(reason: unknown): void {
    this.#head = undefined
    this.#exchange.destroy(reason)
  }

  /** At the end of the tick. */
  flush(): void {
    try {
      this.#sendBegun()
    } catch (error) {
      if (this.#owner === undefined || !(error instanceof OutboundError)) this.#exchange.destroy(error)
      else this.#owner.headFailed(error)
    }
  }

  #sendBegun(): void {
    const head = this.#head
    if (head === undefined) return
    this.#head = undefined
    if (this.#exchange.closed) return
    const first = this.#first
    this.#first = undefined
    this.#writeHead(head.status, head.pairs)
    if (first === undefined) this.#exchange.response.flushHeaders()
    else this.#write(first)
  }

  #write(bytes: Uint8Array): void {
    const flow = this.#flow
    if (this.#exchange.closed || this.#exchange.response.write(bytes) || flow === undefined) return
    flow.pause()
    if (this.#listens) return
    this.#listens = true
    // A client that goes away never drains, and nothing would end a call that stays paused.
    const resume = () => this.#flow?.resume()
    this.#exchange.response.on('drain', resume).on('close', resume)
  }

  #whole(status: number, pairs: string[], body: Uint8Array): void {
    if (status !== 204 && status !== 304) pairs.push('content-length', String(body.byteLength))
    this.#writeHead(status, pairs)
    this.#exchange.response.end(body)
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

const NOTHING = new Uint8Array(0)

function flush(answer: ClientAnswer): void {
  answer.flush()
}

/** Without the length: it may change on the way. In one pass, as this is done for every answer. */
function pairsOf(headers: HeaderMap): string[] {
  const named = connectionTokens(headers['connection'])
  const pairs: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || NOT_RETURNED.has(name) || named?.has(name)) continue
    if (typeof value === 'string') pairs.push(name, value)
    else for (const one of value) pairs.push(name, one)
  }
  return pairs
}

const NOT_RETURNED: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'content-length'])
