import type { IncomingMessage } from 'node:http'
import { ThvError } from '@thv/kernel/errors'
import type { CancelListener } from '../cancellation.ts'
import { RequestError } from '../http-errors.ts'
import type { Exchange } from './exchange.ts'
import type { WatchedBody } from './slow-bodies.ts'

const EMPTY = Buffer.alloc(0)
/** Bytes that are read and dropped after a rejection, so that the client sees the answer instead of a reset connection. */
const MAX_DISCARDED = 1 << 20
const kReader = Symbol('body reader')

type WithReader = IncomingMessage & { [kReader]?: BodyReader }

/**
 * Reads the whole body into one Buffer, once per exchange. Rejects with a RequestError (413, 415, 408), or with `aborted` when the
 * client went away, and then there is no client to answer. A body that came in one piece is not copied.
 */
export function readBody(exchange: Exchange, maxBytes: number): Promise<Buffer> {
  const request: WithReader = exchange.request
  if (request[kReader] !== undefined) throw new RangeError('the body of an exchange can be read only once')
  const problem = refusal(request, maxBytes)
  if (problem === undefined && !hasBody(request)) return Promise.resolve(EMPTY)
  return new Promise((resolve, reject) => {
    const reader = new BodyReader(exchange, { maxBytes, resolve, reject })
    request[kReader] = reader
    if (problem !== undefined) reader.refuse(problem)
    else reader.start()
  })
}

function refusal(request: IncomingMessage, maxBytes: number): RequestError | undefined {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding !== '' && encoding.toLowerCase() !== 'identity')
    return new RequestError('request_body_encoding', 415, 'compressed request bodies are not accepted')
  const length = request.headers['content-length']
  return length !== undefined && Number(length) > maxBytes ? tooLarge(maxBytes) : undefined
}

/** RFC 9112 §6.3: without either header there is none. */
function hasBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length']
  return length === undefined ? request.headers['transfer-encoding'] !== undefined : length !== '0'
}

function tooLarge(maxBytes: number): RequestError {
  return new RequestError('request_body_too_large', 413, `the request body is larger than ${maxBytes} bytes`)
}

interface ReaderOptions {
  readonly maxBytes: number
  readonly resolve: (body: Buffer) => void
  readonly reject: (error: unknown) => void
}

class BodyReader implements WatchedBody, CancelListener {
  readonly startedAt: number
  place = -1
  bytes = 0
  readonly #exchange: Exchange
  readonly #options: ReaderOptions
  /** The only chunk so far, as it came; from the second on everything is in `#buffer`. */
  #first: Buffer | undefined
  #buffer = EMPTY
  #discarded = 0
  #settled = false

  constructor(exchange: Exchange, options: ReaderOptions) {
    this.#exchange = exchange
    this.#options = options
    this.startedAt = exchange.startedAt
  }

  start(): void {
    const { response, context } = this.#exchange
    // Without a socket the answer waits behind those of earlier requests, and Node would put the head of the answer before the 100 and
    // the body after it. Who pipelines has sent the body already, or sends it after a while (RFC 9110 §10.1.1).
    if (this.#exchange.expectsContinue && response.socket !== null) response.writeContinue()
    context.slowBodies.add(this)
    this.#listen()
  }

  refuse(error: RequestError): void {
    this.#fail(error)
    this.#listen()
  }

  push(chunk: Buffer): void {
    if (this.#settled) {
      this.#discarded += chunk.length
      if (this.#discarded > MAX_DISCARDED) this.#exchange.request.socket.destroy()
      return
    }
    const before = this.bytes
    this.bytes += chunk.length
    if (this.bytes > this.#options.maxBytes) this.#fail(tooLarge(this.#options.maxBytes))
    else if (before === 0) this.#first = chunk
    else this.#append(chunk, before)
  }

  /** Chunks are copied together as they come: a body of a million tiny ones would otherwise cost a hundred times its size. */
  #append(chunk: Buffer, before: number): void {
    if (this.#buffer.length < this.bytes) {
      const grown = Buffer.allocUnsafeSlow(Math.min(this.#options.maxBytes, Math.max(this.bytes, 2 * this.#buffer.length, 16 * 1024)))
      ;(this.#first ?? this.#buffer.subarray(0, before)).copy(grown)
      this.#first = undefined
      this.#buffer = grown
    }
    chunk.copy(this.#buffer, before)
  }

  end(): void {
    if (this.#settle()) this.#options.resolve(this.#first ?? this.#buffer.subarray(0, this.bytes))
  }

  tooSlow(): void {
    this.#fail(new RequestError('request_body_too_slow', 408, 'the request body came too slowly'))
    this.#exchange.response.shouldKeepAlive = false
  }

  /** The client went away. May come after the end of the body. */
  handleEvent(): void {
    if (!this.#settled) this.#fail(new ThvError('aborted', 'the client went away before it had sent the whole request'))
  }

  #fail(error: ThvError): void {
    if (!this.#settle()) return
    this.#first = undefined
    this.#buffer = EMPTY
    this.#options.reject(error)
  }

  #settle(): boolean {
    if (this.#settled) return false
    this.#settled = true
    this.#exchange.context.slowBodies.delete(this)
    return true
  }

  /** Listeners are shared functions that find their reader on the request: no closures per request. */
  #listen(): void {
    const { request } = this.#exchange
    request.on('data', onData).on('end', onEnd)
    if (this.#settled) return
    this.#exchange.addEventListener('abort', this)
    if (request.destroyed || this.#exchange.aborted) this.handleEvent()
  }
}

function onData(this: WithReader, chunk: Buffer): void {
  this[kReader]?.push(chunk)
}

function onEnd(this: WithReader): void {
  this[kReader]?.end()
}
