import { type IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import { httpError } from '@thv/http/http-errors'
import { answerClientError } from '@thv/http/server/client-error'
import { Connections } from '@thv/http/server/connections'
import { Exchange, type ServerContext } from '@thv/http/server/exchange'
import { type HttpLimits, limitsOf } from '@thv/http/server/http-limits'
import { originForm } from '@thv/http/server/request-target'
import { sendProblem } from '@thv/http/server/respond'
import { SlowBodies } from '@thv/http/server/slow-bodies'
import type { Certificate } from '@thv/http/tls/certificate'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { type WebSocket, WebSocketServer } from 'ws'

export interface TlsFrontOptions {
  readonly certificate: Certificate
  readonly clock: Clock
  readonly limits?: Partial<HttpLimits>
  /** Must not throw. A request to become a WebSocket comes with `upgrade`; it may be answered like any other instead. */
  readonly handler: (exchange: Exchange, upgrade: Upgrade | undefined) => Promise<void>
  readonly onError: (error: unknown) => void
}

/** A way out of HTTP. */
export interface Upgrade {
  /** Rejects with `aborted` when the client is gone, or its handshake is wrong. Nothing may have been answered. */
  accept(protocol: string): Promise<WebSocket>
}

/** Of one frame from a client; kubectl sends 32 KiB. */
const MAX_FRAME = 1 << 20

/** The HTTPS server, with the limits and the bookkeeping of the project's HTTP server. */
export class TlsFront {
  readonly #server: Server
  readonly #connections: Connections
  readonly #context: ServerContext
  readonly #webSockets = new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate: false, maxPayload: MAX_FRAME })

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
      shouldUpgradeCallback: isUpgrade,
    })
    this.#server.maxConnections = limits.maxConnections
    this.#server.timeout = limits.stallMs
    const received = (request: IncomingMessage, response: ServerResponse, { expectsContinue = false, head }: Arrival = {}) => {
      const target = originForm(request)
      const exchange = new Exchange(request, response, { context: this.#context, target: target ?? '/' })
      exchange.expectsContinue = expectsContinue
      const open = this.#connections.begin(exchange)
      if (target === undefined) sendProblem(exchange, 400)
      else if (open > limits.maxPipelined) sendProblem(exchange, 503)
      else void handler(exchange, head && this.#upgradeOf(exchange, head))
      return exchange
    }
    this.#server
      .on('secureConnection', (socket: Socket) => this.#connections.accept(socket))
      .on('request', (request: IncomingMessage, response: ServerResponse) => received(request, response))
      .on('checkContinue', (request: IncomingMessage, response: ServerResponse) => received(request, response, { expectsContinue: true }))
      .on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
        // Node leaves the answer to the listener of this event.
        const response = new ServerResponse(request)
        response.shouldKeepAlive = false
        response.assignSocket(socket)
        socket.on('error', () => socket.destroy())
        const exchange = received(request, response, { head })
        response.on('finish', () => {
          this.#connections.end(exchange, true)
          socket.destroySoon()
        })
      })
      .on('clientError', (error: Error, socket: Socket) => {
        const begun = this.#connections.exchangesOn(socket).some(({ response }) => response.headersSent)
        answerClientError(error, socket, begun)
      })
      // A watch with nothing to say may be silent; only a client that does not take what is written is cut off.
      .on('timeout', (socket: Socket) => {
        if (this.#connections.exchangesOn(socket).length === 0 || socket.writableLength > 0) socket.destroy()
      })
  }

  #upgradeOf(exchange: Exchange, head: Buffer): Upgrade {
    const { request, response } = exchange
    return {
      accept: (protocol) =>
        new Promise((resolve, reject) => {
          const gone = () => reject(new ThvError('aborted', 'the client went away before the WebSocket was open'))
          if (exchange.closed) {
            gone()
            return
          }
          exchange.signal.addEventListener('abort', gone, { once: true })
          response.detachSocket(request.socket)
          request.headers['sec-websocket-protocol'] = protocol
          this.#webSockets.handleUpgrade(request, request.socket, head, (socket) => {
            exchange.signal.removeEventListener('abort', gone)
            resolve(socket)
          })
        }),
    }
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

/** Whatever else asks for another protocol is answered as if it had not. */
function isUpgrade({ method, url = '', headers }: IncomingMessage): boolean {
  return method === 'GET' && /^websocket$/i.test(headers.upgrade ?? '') && /\/(?:attach|exec|portforward)(?:\?|$)/.test(url)
}

interface Arrival {
  readonly expectsContinue?: boolean
  /** Of a request to become a WebSocket: what has come after it. */
  readonly head?: Buffer
}
