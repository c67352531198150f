import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import { answerClientError } from '@thv/http/client-error'
import { Connections } from '@thv/http/connections'
import { Exchange, type ServerContext } from '@thv/http/exchange'
import { httpError } from '@thv/http/http-errors'
import { type HttpLimits, limitsOf } from '@thv/http/http-limits'
import { originForm } from '@thv/http/request-target'
import { sendProblem } from '@thv/http/respond'
import { SlowBodies } from '@thv/http/slow-bodies'
import type { Clock } from '@thv/kernel/clock'
import type { Certificate } from '../tls/certificate.ts'

export interface TlsFrontOptions {
  readonly certificate: Certificate
  readonly clock: Clock
  readonly limits?: Partial<HttpLimits>
  /** Must not throw. */
  readonly handler: (exchange: Exchange) => Promise<void>
  readonly onError: (error: unknown) => void
}

/** The HTTPS server, with the limits and the bookkeeping of the project's HTTP server. */
export class TlsFront {
  readonly #server: Server
  readonly #connections: Connections
  readonly #context: ServerContext

  constructor(options: TlsFrontOptions) {
    const limits = limitsOf(options.limits)
    const { clock, certificate, handler } = options
    this.#context = { clock, limits, slowBodies: new SlowBodies(clock, limits) }
    this.#connections = new Connections({ onChange: () => undefined, onResponseError: (error) => options.onError(error) })
    this.#server = createServer({
      cert: certificate.certPem,
      key: certificate.keyPem,
      ALPNProtocols: ['http/1.1'],
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.headersTimeoutMs + 2 * limits.bodyTimeoutMs,
      keepAliveTimeout: limits.keepAliveMs,
      noDelay: true,
    })
    this.#server.maxConnections = limits.maxConnections
    this.#server.timeout = limits.stallMs
    const received = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean) => {
      const target = originForm(request)
      const exchange = new Exchange(request, response, { context: this.#context, target: target ?? '/' })
      exchange.expectsContinue = expectsContinue
      const open = this.#connections.begin(exchange)
      if (target === undefined) sendProblem(exchange, 400)
      else if (open > limits.maxPipelined) sendProblem(exchange, 503)
      else void handler(exchange)
    }
    this.#server
      .on('secureConnection', (socket: Socket) => this.#connections.accept(socket))
      .on('request', (request: IncomingMessage, response: ServerResponse) => received(request, response, false))
      .on('checkContinue', (request: IncomingMessage, response: ServerResponse) => received(request, response, true))
      .on('clientError', (error: Error, socket: Socket) => {
        const begun = this.#connections.exchangesOn(socket).some(({ response }) => response.headersSent)
        answerClientError(error, socket, begun)
      })
      // A watch with nothing to say may be silent; only a client that does not take what is written is cut off.
      .on('timeout', (socket: Socket) => {
        if (this.#connections.exchangesOn(socket).length === 0 || socket.writableLength > 0) socket.destroy()
      })
  }

  /** Rejects with `listen_failed`, for example when the port is taken. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const failed = (cause: Error) => reject(httpError('listen_failed', `cannot listen on ${host}:${port}`, { cause }))
      this.#server.once('error', failed)
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', failed)
        const bound = this.#server.address()
        resolve(typeof bound === 'object' && bound !== null ? bound.port : port)
      })
    })
  }

  /** Cuts off whatever is open: clients of an API server watch again by themselves. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
    })
    this.#connections.destroyAll()
    await closed
    this.#context.slowBodies.close()
  }
}
