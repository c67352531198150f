import { isLoopbackHost, parseAuthority } from '@thv/http/authority'
import { headerText } from '@thv/http/header-map'
import { RequestError } from '@thv/http/http-errors'
import type { Exchange } from '@thv/http/server/exchange'
import { answerHandlerFailure } from '@thv/http/server/handler-failure'
import { createHealth } from '@thv/http/server/health'
import { createHostGuard, type HostCheck } from '@thv/http/server/host-guard'
import type { HttpLimits } from '@thv/http/server/http-limits'
import type { PeerCheck } from '@thv/http/server/peer-check'
import { sendBytes, sendProblem, sendText } from '@thv/http/server/respond'
import { createHttpServer, type ListenAddress, type ServerStats } from '@thv/http/server/server'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { type Rejection, reject, retryLater } from '@thv/mcp/wire-errors'
import type { ProtectedResource } from '@thv/middleware/authenticate/protected-resource'
import type { Awaitable } from '@thv/middleware/pipeline/middleware'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { RequestContext } from '@thv/middleware/pipeline/request-context'
import type { Log } from '@thv/telemetry/log'
import { CONTENT_TYPE, type Metrics } from '@thv/telemetry/metrics'
import type { Backend } from './backend.ts'
import { sendBrowserPage, wantsBrowserPage } from './endpoints/browser-page.ts'
import { allowCrossOrigin } from './endpoints/cross-origin.ts'
import { createMcpEndpoint } from './endpoints/mcp-endpoint.ts'
import { rootEndpoint } from './endpoints/root-endpoint.ts'
import { createSseRoutes } from './endpoints/sse-endpoint.ts'
import { createWellKnown } from './endpoints/well-known.ts'
import { ExchangeContext } from './exchange-context.ts'
import { createRequestMetrics } from './metrics/request-metrics.ts'
import { ownHosts } from './own-hosts.ts'

export interface GatewayOptions {
  readonly backend: Backend
  readonly pipeline: Pipeline
  readonly log: Log
  readonly metrics: Metrics
  readonly clock?: Clock
  readonly server: GatewayServer
  /** Further routes of the app, by exact path. They come before health and `/.well-known/`, and cannot replace an MCP endpoint. */
  readonly routes?: Readonly<Record<string, Route>>
  /** A route for paths that no exact one matches, after the MCP endpoints and before health and `/.well-known/`. */
  readonly mount?: Mount
  readonly limits?: Partial<GatewayLimits>
  readonly httpLimits?: Partial<HttpLimits>
  /** Which local users are served. Absent: what THV_PEER_USER says. */
  readonly peers?: PeerCheck
}

/** A route with paths of its own. */
export interface Mount extends Route {
  serves(path: string): boolean
}

/** A route that an app mounts. */
export interface Route {
  handle(exchange: Exchange, context: RequestContext): Awaitable<void>
  /** True: Host and Origin are checked and the pipeline's `open` runs first, as for the MCP endpoints. False: open to everyone. */
  readonly guarded: boolean
}

/** The configuration of the server itself. */
export interface GatewayServer {
  /** For metrics and health. */
  readonly name: string
  readonly transport: string
  /** The form to offer where the backend speaks both. Absent: both. */
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
  /** Reject unknown values of `MCP-Protocol-Version` on everything but `initialize`. */
  readonly strictVersions?: boolean
  /** Its metadata is served below `/.well-known/`. Absent: clients need no token. */
  readonly resource?: ProtectedResource | undefined
  /** Serve `/metrics` on this port too, guarded like the MCP endpoints. */
  readonly metricsHere?: boolean
}

export interface GatewayLimits {
  readonly maxBodyBytes: number
  /** How long a drain keeps answering as usual, so that load balancers notice before anyone gets 503. */
  readonly lameDuckMs: number
  readonly retryAfterMs: number
}

const LIMITS: GatewayLimits = { maxBodyBytes: 8 * 1024 * 1024, lameDuckMs: 2_000, retryAfterMs: 2_000 }

export interface Gateway {
  listen(): Promise<ListenAddress>
  /**
   * Reports not ready but keeps answering while load balancers notice; then takes no new work and closes all connections. Calls under
   * way end by themselves until the signal aborts.
   */
  drain(signal: AbortSignal): Promise<void>
  readonly stats: ServerStats
}

interface Endpoint {
  readonly route: string
  readonly guarded: boolean
  /** Counted as a request to an MCP endpoint. */
  readonly counted: boolean
  handle(context: ExchangeContext): Awaitable<void>
}

/** A mistake of ours, or of a middleware. The log has the cause; the client gets nothing of it. */
const SURPRISE: Rejection = { ...reject('internal_error'), httpStatus: 500 }

/**
 * MCP over HTTP, server side: routes requests, runs the pipeline's `open`, `message` and `end` around each, and answers what needs no
 * backend.
 */
export function createGateway(options: GatewayOptions): Gateway {
  const { backend, pipeline, log, metrics, clock = systemClock, server } = options
  const limits = { ...LIMITS, ...options.limits }
  const { host, port, name, transport } = server
  const allowedOrigins = server.allowedOrigins?.length ? server.allowedOrigins : undefined
  // Follows the address that the server ends up on, so it is made when it listens; no request comes before.
  let checkHost: HostCheck = () => 'host_not_allowed'
  const requests = createRequestMetrics({ metrics, server: name, transport })
  const wellKnown = createWellKnown(server.resource)
  const health = createHealth({ clock, details: () => ({ transport }) })
  const backendInfo = { name, transport }
  let leaving = false
  let draining = false
  // Health is open to everyone who reaches the port: except on loopback, the reason is in the log only.
  let isLocal = false
  health.addCheck('backend', () => {
    const { ready, message } = backend.status
    return isLocal ? { ok: ready, message } : { ok: ready }
  })
  health.addCheck('draining', () => ({ ok: !leaving }))
  const endpoints = endpointsOf(options, limits.maxBodyBytes)
  const mounted = options.mount && mountedEndpoint(options.mount)
  const page: Endpoint = { route: '/', guarded: false, counted: false, handle: answerBrowser }
  const pagePaths = ['/mcp', '/sse'].filter((path) => endpoints.get(path)?.counted === true)

  const offered = { mcp: endpoints.get('/mcp')?.counted === true, sse: endpoints.get('/sse')?.counted === true }

  /** `/` is the endpoint that the request means, unless an app mounts something there. */
  function endpointFor(exchange: Exchange): Endpoint | undefined {
    const found = endpoints.get(exchange.path)
    if (found !== undefined) return found
    if (mounted !== undefined && options.mount?.serves(exchange.path) === true) return mounted
    if (exchange.path !== '/') return undefined
    const meant = rootEndpoint(exchange, offered)
    return meant === undefined ? undefined : endpoints.get(meant)
  }

  /** The one way through the gateway: every exchange gets a context first, and `end` last. */
  async function serve(exchange: Exchange, rejection?: Rejection): Promise<void> {
    const endpoint = wantsBrowserPage(exchange) ? page : endpointFor(exchange)
    const context = new ExchangeContext(exchange, endpoint?.route ?? openRoute(exchange.path), backendInfo)
    try {
      const answering = rejection === undefined ? answer(context, endpoint) : context.reject(rejection)
      if (answering instanceof Promise) await answering
      if (!exchange.answered) await exchange.over()
    } catch (error) {
      const isSurprise = !(exchange.aborted || exchange.begun || error instanceof RequestError)
      if (isSurprise && endpoint?.guarded === true) {
        report(error, exchange)
        context.reject(SURPRISE)
      } else answerHandlerFailure(exchange, error, report)
      context.outcome = exchange.aborted ? 'aborted' : error instanceof RequestError ? 'rejected' : 'error'
    } finally {
      finish(context, endpoint)
    }
  }

  function answer(context: ExchangeContext, endpoint: Endpoint | undefined): Awaitable<void> {
    if (endpoint === undefined) return answerOpen(context)
    if (!endpoint.guarded) return endpoint.handle(context)
    const { exchange } = context
    const problem = checkHost(exchange.headers)
    if (problem !== undefined) return context.reject(reject('forbidden_host', { detail: problem }))
    if (allowedOrigins !== undefined && allowCrossOrigin(exchange)) return
    if (draining) return context.reject(retryLater('draining', limits.retryAfterMs))
    // The client's next request goes over a new connection, to another replica.
    if (leaving) exchange.response.shouldKeepAlive = false
    const opened = pipeline.open(context)
    return opened instanceof Promise ? opened.then((settled) => enter(context, endpoint, settled)) : enter(context, endpoint, opened)
  }

  function enter(context: ExchangeContext, endpoint: Endpoint, rejection: Rejection | undefined): Awaitable<void> {
    return rejection === undefined ? endpoint.handle(context) : context.reject(rejection)
  }

  /** Health and `/.well-known/` need no permission; there is nothing else without a route. */
  function answerOpen(context: ExchangeContext): void {
    const { exchange } = context
    if (health.handle(exchange) || wellKnown.handle(exchange)) return
    context.outcome = 'rejected'
    if (exchange.path === '/metrics') sendText(exchange, 'metrics are on another port\n', { status: 404 })
    else sendProblem(exchange, 404)
  }

  /** Needs no permission, but a foreign site must not read it under a name of its own. */
  function answerBrowser(context: ExchangeContext): void {
    const { exchange } = context
    const problem = checkHost(exchange.headers)
    if (problem !== undefined) {
      context.reject(reject('forbidden_host', { detail: problem }))
      return
    }
    const host = headerText(exchange.headers['host']) ?? ''
    // Another name than a loopback one is a gateway's, which may have changed scheme and path.
    const isDirect = isLocal && isLoopbackHost(parseAuthority(host)?.host ?? '')
    const options = { paths: pagePaths, authenticated: server.resource !== undefined }
    sendBrowserPage(exchange, options, isDirect ? { name, origin: `http://${host}` } : undefined)
  }

  function finish(context: ExchangeContext, endpoint: Endpoint | undefined): void {
    const { exchange, received } = context
    context.streamTimer?.cancel()
    const { method: httpMethod, status, startedAt } = exchange
    if (context.outcome === 'pending') context.outcome = exchange.aborted ? 'aborted' : status < 400 ? 'ok' : 'error'
    if (endpoint?.counted) requests.finished({ httpMethod, status, mcpMethod: received?.method, durationMs: clock.monotonic() - startedAt })
    try {
      pipeline.end(context)
    } catch (error) {
      report(error, exchange)
    }
  }

  /** The HTTP server has answered by itself. */
  function observe(exchange: Exchange): void {
    const endpoint = endpointFor(exchange)
    const context = new ExchangeContext(exchange, endpoint?.route ?? openRoute(exchange.path), backendInfo)
    context.outcome = 'rejected'
    finish(context, endpoint)
  }

  function report(error: unknown, exchange?: Exchange): void {
    log.error('request failed', { path: exchange?.path, error: errorMessage(error) })
  }

  const http = createHttpServer({
    handler: (exchange) => serve(exchange),
    busy(exchange, why) {
      const error = draining || why === 'draining' ? 'draining' : 'pipeline_full'
      void serve(exchange, retryLater(error, limits.retryAfterMs))
    },
    onTurnedAway: observe,
    clock,
    onError: report,
    ...(options.httpLimits !== undefined && { limits: options.httpLimits }),
    ...(options.peers !== undefined && { peers: options.peers }),
  })
  return {
    async listen() {
      const address = await http.listen({ host, port })
      const { host: bound } = address
      const { allowedHosts, serviceHosts, podName } = server
      checkHost = createHostGuard({ boundHost: bound, allowedOrigins, ownHosts: ownHosts({ bound, allowedHosts, serviceHosts, podName }) })
      isLocal = isLoopbackHost(bound)
      return address
    },
    async drain(signal) {
      leaving = true
      await clock.sleep(limits.lameDuckMs, signal).catch(() => undefined) // the time limit may end it early
      draining = true
      await backend.drain(signal)
      await http.drain(signal)
    },
    get stats() {
      return http.stats
    },
  }
}

function endpointsOf(options: GatewayOptions, maxBodyBytes: number): ReadonlyMap<string, Endpoint> {
  const { backend, pipeline, log, metrics, server } = options
  const { era = 'auto', stateless = false, strictVersions = false } = server
  const endpoints = new Map<string, Endpoint>()
  const add = (route: string, handle: Endpoint['handle']) => endpoints.set(route, { route, guarded: true, counted: true, handle })
  for (const [route, { handle, guarded }] of Object.entries(options.routes ?? {}))
    endpoints.set(route, { route, guarded, counted: false, handle: (context) => handle(context.exchange, context) })
  if (backend.streamable !== false && server.mode !== 'sse') {
    const mcp = createMcpEndpoint({ backend, pipeline, log, maxBodyBytes, era, stateless, strictVersions })
    endpoints.set('/mcp/', { route: '/mcp', guarded: true, counted: true, handle: mcp })
    add('/mcp', mcp)
  }
  if (backend.sse !== undefined && server.mode !== 'streamable-http') {
    const sse = createSseRoutes({ sse: backend.sse, pipeline, log, maxBodyBytes })
    add('/sse', sse.open)
    add('/messages', sse.message)
  }
  if (server.metricsHere === true) add('/metrics', ({ exchange }) => sendMetrics(exchange, metrics))
  return endpoints
}

function mountedEndpoint(mount: Mount): Endpoint {
  const { guarded } = mount
  return { route: '/oauth', guarded, counted: false, handle: (context) => mount.handle(context.exchange, context) }
}

function openRoute(path: string): string {
  if (path === '/health' || path === '/ready') return path
  return path.startsWith('/.well-known/') ? '/.well-known' : ''
}

export function sendMetrics(exchange: Exchange, metrics: Metrics): void {
  sendBytes(exchange, 200, { type: CONTENT_TYPE, body: Buffer.from(metrics.render()), headers: ['Cache-Control', 'no-store'] })
}
