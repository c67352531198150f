import type { CallWatch, WatchedCall } from '@thv/gateway/relay/call-watch'
import type { Clock } from '@thv/kernel/clock'
import type { RequestId } from '@thv/mcp/json-rpc'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'

/** Calls of one client that are under way. More than any client has, and few enough to be kept. */
const MAX_IN_FLIGHT = 1_024

export interface OpenCallsOptions {
  readonly clock: Clock
  readonly watch: CallWatch
  /** Asked with each check: it depends on what the backend waits for. */
  idleLimitMs(): number
  /** The call has taken too long and is no longer here. */
  onExpired(id: RequestId): void
}

/** The calls of one HTTP+SSE client that the backend has not answered yet. */
export class OpenCalls {
  readonly #options: OpenCallsOptions
  readonly #calls = new Map<RequestId, OpenCall>()

  constructor(options: OpenCallsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#calls.size
  }

  has(id: RequestId): boolean {
    return this.#calls.has(id)
  }

  /** False when there are too many. The id must not be in use. */
  add(id: RequestId, context: MessageContext): boolean {
    if (this.#calls.size >= MAX_IN_FLIGHT) return false
    const { clock, watch } = this.#options
    const call = new OpenCall(context, { now: clock.monotonic(), limits: this.#options, onExpired: () => this.#expired(id) })
    watch.add(call)
    this.#calls.set(id, call)
    return true
  }

  /** The request of the id; undefined when there is none, or it is no longer open. */
  take(id: RequestId): MessageContext | undefined {
    const call = this.#calls.get(id)
    if (call === undefined) return undefined
    this.#calls.delete(id)
    this.#options.watch.delete(call)
    return call.context
  }

  takeAll(): RequestId[] {
    const ids = [...this.#calls.keys()]
    for (const id of ids) this.take(id)
    return ids
  }

  /** The backend gave a sign of life, or has just been given what it waited for. */
  active(): void {
    const now = this.#options.clock.monotonic()
    for (const call of this.#calls.values()) call.lastActivityAt = now
  }

  #expired(id: RequestId): void {
    this.#calls.delete(id)
    this.#options.onExpired(id)
  }
}

class OpenCall implements WatchedCall {
  readonly context: MessageContext
  readonly startedAt: number
  lastActivityAt: number
  place = -1
  readonly expire: () => void
  readonly #limits: Pick<OpenCallsOptions, 'idleLimitMs'>

  constructor(context: MessageContext, options: { now: number; limits: Pick<OpenCallsOptions, 'idleLimitMs'>; onExpired: () => void }) {
    this.context = context
    this.startedAt = this.lastActivityAt = options.now
    this.expire = options.onExpired
    this.#limits = options.limits
  }

  get idleLimitMs(): number {
    return this.#limits.idleLimitMs()
  }
}
