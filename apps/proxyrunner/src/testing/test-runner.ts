import type { Upstream } from '@thv/gateway/backend'
import type { EndpointConfig } from '@thv/gateway/endpoints/endpoint-url'
import { createFront, type Front, type FrontLimits, type FrontServer } from '@thv/gateway/gateway'
import { localAddress } from '@thv/gateway/relay/backend-address'
import type { HttpUpstreamLimits } from '@thv/gateway/relay/relay-limits'
import type { HttpSession } from '@thv/gateway/sessions/session-record'
import { createOutbound, type OutboundOptions } from '@thv/http/outbound/outbound'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { compileChain, type Link } from '@thv/middleware/pipeline/pipeline'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import { createMetrics, type Metrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import type { BackendPlace } from '../backends/backend-location.ts'
import { createSseUpstream } from '../backends/sse/sse-backend.ts'
import { createHttpUpstream } from '../backends/streamable-http/streamable-http-backend.ts'

export interface TestRunner extends AsyncDisposable {
  /** Of the MCP endpoint. */
  readonly url: string
  readonly base: string
  readonly front: Front
  readonly upstream: Upstream
  readonly metrics: Metrics
  readonly logged: readonly string[]
  /** The backend has been asked what it speaks, so that it gets no other requests than those of the test. */
  probed(): Promise<void>
}

export interface TestRunnerOptions {
  /** Of the backend's endpoint. */
  readonly backend: string
  /** Streamable HTTP unless told otherwise. */
  readonly transport?: 'streamable-http' | 'sse'
  readonly links?: readonly Link[]
  readonly limits?: Partial<HttpUpstreamLimits>
  readonly front?: Partial<FrontLimits>
  readonly door?: Partial<FrontServer>
  readonly outbound?: OutboundOptions
  readonly watches?: boolean
  readonly sessions?: number
  readonly endpoint?: Partial<EndpointConfig>
  /** Of the calls and the sessions. */
  readonly clock?: Clock
  readonly frontClock?: Clock
}

/** A whole runner for an HTTP backend, in this process, on a free port of loopback. */
export async function startTestRunner(options: TestRunnerOptions): Promise<TestRunner> {
  const {
    backend,
    links = [],
    limits = {},
    watches = false,
    transport = 'streamable-http',
    clock = systemClock,
    frontClock = systemClock,
  } = options
  const log = new CollectingLog()
  const outbound = createOutbound(options.outbound)
  const chain = compileChain(links)
  const metrics = createMetrics()
  const store = createMemorySessionStore<HttpSession>({ clock, maxSessions: options.sessions ?? 1_000, evictIdleMs: 3_600_000 })
  const place = placeOf(backend, outbound)
  const shared = { place, chain, clock, log, limits, watches }
  const upstream =
    transport === 'sse'
      ? createSseUpstream({ ...shared, endpoint: { endpointPrefix: '', trustProxyHeaders: false, ...options.endpoint } })
      : createHttpUpstream({ ...shared, store })
  const front = createFront({
    ...{ upstream, chain, log, metrics, clock: frontClock },
    server: { name: 'test', transport, host: '127.0.0.1', port: 0, ...options.door },
    limits: { lameDuckMs: 0, ...options.front },
    httpLimits: { drainIdleMs: 0 },
  })
  const { url } = await front.listen()
  return {
    ...{ url: url + (transport === 'sse' ? '/sse' : '/mcp'), base: url, front, upstream, metrics, logged: log.lines },
    async probed() {
      while (upstream.status.eras === undefined) await systemClock.sleep(5)
    },
    async [Symbol.asyncDispose]() {
      await front.drain(AbortSignal.timeout(100))
      await upstream.close()
      await outbound.close()
      await store.close()
    },
  }
}

function placeOf(url: string, outbound: ReturnType<typeof createOutbound>): BackendPlace {
  const parsed = new URL(url)
  return {
    current: { address: localAddress(parsed, parsed.pathname), target: outbound.target({ url: parsed.origin }) },
    state: { ready: true, message: '', generation: 1 },
    onChange: () => {},
  }
}
