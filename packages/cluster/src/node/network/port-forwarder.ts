import { connect, createServer, type Server, type Socket } from 'node:net'
import type { PeerCheck } from '@thv/http/server/peer-check'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { LoadBalancer } from './load-balancer.ts'
import type { Backend } from './service-endpoints.ts'

export interface PortForwarderOptions {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  readonly clock?: Clock
  /** More are closed at once. */
  readonly maxConnections?: number
  readonly connectTimeoutMs?: number
  /** How long a client is kept waiting for a backend while there is none. Default 3 s. */
  readonly patienceMs?: number
  /** Which local users may connect; the connections of others are reset. Absent: all. */
  readonly peers?: PeerCheck | undefined
}

/** While no backend takes connections although there are some, they are tried again after this. */
const RETRY_MS = 250
/** Backends that one connection tries at a time. */
const MAX_TRIES = 4
/** Without a byte for so long, a connection that one side has ended is given up. */
const HALF_CLOSED_MS = 3_600_000

/**
 * One port of a Service: takes TCP connections and passes their bytes to a backend, as fast as the slower side reads. Connections
 * stay with their backend to their end, whatever `set` says later. While there is no backend that answers, a client waits a little, so
 * that it does not notice a change of pods; then it is reset.
 */
export class PortForwarder implements AsyncDisposable {
  readonly host: string
  readonly port: number
  readonly #balancer: LoadBalancer
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #connectTimeoutMs: number
  readonly #patienceMs: number
  readonly #clock: Clock
  readonly #peers: PeerCheck | undefined
  /** Clients that wait for a change of backends. */
  readonly #waiting = new Set<() => void>()
  #stopped: Promise<void> | undefined
  readonly stats = { accepted: 0, refused: 0, failedAttempts: 0, active: 0 }

  /** Rejects with `listen_failed`; its details name the system's code. */
  static async listen(options: PortForwarderOptions): Promise<PortForwarder> {
    const { host, port, maxConnections = 2_048 } = options
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true })
    server.maxConnections = maxConnections
    await new Promise<void>((resolve, reject) => {
      const onError = (cause: NodeJS.ErrnoException) =>
        reject(new ThvError('listen_failed', `${host}:${port} cannot be bound`, { cause, details: { reason: cause.code } }))
      server.once('error', onError)
      server.listen({ host, port, backlog: 1_024, exclusive: true }, () => {
        server.off('error', onError)
        resolve()
      })
    })
    return new PortForwarder(server, options)
  }

  private constructor(server: Server, options: PortForwarderOptions) {
    const bound = server.address()
    this.host = options.host
    this.port = typeof bound === 'object' && bound !== null ? bound.port : options.port
    this.#clock = options.clock ?? systemClock
    this.#balancer = new LoadBalancer(this.#clock)
    this.#connectTimeoutMs = options.connectTimeoutMs ?? 2_000
    this.#patienceMs = options.patienceMs ?? 3_000
    this.#peers = options.peers
    this.#server = server
    server.on('connection', (client) => void this.#serve(client))
    server.on('drop', () => this.stats.refused++)
    server.on('error', () => this.stats.refused++) // accept failed, such as for want of descriptors; the next may do
  }

  set(backends: readonly Backend[], affinityMs: number | undefined): void {
    this.#balancer.set(backends, affinityMs)
    if (backends.length > 0) for (const wake of [...this.#waiting]) wake()
  }

  /** Takes no more connections; the port is free at once. Resolves when those there have ended by themselves. */
  stop(): Promise<void> {
    this.#stopped ??= new Promise((resolve) => this.#server.close(() => resolve()))
    for (const wake of [...this.#waiting]) wake()
    return this.#stopped
  }

  /** Ends the connections too. */
  async close(): Promise<void> {
    const stopped = this.stop()
    for (const socket of this.#sockets) socket.destroy()
    await stopped
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Never rejects. */
  async #serve(client: Socket): Promise<void> {
    this.stats.accepted++
    this.stats.active++
    this.#track(client).once('close', () => this.stats.active--)
    const admission = this.#peers?.admits(client) ?? true
    const dialled = admission === true || (await admission) ? await this.#dial(client) : undefined
    if (dialled === undefined) {
      this.stats.refused++
      reset(client)
      return
    }
    const { upstream, backend } = dialled
    this.#balancer.opened(backend)
    upstream.once('close', () => this.#balancer.closed(backend))
    if (client.destroyed) reset(upstream)
    else join(client, upstream)
  }

  async #dial(client: Socket): Promise<{ upstream: Socket; backend: Backend } | undefined> {
    const name = client.remoteAddress ?? ''
    const deadline = this.#clock.monotonic() + this.#patienceMs
    for (;;) {
      const dialled = await this.#tryBackends(client, name)
      if (dialled !== undefined || client.destroyed || this.#stopped !== undefined) return dialled
      const left = deadline - this.#clock.monotonic()
      if (left <= 0) return undefined
      await this.#change(client, this.#balancer.size === 0 ? left : Math.min(left, RETRY_MS))
    }
  }

  /** Until the backends change, the client leaves, or the time is over. */
  #change(client: Socket, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        timer.cancel()
        client.off('close', wake)
        this.#waiting.delete(wake)
        resolve()
      }
      const timer = this.#clock.setTimer(ms, wake)
      client.once('close', wake)
      this.#waiting.add(wake)
    })
  }

  async #tryBackends(client: Socket, name: string): Promise<{ upstream: Socket; backend: Backend } | undefined> {
    for (const backend of this.#balancer.candidates(name).slice(0, MAX_TRIES)) {
      if (client.destroyed) return undefined
      const upstream = await this.#connect(backend)
      if (upstream === undefined) {
        this.stats.failedAttempts++
        this.#balancer.failed(backend)
        continue
      }
      this.#balancer.keep(name, backend)
      return { upstream, backend }
    }
    return undefined
  }

  /** Undefined: it did not take the connection in time. */
  #connect({ address, port }: Backend): Promise<Socket | undefined> {
    const socket = this.#track(connect({ host: address, port, allowHalfOpen: true, noDelay: true }))
    return new Promise((resolve) => {
      const settle = (connected: boolean) => {
        socket.setTimeout(0)
        socket.removeAllListeners('timeout')
        if (!connected) socket.destroy()
        resolve(connected ? socket : undefined)
      }
      socket.setTimeout(this.#connectTimeoutMs, () => settle(false))
      socket.once('connect', () => settle(true))
      socket.once('close', () => settle(false)) // after `connect` this changes nothing
    })
  }

  /** Errors come before `close`, which says all that we need. */
  #track(socket: Socket): Socket {
    this.#sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => this.#sockets.delete(socket))
    return socket
  }
}

/** Both ways, each with its own end and with back-pressure; what breaks on one side breaks on the other. */
function join(client: Socket, upstream: Socket): void {
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    from.pipe(to)
    from.once('end', () => {
      for (const socket of [from, to]) socket.setTimeout(HALF_CLOSED_MS, () => socket.destroy())
    })
    from.once('close', () => {
      // After an orderly end the other side may still have bytes to write, and closes by itself.
      if (!(from.readableEnded && from.writableFinished)) reset(to)
    })
  }
}

/** The nearest thing to a refusal once a connection is accepted: the client's next read or write fails. */
function reset(socket: Socket): void {
  if (!socket.destroyed) socket.resetAndDestroy()
}
