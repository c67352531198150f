import { readFile } from 'node:fs/promises'
import type { Upstream } from '@thv/gateway/backend'
import { createFront } from '@thv/gateway/gateway'
import { addRunnerGauges } from '@thv/gateway/metrics/gateway-gauges'
import { startDiagnostics } from '@thv/gateway/metrics-server'
import { type CaBundle, parseCaBundle } from '@thv/http/outbound/ca-bundle'
import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import { mountedPath } from '@thv/kernel/mounted-path'
import { buildChain } from '@thv/middleware/from-run-config'
import type { Chain } from '@thv/middleware/pipeline/pipeline'
import { isRemote, type RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import type { JsonValue, SessionStore } from '@thv/store/session-store'
import type { Logger } from '@thv/telemetry/log'
import { createMetrics, type Metrics } from '@thv/telemetry/metrics'
import { addProcessMetrics } from '@thv/telemetry/process-metrics'
import { type BackendPlace, ENDPOINT_PATHS, localPlace, remotePlace } from './backends/backend-location.ts'
import { createSseUpstream } from './backends/sse/sse-backend.ts'
import { createStdioUpstream } from './backends/stdio/stdio-backend.ts'
import { createHttpUpstream } from './backends/streamable-http/streamable-http-backend.ts'
import { type Env, isInCluster, type RunnerSettings, runnerSettings } from './runner-settings.ts'
import type { Runtime } from './runtime/runtime.ts'

export interface RunnerOptions {
  readonly config: RunConfig
  /** Makes the runtime; not called when the server runs elsewhere. */
  readonly runtime: () => Promise<Runtime>
  readonly lifecycle: Lifecycle
  readonly env: Env
  readonly log: Logger
  readonly clock?: Clock
}

export interface RunningRunner {
  /** Where clients connect to. */
  readonly url: string
  readonly metricsUrl: string
  readonly upstream: Upstream
}

/** What the drain of clients may take of the time that Kubernetes gives between the signal and the end (decision 46: 75 s). */
const DRAIN_MS = 55_000

/**
 * Puts a runner together and opens its door. It listens before the server behind it is up, and says in `/ready` how far that is.
 * Everything it holds open is closed by the lifecycle: the door first, then what stands behind it.
 */
export async function startRunner(options: RunnerOptions): Promise<RunningRunner> {
  const { config, lifecycle, env, log, clock = systemClock } = options
  const settings = runnerSettings(config, env, log)
  const chain = buildChain(config, { env, log })
  const metrics = createMetrics()
  const processMetrics = addProcessMetrics(metrics)
  lifecycle.onShutdown('metrics', () => processMetrics[Symbol.dispose]())

  const upstream = await makeUpstream({ ...options, clock, settings, chain, metrics })
  lifecycle.onShutdown('backend', () => upstream.close())

  const { host, port, proxy_mode: mode, name, transport, era, stateless, allowed_origins: allowedOrigins } = config
  const telemetry = config.telemetry_config
  const diagnostics = await startDiagnostics({ host, port: telemetry?.prometheus_port ?? DIAGNOSTICS_PORT, metrics, log })
  lifecycle.onShutdown('diagnostics', (signal) => diagnostics.close(signal))

  const metricsHere = telemetry?.enable_prometheus_metrics_path === true && telemetry.metrics_on_transport_port
  const server = { name, transport, host, port, mode, era, stateless, allowedOrigins, metricsHere }
  const front = createFront({ upstream, chain, log, metrics, clock, server, ...(isInCluster(env) ? {} : LEAVES_AT_ONCE) })
  addRunnerGauges(metrics, { upstream, front, server: name, transport })
  const address = await front.listen()
  lifecycle.onShutdown('clients', (signal) => front.drain(signal), { timeoutMs: DRAIN_MS })
  const url = `${address.url}${mode === 'sse' ? '/sse' : '/mcp'}`
  log.info('listening', { url, server: name, transport, metrics: `${diagnostics.address.url}/metrics` })
  return { url, metricsUrl: `${diagnostics.address.url}/metrics`, upstream }
}

/** Without a cluster nobody has to notice first, and somebody sits there and waits. */
const LEAVES_AT_ONCE = { limits: { lameDuckMs: 0 }, httpLimits: { drainIdleMs: 0 } }

/** As the original's. */
const DIAGNOSTICS_PORT = 9464

interface UpstreamDeps extends RunnerOptions {
  readonly clock: Clock
  readonly settings: RunnerSettings
  readonly chain: Chain
  readonly metrics: Metrics
}

async function makeUpstream(deps: UpstreamDeps): Promise<Upstream> {
  const { config, chain, clock, log, metrics, settings } = deps
  if (config.transport === 'stdio') {
    const runtime = await openRuntime(deps)
    return createStdioUpstream({ runtime, config: stdioSettings(config, settings), chain, store: openStore(deps), clock, log, metrics })
  }
  const outbound = createOutbound({ clock })
  deps.lifecycle.onShutdown('connections', () => outbound.close())
  const place = await makePlace(deps, outbound)
  const shared = { place, chain, clock, log, limits: settings.limits, watches: !isRemote(config) || settings.watchesRemote }
  if (config.transport === 'sse') {
    const endpoint = { endpointPrefix: config.endpoint_prefix ?? '', trustProxyHeaders: config.trust_proxy_headers }
    return createSseUpstream({ ...shared, endpoint })
  }
  const recoveries = metrics.counter({
    name: 'toolhive_mcp_session_recoveries_total',
    help: 'Sessions that the backend had forgotten, by whether they could be begun anew.',
    labels: ['outcome'],
  })
  return createHttpUpstream({ ...shared, store: openStore(deps), onRecovered: (outcome) => recoveries.with(outcome).inc() })
}

async function makePlace(deps: UpstreamDeps, outbound: Outbound): Promise<BackendPlace> {
  const { config, clock, log } = deps
  const path = config.transport === 'sse' ? ENDPOINT_PATHS.sse : ENDPOINT_PATHS['streamable-http']
  if (isRemote(config)) return remotePlace({ config, outbound, path, ca: await readCaBundle(config, log) })
  // Not the signal of the lifecycle: that one aborts while calls are still to be finished.
  const closing = new AbortController()
  const runtime = await openRuntime(deps)
  deps.lifecycle.onShutdown('server', () => closing.abort(new ThvError('aborted', 'the runner is stopping')))
  return localPlace({ runtime, outbound, path, clock, log, signal: closing.signal })
}

async function openRuntime({ runtime, lifecycle }: UpstreamDeps): Promise<Runtime> {
  const opened = await runtime()
  lifecycle.onShutdown('runtime', () => opened.close())
  return opened
}

function openStore<T extends JsonValue>({ clock, lifecycle }: UpstreamDeps): SessionStore<T> {
  const store = createMemorySessionStore<T>({ clock })
  lifecycle.onShutdown('sessions', () => store.close())
  return store
}

async function readCaBundle({ remote_ca_bundle_path: path }: RunConfig, log: Logger): Promise<CaBundle | undefined> {
  if (path === undefined) return undefined
  const pem = await readFile(mountedPath(path), 'utf8').catch((error: unknown) => {
    throw runConfigError('run_config_invalid', `remote_ca_bundle_path: ${path} cannot be read: ${errorMessage(error)}`)
  })
  const bundle = parseCaBundle(pem, { name: path })
  for (const subject of bundle.expired) log.warn('a certificate of the CA bundle has run out', { path, subject })
  return bundle
}

function stdioSettings(config: RunConfig, { sessionTtlMs, limits }: RunnerSettings) {
  return {
    name: config.name,
    era: config.era,
    isolation: config.stdio_isolation,
    maxProcesses: config.stdio_max_processes,
    sessionTtlMs,
    endpointPrefix: config.endpoint_prefix ?? '',
    trustProxyHeaders: config.trust_proxy_headers,
    ...(limits.idleMs !== undefined && { idleTimeoutMs: limits.idleMs }),
  }
}
