import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Exchange } from './exchange.ts'

const kConnection = Symbol('connection')
const kExchange = Symbol('exchange')

/** How long a refused peer may keep its connection open without a request, whose answer would tell it why. */
const REFUSED_IDLE_MS = 1_000

interface Connection {
  readonly owner: Connections
  /** More than one only when the client pipelines. */
  readonly exchanges: Exchange[]
  /** Whether the peer may be served; a promise until that is known. */
  admission: boolean | Promise<boolean>
}

type KnownSocket = Socket & { [kConnection]?: Connection }
type KnownResponse = ServerResponse & { [kExchange]?: Exchange }

export interface ConnectionEvents {
  /** An exchange or a connection ended. */
  onChange(): void
  /** Writing failed although the client has not gone. */
  onResponseError(error: Error, exchange: Exchange): void
}

/**
 * The sockets of a server and the exchanges open on each. Not every version of Node tells a pipelined response that its connection has
 * ended before its turn has come, so the socket is watched as well. Listeners are shared functions that find their owner on the socket:
 * no closures per connection or request.
 */
export class Connections {
  readonly #sockets = new Set<KnownSocket>()
  readonly #events: ConnectionEvents
  #inFlight = 0

  constructor(events: ConnectionEvents) {
    this.#events = events
  }

  get size(): number {
    return this.#sockets.size
  }

  get inFlight(): number {
    return this.#inFlight
  }

  accept(socket: KnownSocket, admission: boolean | Promise<boolean> = true): void {
    const connection: Connection = { owner: this, exchanges: [], admission }
    socket[kConnection] = connection
    this.#sockets.add(socket)
    socket.on('close', onSocketClose)
    if (typeof admission === 'boolean') return
    void admission.then((admitted) => {
      connection.admission = admitted
      if (!admitted) socket.setTimeout(REFUSED_IDLE_MS)
    })
  }

  admissionOf(socket: KnownSocket): boolean | Promise<boolean> {
    return socket[kConnection]?.admission ?? false
  }

  /** Returns how many exchanges are open on the connection now. */
  begin(exchange: Exchange): number {
    const response: KnownResponse = exchange.response
    response[kExchange] = exchange
    response.on('close', onResponseClose).on('error', onResponseError)
    this.#inFlight++
    return this.exchangesOn(exchange.request.socket).push(exchange)
  }

  exchangesOn(socket: KnownSocket): Exchange[] {
    return socket[kConnection]?.exchanges ?? []
  }

  *exchanges(): Generator<Exchange> {
    for (const socket of this.#sockets) yield* this.exchangesOn(socket)
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  end(exchange: Exchange, complete: boolean): void {
    if (!exchange.markClosed(complete)) return
    this.#inFlight--
    const open = this.exchangesOn(exchange.request.socket)
    if (open.length === 1 && open[0] === exchange) open.length = 0
    else if (open.includes(exchange)) open.splice(open.indexOf(exchange), 1)
    this.#events.onChange()
  }

  disconnected(socket: KnownSocket): void {
    this.#sockets.delete(socket)
    for (const exchange of [...this.exchangesOn(socket)]) this.end(exchange, false)
    this.#events.onChange()
  }

  failed(error: Error, exchange: Exchange): void {
    if (!exchange.closed) this.#events.onResponseError(error, exchange)
  }
}

function onSocketClose(this: KnownSocket): void {
  this[kConnection]?.owner.disconnected(this)
}

function onResponseClose(this: KnownResponse): void {
  const exchange = this[kExchange]
  if (exchange) ownerOf(exchange)?.end(exchange, this.writableFinished)
}

/** Writing to a connection that is just closing is no fault; without a listener it would end the process. */
function onResponseError(this: KnownResponse, error: Error): void {
  const exchange = this[kExchange]
  if (exchange) ownerOf(exchange)?.failed(error, exchange)
}

function ownerOf(exchange: Exchange): Connections | undefined {
  const socket: KnownSocket = exchange.request.socket
  return socket[kConnection]?.owner
}
