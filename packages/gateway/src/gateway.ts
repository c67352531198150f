import { isLoopbackHost } from '@thv/http/authority'
import type { Exchange } from '@thv/http/server/exchange'
import { createHealth } from '@thv/http/server/health'
import { createHostGuard, type HostCheck } from '@thv/http/server/host-guard'
import type { HttpLimits } from '@thv/http/server/http-limits'
import { sendBytes, sendProblem, sendText } from '@thv/http/server/respond'
import { createHttpServer, type ListenAddress, type ServerStats } from '@thv/http/server/server'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { reject, retryLater } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { Log } from '@thv/telemetry/log'
import { CONTENT_TYPE, type Metrics } from '@thv/telemetry/metrics'
import type { Backend } from './backend.ts'
import { createMcpEndpoint } from './endpoints/mcp-endpoint.ts'
import { createSseRoutes } from './endpoints/sse-endpoint.ts'
import { createWellKnown, type ResourceMetadata } from './endpoints/well-known.ts'
import { createRequestMetrics } from './metrics/request-metrics.ts'
import { ownHosts } from './own-hosts.ts'
import { sendRejection } from './response/send-rejection.ts'

export interface GatewayOptions {
  readonly backend: Backend
  readonly pipeline: Pipeline
  readonly log: Log
  readonly metrics: Metrics
  readonly clock?: Clock
  readonly server: GatewayServer
  readonly limits?: Partial<GatewayLimits>
  readonly httpLimits?: Partial<HttpLimits>
}

/** What the configuration says about the door itself. */
export interface GatewayServer {
  /** For metrics and health. */
  readonly name: string
  readonly transport: string
  /** Which of the two forms is offered, where the upstream speaks both. Absent: all that it speaks. */
  readonly mode?: 'sse' | 'streamable-http'
  readonly host: string
  readonly port: number
  readonly allowedOrigins?: readonly string[]
  /** Hosts that the user adds to those of `ownHosts`. */
  readonly allowedHosts?: readonly string[]
  /** Full cluster names of the Services in front of it. */
  readonly serviceHosts?: readonly string[]
  readonly podName?: string | undefined
  readonly era?: 'auto' | 'legacy' | 'modern'
  readonly stateless?: boolean
  readonly resource?: ResourceMetadata | undefined
  /** Serve `/metrics` here too, for everybody who gets in. Otherwise it is on a port of its own. */
  readonly metricsHere?: boolean
}

export interface GatewayLimits {
  readonly maxBodyBytes: number
  /** How long a drain goes on answering as ever, so that load balancers see it leave before anybody is refused. */
  readonly lameDuckMs: number
  readonly retryAfterMs: number
}

const LIMITS: GatewayLimits = { maxBodyBytes: 8 * 1024 * 1024, lameDuckMs: 2_000, retryAfterMs: 2_000 }

export interface Gateway {
  listen(): Promise<ListenAddress>
  /**
   * Not ready, but still at work while load balancers notice; then no new work, then the end of all connections; what is under way ends
   * by itself until the signal aborts.
   */
  drain(signal: AbortSignal): Promise<void>
  readonly stats: ServerStats
}

type Route = (exchange: Exchange) => Promise<string | undefined>

/** The HTTP side of the runner: who may come in, which door it is, and what is answered without asking the backend. */
export function createGateway(options: GatewayOptions): Gateway {
  const { backend, pipeline, log, metrics, clock = systemClock, server } = options
  const limits = { ...LIMITS, ...options.limits }
  const { maxBodyBytes } = limits
  const { host, port, name, transport, era = 'auto', stateless = false } = server
  const allowedOrigins = server.allowedOrigins?.length ? server.allowedOrigins : undefined
  // Follows the address that the server ends up on, so it is made when it listens; no request comes before.
  let checkHost: HostCheck = () => 'host_not_allowed'
  const requests = createRequestMetrics({ metrics, server: name, transport })
  const wellKnown = createWellKnown(server.resource)
  const health = createHealth({ clock, details: () => ({ transport }) })
  let leaving = false
  let draining = false
  // Anybody who can reach the port may ask: elsewhere than on one's own machine the reason is in the log only.
  let saysWhy = false
  health.addCheck('backend', () => {
    const { ready, message } = backend.status
    return saysWhy ? { ok: ready, message } : { ok: ready }
  })
  health.addCheck('draining', () => ({ ok: !leaving }))

  const routes = new Map<string, Route>()
  if (backend.streamable !== false && server.mode !== 'sse') {
    const mcp = createMcpEndpoint({ backend, pipeline, log, maxBodyBytes, era, stateless })
    routes.set('/mcp', mcp).set('/mcp/', mcp)
  }
  if (backend.sse !== undefined && server.mode !== 'streamable-http') {
    const sse = createSseRoutes({ sse: backend.sse, pipeline, log, maxBodyBytes })
    routes.set('/sse', sse.open).set('/messages', sse.message)
  }
  if (server.metricsHere === true) routes.set('/metrics', async (exchange) => sendMetrics(exchange, metrics))

  async function serve(route: Route, exchange: Exchange): Promise<void> {
    const mcpMethod = await route(exchange)
    const { method: httpMethod, status, startedAt } = exchange
    requests.finished({ httpMethod, status, mcpMethod, durationMs: clock.monotonic() - startedAt })
  }

  function handle(exchange: Exchange): void | Promise<void> {
    const { path, headers } = exchange
    const route = routes.get(path)
    if (route === undefined) {
      if (health.handle(exchange) || wellKnown.handle(exchange)) return
      if (path === '/metrics') sendText(exchange, 'metrics are on another port\n', { status: 404 })
      else sendProblem(exchange, 404)
      return
    }
    const problem = checkHost(headers)
    if (problem !== undefined) sendRejection(exchange, reject('forbidden_host', { detail: problem }))
    else if (draining) sendRejection(exchange, retryLater('draining', limits.retryAfterMs))
    else {
      // The next request of this client finds its way to another one.
      if (leaving) exchange.response.shouldKeepAlive = false
      return serve(route, exchange)
    }
  }

  const http = createHttpServer({
    handler: handle,
    busy(exchange, why) {
      const error = draining || why === 'draining' ? 'draining' : 'pipeline_full'
      sendRejection(exchange, retryLater(error, limits.retryAfterMs))
    },
    clock,
    onError: (error, exchange) => log.error('a request failed', { path: exchange?.path, error: errorMessage(error) }),
    ...(options.httpLimits !== undefined && { limits: options.httpLimits }),
  })
  return {
    async listen() {
      const address = await http.listen({ host, port })
      const { host: bound } = address
      const { allowedHosts, serviceHosts, podName } = server
      checkHost = createHostGuard({ boundHost: bound, allowedOrigins, ownHosts: ownHosts({ bound, allowedHosts, serviceHosts, podName }) })
      saysWhy = isLoopbackHost(bound)
      return address
    },
    async drain(signal) {
      leaving = true
      await clock.sleep(limits.lameDuckMs, signal).catch(() => undefined) // a limit that is over is no failure
      draining = true
      await backend.drain(signal)
      await http.drain(signal)
    },
    get stats() {
      return http.stats
    },
  }
}

export async function sendMetrics(exchange: Exchange, metrics: Metrics): Promise<undefined> {
  sendBytes(exchange, 200, { type: CONTENT_TYPE, body: Buffer.from(metrics.render()), headers: ['Cache-Control', 'no-store'] })
}
