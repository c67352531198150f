import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { Pool } from 'undici'
import { type AddressPolicy, vetUrl } from './address-policy.ts'
import { type CaBundle, secureContextOf } from './ca-bundle.ts'
import { guardedConnector, type Resolve } from './guarded-connector.ts'
import { abortReason, OutboundCall, type OutboundRequest, type ResponseSink } from './outbound-call.ts'
import { OutboundError } from './outbound-error.ts'

export interface OutboundOptions {
  readonly clock?: Clock
  /** Also for targets that do not bring their own. Absent: everything may be called. */
  readonly policy?: AddressPolicy
  readonly resolve?: Resolve
  /** Connections per backend for requests; streams are not counted. */
  readonly maxConnections?: number
  /** Requests that may wait for a connection, per backend. */
  readonly maxWaiting?: number
  readonly connectTimeoutMs?: number
  /** From the request to the headers of its answer. A caller's own limits come through its signal. */
  readonly headersTimeoutMs?: number
  /** Silence inside the answer to a request. Streams have none. */
  readonly bodyTimeoutMs?: number
  /** How long an unused connection is kept when the backend does not say. Below the 5 s at which many servers close. */
  readonly keepAliveMs?: number
  /** Pools that were not used for this long are closed. */
  readonly poolIdleMs?: number
}

export interface TargetOptions {
  /** Scheme, host and port; a path is ignored. */
  readonly url: string
  readonly ca?: CaBundle | undefined
  readonly serverName?: string | undefined
  readonly policy?: AddressPolicy | undefined
}

/** One backend. Cheap to keep: its connections come with use and go without. */
export interface Target {
  readonly origin: string
  /**
   * Sends one request and gives the answer to the sink. Resolves when the answer is complete; rejects with an OutboundError, with
   * `aborted`, with the reason of the signal when it is a coded error, or with what the sink threw. Never retries.
   */
  send(request: OutboundRequest, sink: ResponseSink): Promise<void>
}

export interface Outbound extends AsyncDisposable {
  /** The same target for the same options. Throws `backend_blocked` when the policy forbids the host as it is written. */
  target(options: TargetOptions): Target
  readonly stats: { readonly pools: number; readonly inFlight: number }
  /** Breaks off what is in work. */
  close(): Promise<void>
}

type Settings = Required<Omit<OutboundOptions, 'policy' | 'resolve'>> & Pick<OutboundOptions, 'policy' | 'resolve'>

const DEFAULTS = {
  clock: systemClock,
  maxConnections: 128,
  maxWaiting: 1_024,
  connectTimeoutMs: 10_000,
  headersTimeoutMs: 600_000,
  bodyTimeoutMs: 600_000,
  keepAliveMs: 4_000,
  poolIdleMs: 60_000,
}

type Purpose = 'request' | 'stream'

interface OpenPool {
  readonly pool: Pool
  inFlight: number
  lastUsedAt: number
}

export function createOutbound(options: OutboundOptions = {}): Outbound {
  const shared: Shared = { settings: { ...DEFAULTS, ...options }, open: new Set(), closed: false, onOpen: armSweep }
  const { clock, poolIdleMs } = shared.settings
  const targets = new Map<string, PooledTarget>()
  let sweep: Timer | undefined

  /** One timer, and only while there are pools. A target without pools is forgotten; whoever still holds it may use it again. */
  function armSweep(): void {
    sweep ??= clock.setTimer(poolIdleMs, () => {
      sweep = undefined
      for (const target of shared.open) target.closeIdle(clock.monotonic() - poolIdleMs)
      for (const [key, target] of targets) if (!shared.open.has(target)) targets.delete(key)
      if (shared.open.size > 0) armSweep()
    })
  }

  async function close(): Promise<void> {
    shared.closed = true
    sweep?.cancel()
    targets.clear()
    await Promise.all([...shared.open].map((target) => target.close()))
  }

  return {
    target(given) {
      const policy = given.policy ?? options.policy
      const origin = vettedOrigin(given.url, policy)
      const key = JSON.stringify([origin, given.ca?.id, given.serverName, policy])
      let target = targets.get(key)
      if (target === undefined) {
        target = new PooledTarget(shared, { ...given, url: origin, policy })
        targets.set(key, target)
      }
      return target
    },
    get stats() {
      let pools = 0
      let inFlight = 0
      for (const target of shared.open) {
        pools += target.pools.size
        for (const pool of target.pools.values()) inFlight += pool.inFlight
      }
      return { pools, inFlight }
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** What the targets of one outbound have in common. */
interface Shared {
  readonly settings: Settings
  /** Targets that have pools. */
  readonly open: Set<PooledTarget>
  closed: boolean
  readonly onOpen: () => void
}

class PooledTarget implements Target {
  readonly origin: string
  readonly pools = new Map<Purpose, OpenPool>()
  readonly #shared: Shared
  readonly #options: TargetOptions

  constructor(shared: Shared, options: TargetOptions) {
    this.origin = options.url
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
    const call = new OutboundCall({ origin: this.origin, request, sink, onSettled: () => this.#settled(open) })
    const { method, path, headers, body = null, headersTimeoutMs = null, bodyTimeoutMs = null } = request
    const limits = { headersTimeout: headersTimeoutMs, bodyTimeout: bodyTimeoutMs }
    open.pool.dispatch({ method, path, headers, body: asBuffer(body), ...limits }, call)
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

  #settled(open: OpenPool): void {
    open.inFlight--
    open.lastUsedAt = this.#shared.settings.clock.monotonic()
  }

  #open(purpose: Purpose): OpenPool {
    const { clock, maxConnections, headersTimeoutMs, bodyTimeoutMs, keepAliveMs, connectTimeoutMs, resolve } = this.#shared.settings
    const { ca, serverName, policy } = this.#options
    const secureContext = ca === undefined ? undefined : secureContextOf(ca)
    const pool = new Pool(this.origin, {
      connect: guardedConnector({ policy, resolve, clock, connectTimeoutMs, serverName, secureContext }),
      allowH2: false,
      connections: purpose === 'request' ? maxConnections : null,
      headersTimeout: headersTimeoutMs,
      bodyTimeout: purpose === 'request' ? bodyTimeoutMs : 0,
      keepAliveTimeout: keepAliveMs,
    })
    const open: OpenPool = { pool, inFlight: 0, lastUsedAt: clock.monotonic() }
    this.pools.set(purpose, open)
    this.#shared.open.add(this)
    this.#shared.onOpen()
    return open
  }
}

const NOTHING = { sent: false, answered: false }

function vettedOrigin(url: string, policy: AddressPolicy | undefined): string {
  const verdict = vetUrl(url, policy)
  if (!verdict.ok) throw new OutboundError('backend_blocked', verdict.message, NOTHING)
  return new URL(url).origin
}

function asBuffer(body: Uint8Array | string | null): Buffer | string | null {
  if (body === null || typeof body === 'string' || Buffer.isBuffer(body)) return body
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}
