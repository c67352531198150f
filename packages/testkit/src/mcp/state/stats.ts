import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject, RequestId, RpcMessage } from '../wire/json-rpc.ts'
import type { Era, TransportKind } from '../wire/protocol.ts'

export interface Received {
  readonly transport: TransportKind
  readonly era: Era
  readonly message: RpcMessage
  readonly session?: string
  readonly headers?: IncomingHttpHeaders
}

export interface Cancelled {
  readonly requestId: RequestId
  readonly method: string
  readonly name?: string
  /** How the fixture learned of it. */
  readonly by: 'notification' | 'disconnect'
}

/** Figures that a test may ask of a running fixture. */
export interface FixtureStats {
  /** The newest messages, oldest first; bounded. */
  readonly received: readonly Received[]
  readonly cancelled: readonly Cancelled[]
  /** Messages with this method, or all messages. Never forgets. */
  count(method?: string): number
  /** HTTP requests by method and status, as `POST 200`. */
  readonly http: Readonly<Record<string, number>>
  readonly sessions: number
  readonly sessionsCreated: number
  /** Legacy HTTP: GET streams that are open now. */
  readonly streams: number
  /** Modern listen streams that are open now. */
  readonly listens: number
  /** TCP connections accepted. */
  readonly connections: number
}

const KEPT = 2_000

export class StatsRecorder implements FixtureStats {
  readonly received: Received[] = []
  readonly cancelled: Cancelled[] = []
  readonly http: Record<string, number> = {}
  sessions = 0
  sessionsCreated = 0
  streams = 0
  listens = 0
  connections = 0
  readonly #methods = new Map<string, number>()
  #total = 0

  record(received: Received): void {
    keep(this.received, received)
    this.#total += 1
    if (!('method' in received.message)) return
    const { method } = received.message
    this.#methods.set(method, this.count(method) + 1)
  }

  recordCancelled(cancelled: Cancelled): void {
    keep(this.cancelled, cancelled)
  }

  recordHttp(method: string, status: number): void {
    const key = `${method} ${status}`
    this.http[key] = (this.http[key] ?? 0) + 1
  }

  count(method?: string): number {
    return method === undefined ? this.#total : (this.#methods.get(method) ?? 0)
  }

  counts(): JsonObject {
    const { cancelled, http, sessions, sessionsCreated, streams, listens, connections } = this
    return { methods: Object.fromEntries(this.#methods), cancelled, http, sessions, sessionsCreated, streams, listens, connections }
  }

  toJSON(): JsonObject {
    return { ...this.counts(), received: this.received }
  }
}

function keep<T>(list: T[], item: T): void {
  list.push(item)
  if (list.length > KEPT) list.shift()
}
