import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import { type AddressPolicy, vetUrl } from './address-policy.ts'
import type { CaBundle } from './ca-bundle.ts'
import { type ConnectHook, connectHookFromEnv } from './connect-hook.ts'
import type { Resolve } from './guarded-connector.ts'
import type { OutboundRequest, ResponseSink } from './outbound-call.ts'
import { OutboundError } from './outbound-error.ts'
import { PooledTarget, type SharedByTargets } from './pooled-target.ts'

export interface OutboundOptions {
  readonly clock?: Clock
  /** Also for targets that do not bring their own. Absent: everything may be called. */
  readonly policy?: AddressPolicy
  readonly resolve?: Resolve
  /** Absent: what THV_RESOLVER says. */
  readonly connectHook?: ConnectHook
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
  /** Instead of the host and port of the URL. */
  readonly hostHeader?: string | undefined
}

/** One backend. Cheap to keep: its connections come with use and go without. */
export interface Target {
  readonly origin: string
  /** The origin as the backend sees it, by its Host header. */
  readonly seenOrigin: string
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

export function createOutbound(options: OutboundOptions = {}): Outbound {
  const connectHook = options.connectHook ?? connectHookFromEnv()
  const settings = { ...DEFAULTS, ...options, ...(connectHook !== undefined && { connectHook }) }
  const shared: SharedByTargets = { settings, open: new Set(), closed: false, onOpen: armSweep }
  const { clock, poolIdleMs } = shared.settings
  const targets = new Map<string, PooledTarget>()
  let sweep: Timer | undefined

  /** One timer, and only while there are pools. A target without pools is forgotten; a caller that still holds it may use it again. */
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
      const key = JSON.stringify([origin, given.ca?.id, given.serverName, policy, given.hostHeader])
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

function vettedOrigin(url: string, policy: AddressPolicy | undefined): string {
  const verdict = vetUrl(url, policy)
  if (!verdict.ok) throw new OutboundError('backend_blocked', verdict.message, { sent: false, answered: false })
  return new URL(url).origin
}
