import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { Pool } from 'undici'
import { secureContextOf } from './ca-bundle.ts'
import { guardedConnector } from './guarded-connector.ts'
import type { OutboundOptions, Target, TargetOptions } from './outbound.ts'
import { abortReason, type CallCounter, OutboundCall, type OutboundRequest, type ResponseSink } from './outbound-call.ts'
import { OutboundError } from './outbound-error.ts'

export type OutboundSettings = Required<Omit<OutboundOptions, Optional>> & Pick<OutboundOptions, Optional>
type Optional = 'policy' | 'resolve' | 'connectHook'

/** Common to the targets of one outbound. */
export interface SharedByTargets {
  readonly settings: OutboundSettings
  /** Targets that have pools. */
  readonly open: Set<PooledTarget>
  closed: boolean
  readonly onOpen: () => void
}

/** A backend with its pools: one for requests, one for streams, each opened when it is first needed. */
export class PooledTarget implements Target {
  readonly origin: string
  readonly seenOrigin: string
  readonly pools = new Map<Purpose, OpenPool>()
  readonly #shared: SharedByTargets
  readonly #options: TargetOptions

  constructor(shared: SharedByTargets, options: TargetOptions) {
    this.origin = options.url
    this.seenOrigin = options.hostHeader === undefined ? options.url : `${new URL(options.url).protocol}//${options.hostHeader}`
    this.#shared = shared
    this.#options = options
  }

  send(request: OutboundRequest, sink: ResponseSink): Promise<void> {
    if (this.#shared.closed) return Promise.reject(new ThvError('aborted', 'outbound connections are closed', { details: { ...NOTHING } }))
    if (request.signal?.aborted) return Promise.reject(abortReason(request.signal, NOTHING))
    const purpose = request.purpose ?? 'request'
    const open = this.pools.get(purpose) ?? this.#open(purpose)
    const { maxConnections, maxWaiting } = this.#shared.settings
    if (purpose === 'request' && open.inFlight >= maxConnections + maxWaiting)
      return Promise.reject(new OutboundError('backend_busy', `${this.origin} has ${open.inFlight} requests in work`, NOTHING))
    open.inFlight++
    const call = new OutboundCall(open, request, sink)
    const { hostHeader } = this.#options
    const { method, path, body = null, headersTimeoutMs: headersTimeout = null, bodyTimeoutMs: bodyTimeout = null } = request
    const headers = hostHeader === undefined ? request.headers : ['host', hostHeader, ...request.headers]
    open.pool.dispatch({ method, path, headers, body: asBuffer(body), headersTimeout, bodyTimeout }, call)
    return call.done
  }

  closeIdle(before: number): void {
    for (const [purpose, open] of this.pools) {
      if (open.inFlight > 0 || open.lastUsedAt > before) continue
      this.pools.delete(purpose)
      void open.pool.destroy()
    }
    if (this.pools.size === 0) this.#shared.open.delete(this)
  }

  async close(): Promise<void> {
    await Promise.all([...this.pools.values()].map(({ pool }) => pool.destroy()))
    this.pools.clear()
    this.#shared.open.delete(this)
  }

  #open(purpose: Purpose): OpenPool {
    const {
      clock,
      maxConnections,
      headersTimeoutMs,
      bodyTimeoutMs,
      keepAliveMs,
      connectTimeoutMs,
      resolve,
      connectHook: hook,
    } = this.#shared.settings
    const { ca, serverName, policy } = this.#options
    const secureContext = ca === undefined ? undefined : secureContextOf(ca)
    const pool = new Pool(this.origin, {
      connect: guardedConnector({ policy, resolve, hook, clock, connectTimeoutMs, serverName, secureContext }),
      allowH2: false,
      connections: purpose === 'request' ? maxConnections : null,
      headersTimeout: headersTimeoutMs,
      bodyTimeout: purpose === 'request' ? bodyTimeoutMs : 0,
      keepAliveTimeout: keepAliveMs,
    })
    const open = new OpenPool(this.origin, pool, clock)
    this.pools.set(purpose, open)
    this.#shared.open.add(this)
    this.#shared.onOpen()
    return open
  }
}

type Purpose = 'request' | 'stream'

/** A pool and who counts its calls. */
class OpenPool implements CallCounter {
  readonly origin: string
  readonly pool: Pool
  inFlight = 0
  lastUsedAt: number
  readonly #clock: Clock

  constructor(origin: string, pool: Pool, clock: Clock) {
    this.origin = origin
    this.pool = pool
    this.lastUsedAt = clock.monotonic()
    this.#clock = clock
  }

  settled(): void {
    this.inFlight--
    this.lastUsedAt = this.#clock.monotonic()
  }
}

const NOTHING = { sent: false, answered: false }

function asBuffer(body: Uint8Array | string | null): Buffer | string | null {
  if (body === null || typeof body === 'string' || Buffer.isBuffer(body)) return body
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}
