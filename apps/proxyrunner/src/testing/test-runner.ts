import type { Backend } from '@thv/gateway/backend'
import type { EndpointConfig } from '@thv/gateway/endpoints/endpoint-url'
import { createGateway, type Gateway, type GatewayLimits, type GatewayServer, type Route } from '@thv/gateway/gateway'
import { localAddress } from '@thv/gateway/relay/backend-address'
import type { HttpBackendLimits } from '@thv/gateway/relay/relay-limits'
import type { HttpSession, HttpSessionStore } from '@thv/gateway/sessions/session-record'
import { createOutbound, type OutboundOptions } from '@thv/http/outbound/outbound'
import type { HttpLimits } from '@thv/http/server/http-limits'
import { type Clock, systemClock } from '@thv/kernel/clock'
import type { Middleware } from '@thv/middleware/pipeline/middleware'
import { compilePipeline, type Pipeline } from '@thv/middleware/pipeline/pipeline'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import { createMetrics, type Metrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import type { BackendLocation } from '../backends/backend-location.ts'
import { createSseBackend } from '../backends/sse/sse-backend.ts'
import { createStreamableHttpBackend } from '../backends/streamable-http/streamable-http-backend.ts'

export interface TestRunner extends AsyncDisposable {
  /** Of the MCP endpoint. */
  readonly url: string
  readonly base: string
  readonly gateway: Gateway
  readonly backend: Backend
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
  readonly middleware?: readonly Middleware[]
  /** Instead of `middleware`. The caller closes it. */
  readonly pipeline?: Pipeline
  readonly limits?: Partial<HttpBackendLimits>
  readonly gateway?: Partial<GatewayLimits>
  readonly server?: Partial<GatewayServer>
  readonly routes?: Readonly<Record<string, Route>>
  readonly httpLimits?: Partial<HttpLimits>
  readonly outbound?: OutboundOptions
  readonly watches?: boolean
  readonly sessions?: number
  /** Instead of one in memory. */
  readonly store?: HttpSessionStore
  readonly endpoint?: Partial<EndpointConfig>
  /** Of the calls and the sessions. */
  readonly clock?: Clock
  readonly gatewayClock?: Clock
}

/** A whole runner for an HTTP backend, in this process, on a free port of loopback. */
export async function startTestRunner(options: TestRunnerOptions): Promise<TestRunner> {
  const {
    backend,
    middleware = [],
    limits = {},
    watches = false,
    transport = 'streamable-http',
    clock = systemClock,
    gatewayClock = systemClock,
  } = options
  const log = new CollectingLog()
  const outbound = createOutbound(options.outbound)
  const pipeline = options.pipeline ?? compilePipeline(middleware)
  const metrics = createMetrics()
  const store = options.store ?? createMemorySessionStore<HttpSession>({ clock, maxSessions: options.sessions ?? 1_000 })
  const location = locationOf(backend, outbound)
  const shared = { info: { name: 'test', transport }, location, pipeline, clock, log, limits, watches }
  const served =
    transport === 'sse'
      ? createSseBackend({ ...shared, endpoint: { endpointPrefix: '', trustProxyHeaders: false, ...options.endpoint } })
      : createStreamableHttpBackend({ ...shared, store })
  const gateway = createGateway({
    ...{ backend: served, pipeline, log, metrics, clock: gatewayClock },
    server: { name: 'test', transport, host: '127.0.0.1', port: 0, ...options.server },
    limits: { lameDuckMs: 0, ...options.gateway },
    httpLimits: { drainIdleMs: 0, ...options.httpLimits },
    ...(options.routes !== undefined && { routes: options.routes }),
  })
  const { url } = await gateway.listen()
  return {
    ...{ url: url + (transport === 'sse' ? '/sse' : '/mcp'), base: url, gateway, backend: served, metrics, logged: log.lines },
    async probed() {
      while (served.status.eras === undefined) await systemClock.sleep(5)
    },
    async [Symbol.asyncDispose]() {
      await gateway.drain(AbortSignal.timeout(100))
      await served.close()
      await outbound.close()
      await store.close()
    },
  }
}

function locationOf(url: string, outbound: ReturnType<typeof createOutbound>): BackendLocation {
  const parsed = new URL(url)
  return {
    current: { address: localAddress(parsed, parsed.pathname), target: outbound.target({ url: parsed.origin }) },
    state: { ready: true, message: '', generation: 1 },
    onChange: () => {},
  }
}
