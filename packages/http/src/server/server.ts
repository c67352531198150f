import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import type { Server as SecureServer } from 'node:https'
import { Server as NetServer, type Socket } from 'node:net'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { currentScope } from '@thv/kernel/program-scope'
import { countHeader } from '../header-map.ts'
import { httpError } from '../http-errors.ts'
import { answerClientError } from './client-error.ts'
import { Connections } from './connections.ts'
import { Exchange, type ServerContext } from './exchange.ts'
import { answerHandlerFailure } from './handler-failure.ts'
import { type HttpLimits, limitsOf } from './http-limits.ts'
import { listenHost } from './listen-host.ts'
import { createNodeServer } from './node-server.ts'
import { PEER_REFUSED, type PeerCheck, peerCheckFromEnv } from './peer-check.ts'
import { originForm } from './request-target.ts'
import { sendProblem } from './respond.ts'
import { SlowBodies } from './slow-bodies.ts'

export interface HttpServerOptions {
  /** Answers one request. What it throws or rejects with becomes the status of a RequestError, or 500. */
  readonly handler: (exchange: Exchange) => void | Promise<void>
  /** Answers 503 to what is not handed on. Else a plain one with Retry-After. */
  readonly busy?: (exchange: Exchange, why: BusyReason) => void
  /** Told of a request that was answered with 400, 403 or 431 instead of being handed on. */
  readonly onTurnedAway?: (exchange: Exchange) => void
  readonly limits?: Partial<HttpLimits>
  /** Makes a server for TLS, with its certificate, out of the settings that it is given. Else the server speaks plain HTTP. */
  readonly secure?: (settings: ServerOptions) => SecureServer
  readonly clock?: Clock
  /** Which local users are served; the others get 403. Absent: what THV_PEER_USER says. */
  readonly peers?: PeerCheck
  /** Told of surprises only: a handler that failed, a listener that broke. What a client does wrong is counted, not reported. */
  readonly onError: (error: unknown, exchange?: Exchange) => void
}

/** The server is about to stop, or the client has sent more over one connection than may wait there. */
export type BusyReason = 'draining' | 'pipelined'

export interface HttpServer extends AsyncDisposable {
  /** Rejects with `listen_failed`. Port 0 takes a free one. */
  listen(address: { host: string; port: number }): Promise<ListenAddress>
  /**
   * Stops accepting; answers 503 with Retry-After to what still comes over open connections; waits for requests in work. When the
   * signal aborts, whatever is left is cut off. Every call returns the promise of the first.
   */
  drain(signal?: AbortSignal): Promise<DrainReport>
  readonly draining: boolean
  readonly stats: ServerStats
}

export interface ListenAddress {
  readonly host: string
  readonly port: number
  /** http://host:port or https://host:port, an IPv6 address in brackets. */
  readonly url: string
}

export interface DrainReport {
  /** Requests that were cut off. */
  readonly aborted: number
  readonly durationMs: number
}

export interface ServerStats {
  /** Requests in work. */
  readonly inFlight: number
  readonly connections: number
  readonly requests: number
  /** Connections turned away because there were too many. */
  readonly dropped: number
  /** Requests that were no HTTP, too large or too slow, and were answered without a handler. */
  readonly malformed: number
  /** Requests of local users who are not served. */
  readonly forbidden: number
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  return new NodeHttpServer(options)
}

class NodeHttpServer implements HttpServer {
  draining = false
  readonly #options: HttpServerOptions
  readonly #context: ServerContext
  readonly #server: Server
  readonly #connections: Connections
  #requests = 0
  #dropped = 0
  #malformed = 0
  #forbidden = 0
  #drained: Promise<DrainReport> | undefined
  #onQuiet: (() => void) | undefined
  #graceOver = false
  #programEnd: Disposable | undefined

  constructor(options: HttpServerOptions) {
    const limits = limitsOf(options.limits)
    const clock = options.clock ?? systemClock
    this.#options = options
    this.#context = { clock, limits, slowBodies: new SlowBodies(clock, limits) }
    this.#connections = new Connections({ onChange: () => this.#checkQuiet(), onResponseError: options.onError })
    this.#server = createNodeServer(limits, options.secure)
    const peers = options.peers ?? peerCheckFromEnv()
    this.#server
      .on(options.secure ? 'secureConnection' : 'connection', (socket: Socket) =>
        this.#connections.accept(socket, peers?.admits(socket) ?? true),
      )
      .on('drop', () => this.#dropped++)
      .on('request', (request: IncomingMessage, response: ServerResponse) => this.#received(request, response, false))
      .on('checkContinue', (request: IncomingMessage, response: ServerResponse) => this.#received(request, response, true))
      .on('clientError', (error: Error, socket: Socket) => this.#refused(error, socket))
      .on('timeout', (socket: Socket) => this.#idle(socket))
  }

  get stats(): ServerStats {
    const { inFlight, size } = this.#connections
    const [requests, dropped, malformed, forbidden] = [this.#requests, this.#dropped, this.#malformed, this.#forbidden]
    return { inFlight, connections: size, requests, dropped, malformed, forbidden }
  }

  listen(wanted: { host: string; port: number }): Promise<ListenAddress> {
    const { port } = wanted
    const host = listenHost(wanted)
    const scope = currentScope()
    return new Promise((resolve, reject) => {
      const failed = (cause: Error) => reject(httpError('listen_failed', `cannot listen on ${authority(host, port)}`, { cause }))
      this.#server.once('error', failed)
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', failed)
        this.#server.on('error', (error) => this.#options.onError(error))
        this.#programEnd = scope?.onEnd(() => this.#cutOff())
        const bound = this.#server.address()
        const actual = typeof bound === 'object' && bound !== null ? bound : { address: host, port }
        resolve({
          host: actual.address,
          port: actual.port,
          url: `${this.#options.secure ? 'https' : 'http'}://${authority(actual.address, actual.port)}`,
        })
      })
    })
  }

  drain(signal?: AbortSignal): Promise<DrainReport> {
    this.#drained ??= this.#drain(signal)
    return this.#drained
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain(AbortSignal.abort())
  }

  async #drain(signal: AbortSignal | undefined): Promise<DrainReport> {
    const { clock, limits, slowBodies } = this.#context
    const startedAt = clock.monotonic()
    this.draining = true
    // Not http's own close: that one cuts idle connections at once, and a request that is just on its way over one would be lost.
    const listenerClosed = new Promise((resolve) => NetServer.prototype.close.call(this.#server, resolve))
    for (const { response } of this.#connections.exchanges()) if (!response.headersSent) response.shouldKeepAlive = false
    const over = Promise.withResolvers<void>()
    this.#onQuiet = over.resolve
    const grace = clock.setTimer(limits.drainIdleMs, () => {
      this.#graceOver = true
      this.#checkQuiet()
    })
    signal?.addEventListener('abort', () => over.resolve(), { once: true })
    if (signal?.aborted) over.resolve()
    this.#checkQuiet()
    await over.promise
    grace.cancel()
    const aborted = this.#connections.inFlight
    this.#connections.destroyAll()
    await listenerClosed
    this.#programEnd?.[Symbol.dispose]()
    this.#server.close() // ends Node's own checks; it is not listening any more
    slowBodies.close()
    return { aborted, durationMs: clock.monotonic() - startedAt }
  }

  /** Its program has ended, and the process it was in goes on. Also while a drain waits. */
  #cutOff(): void {
    void this.drain(AbortSignal.abort())
    this.#connections.destroyAll()
  }

  /** A drain ends when nothing is left, or when what is left is idle and its time is over. */
  #checkQuiet(): void {
    const { inFlight, size } = this.#connections
    if (inFlight === 0 && (this.#graceOver || size === 0)) this.#onQuiet?.()
  }

  #received(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const target = originForm(request)
    const exchange = new Exchange(request, response, { context: this.#context, target: target ?? '/' })
    exchange.expectsContinue = expectsContinue
    this.#requests++
    const open = this.#connections.begin(exchange)
    const refusal = target === undefined ? 400 : this.#refusal(request, open)
    const admission = this.#connections.admissionOf(request.socket)
    if (refusal !== undefined) this.#turnAway(exchange, refusal)
    else if (admission === true) this.#handle(exchange)
    else void this.#handleIfAdmitted(exchange, admission)
  }

  /** The first requests of a connection, until it is known whose it is. */
  async #handleIfAdmitted(exchange: Exchange, admission: boolean | Promise<boolean>): Promise<void> {
    const admitted = await admission
    if (exchange.closed) return
    if (!admitted) this.#turnAway(exchange, 403)
    else if (this.draining) this.#turnAway(exchange, 503)
    else this.#handle(exchange)
  }

  #refusal(request: IncomingMessage, openOnConnection: number): number | undefined {
    const { maxHeaders, maxPipelined } = this.#context.limits
    if (this.draining || openOnConnection > maxPipelined) return 503
    if (request.rawHeaders.length > 2 * maxHeaders) return 431
    // RFC 9112 §3.2: a missing Host was refused by Node already, more than one is refused here.
    return countHeader(request.rawHeaders, 'host') > 1 ? 400 : undefined
  }

  #turnAway(exchange: Exchange, status: number): void {
    exchange.response.shouldKeepAlive = false
    if (status === 403) {
      this.#forbidden++
      sendProblem(exchange, status, { text: PEER_REFUSED })
      this.#options.onTurnedAway?.(exchange)
    } else if (status !== 503) {
      this.#malformed++
      sendProblem(exchange, status)
      this.#options.onTurnedAway?.(exchange)
    } else if (this.#options.busy) this.#options.busy(exchange, this.draining ? 'draining' : 'pipelined')
    else sendProblem(exchange, 503, { headers: ['Retry-After', String(this.#context.limits.retryAfterSeconds)] })
  }

  #handle(exchange: Exchange): void {
    try {
      this.#options.handler(exchange)?.catch((error: unknown) => this.#failed(error, exchange))
    } catch (error) {
      this.#failed(error, exchange)
    }
  }

  #failed(error: unknown, exchange: Exchange): void {
    answerHandlerFailure(exchange, error, this.#options.onError)
  }

  /** Requests that the parser does not understand, and requests whose headers or bodies did not come in time. */
  #refused(error: Error, socket: Socket): void {
    this.#malformed++
    const begun = this.#connections.exchangesOn(socket).some(({ response }) => response.headersSent)
    answerClientError(error, socket, begun)
  }

  /**
   * Node calls this when nothing moved on a socket: for keepAliveMs between requests, for stallMs during one. Then only an answer that
   * waits for the client counts: a stream with nothing to say, or a handler at work, may be silent for as long as it likes.
   */
  #idle(socket: Socket): void {
    if (this.#connections.exchangesOn(socket).length === 0 || socket.writableLength > 0) socket.destroy()
  }
}

function authority(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
