import { readFile } from 'node:fs/promises'
import type { Backend } from '@thv/gateway/backend'
import { createGateway } from '@thv/gateway/gateway'
import { addGatewayGauges } from '@thv/gateway/metrics/gateway-gauges'
import { startMetricsServer } from '@thv/gateway/metrics-server'
import { apiServerAddresses } from '@thv/http/outbound/api-server-addresses'
import { type CaBundle, parseCaBundle } from '@thv/http/outbound/ca-bundle'
import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import { mountedPath } from '@thv/kernel/mounted-path'
import { pipelineFromRunConfig } from '@thv/middleware/from-run-config'
import { mountOf, openLoginServer } from '@thv/middleware/login/login-server'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import { LateToolSource } from '@thv/middleware/pipeline/tool-source'
import { openPolicies } from '@thv/middleware/run-config/make-authorize'
import { sendsUpstreamTokens } from '@thv/middleware/run-config/make-upstream-swap'
import { protectedResourceOf } from '@thv/middleware/run-config/protected-resource-of'
import { openSharedState, type SharedState } from '@thv/middleware/run-config/shared-state'
import { isRemote, type RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import { CHECKSUM_VARIABLE } from '@thv/runconfig/run-config-mount'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import type { JsonValue, SessionStore } from '@thv/store/session-store'
import type { Logger } from '@thv/telemetry/log'
import { createMetrics, type Metrics } from '@thv/telemetry/metrics'
import { addMemoryRelease, addProcessMetrics } from '@thv/telemetry/process-metrics'
import { type BackendLocation, ENDPOINT_PATHS, localLocation, remoteLocation } from './backends/backend-location.ts'
import { createSseBackend } from './backends/sse/sse-backend.ts'
import { createStdioBackend } from './backends/stdio/stdio-backend.ts'
import { createStreamableHttpBackend } from './backends/streamable-http/streamable-http-backend.ts'
import { reportProblems } from './problem-reports.ts'
import { type Env, isInCluster, type RunnerSettings, runnerSettings } from './runner-settings.ts'
import type { Runtime } from './runtime/runtime.ts'

export interface RunnerOptions {
  readonly config: RunConfig
  /** Makes the runtime; not called when the server runs elsewhere. */
  readonly runtime: (state: SharedState | undefined) => Promise<Runtime>
  readonly lifecycle: Lifecycle
  readonly env: Env
  readonly log: Logger
  readonly clock?: Clock
  /** For calls to providers, and of documents that clients name. One of its own if absent. */
  readonly providers?: Outbound | undefined
  /** Main module of the worker that reads policies. */
  readonly workerEntry?: URL | undefined
  /** Default: this runner watches the process itself. */
  readonly addMemoryRelease?: ((metrics: Metrics, signal: AbortSignal) => unknown) | undefined
}

export interface RunningRunner {
  /** Where clients connect to. */
  readonly url: string
  readonly metricsUrl: string
  readonly backend: Backend
}

/** Time limit for draining clients, below the 75 s that Kubernetes gives between the signal and the end. */
const DRAIN_MS = 55_000
/** How long the mounted policies of a pod may take to become the right ones: the kubelet refreshes every minute or two. */
const POLICIES_MS = 180_000

/**
 * Puts a runner together and opens its door. It listens before the server behind it is up, and says in `/ready` how far that is.
 * Everything it holds open is closed by the lifecycle: the door first, then what stands behind it.
 */
export async function startRunner(options: RunnerOptions): Promise<RunningRunner> {
  const { config, lifecycle, env, log, clock = systemClock } = options
  const settings = runnerSettings(config, env, log)
  const metrics = createMetrics()
  const outbound = options.providers ?? createOutbound({ clock })
  lifecycle.onShutdown('providers', () => outbound.close())
  const awaited = env[CHECKSUM_VARIABLE] ? { limitMs: POLICIES_MS, signal: lifecycle.signal } : undefined
  const policies = await openPolicies(config, { log, metrics, clock, workerEntry: options.workerEntry, awaited })
  const state = await openSharedState({ config, env, log, metrics, clock })
  if (state !== undefined) lifecycle.onShutdown('redis', async () => void (await state[Symbol.asyncDispose]()))
  const keepsTokens = sendsUpstreamTokens(config) || policies?.current.primaryUpstreamProvider !== undefined
  const login = await openLoginServer(config, { env, log, clock, outbound, lifecycle, keepsTokens })
  const toolSource = new LateToolSource()
  const shared = { env, log, metrics, clock, outbound, policies, toolSource, redis: state?.redis }
  const pipeline = pipelineFromRunConfig(config, { ...shared, ownIssuer: login, upstreamTokens: login?.tokens })
  lifecycle.onShutdown('middleware', (signal) => pipeline.close(signal))
  const processMetrics = addProcessMetrics(metrics)
  const releasesMemory = options.addMemoryRelease ?? addMemoryRelease
  releasesMemory(metrics, lifecycle.signal)
  lifecycle.onShutdown('metrics', () => processMetrics[Symbol.dispose]())

  const opened: Runtime[] = []
  const runtime = async () => {
    const made = await options.runtime(state)
    opened.push(made)
    return made
  }
  const backend = await makeBackend({ ...options, state, runtime, clock, settings, pipeline, metrics })
  toolSource.bind(backend)
  lifecycle.onShutdown('backend', () => backend.close())
  for (const each of opened) void reportProblems({ backend, runtime: each, clock, signal: lifecycle.signal })

  const { host, port, proxy_mode: mode, name, transport, era, stateless, strict_protocol_validation: strictVersions } = config
  const telemetry = config.telemetry_config
  const diagnostics = await startMetricsServer({ host, port: telemetry?.prometheus_port ?? DIAGNOSTICS_PORT, metrics, log })
  lifecycle.onShutdown('diagnostics', (signal) => diagnostics.close(signal))

  const metricsHere = telemetry?.enable_prometheus_metrics_path === true && telemetry.metrics_on_transport_port
  const { allowed_origins: allowedOrigins, allowed_hosts: allowedHosts, service_hosts: serviceHosts } = config
  const hosts = { host, port, allowedOrigins, allowedHosts, serviceHosts, podName: isInCluster(env) ? env['HOSTNAME'] : undefined }
  const server = { name, transport, ...hosts, mode, era, stateless, strictVersions, metricsHere, resource: protectedResourceOf(config) }
  const gateway = createGateway({
    ...{ backend, pipeline, log, metrics, clock, server },
    ...(login !== undefined && { mount: mountOf(login) }),
    ...(isInCluster(env) ? {} : LEAVES_AT_ONCE),
  })
  addGatewayGauges(metrics, { backend, gateway, server: name, transport })
  const address = await gateway.listen()
  lifecycle.onShutdown('clients', (signal) => gateway.drain(signal), { timeoutMs: DRAIN_MS })
  const url = `${address.url}${mode === 'sse' ? '/sse' : '/mcp'}`
  log.info('listening', { url, server: name, transport, metrics: `${diagnostics.address.url}/metrics` })
  return { url, metricsUrl: `${diagnostics.address.url}/metrics`, backend }
}

/** Without a cluster there is no endpoint to be removed first, and a user waits. */
const LEAVES_AT_ONCE = { limits: { lameDuckMs: 0 }, httpLimits: { drainIdleMs: 0 } }

/** As in ToolHive (Go). */
const DIAGNOSTICS_PORT = 9464

interface BackendDeps extends Omit<RunnerOptions, 'runtime'> {
  readonly runtime: () => Promise<Runtime>
  readonly clock: Clock
  readonly settings: RunnerSettings
  readonly pipeline: Pipeline
  readonly metrics: Metrics
  readonly state: SharedState | undefined
}

async function makeBackend(deps: BackendDeps): Promise<Backend> {
  const { config, pipeline, clock, log, metrics, settings } = deps
  if (config.transport === 'stdio') {
    const runtime = await openRuntime(deps)
    return createStdioBackend({ runtime, config: stdioSettings(config, settings), pipeline, store: openStore(deps), clock, log, metrics })
  }
  const outbound = createOutbound({ clock })
  deps.lifecycle.onShutdown('connections', () => outbound.close())
  const location = await makeLocation(deps, outbound)
  const info = { name: config.name, transport: config.transport }
  const shared = { info, location, pipeline, clock, log, limits: settings.limits, watches: !isRemote(config) || settings.watchesRemote }
  if (config.transport === 'sse') {
    const endpoint = { endpointPrefix: config.endpoint_prefix ?? '', trustProxyHeaders: config.trust_proxy_headers }
    return createSseBackend({ ...shared, endpoint })
  }
  const recoveries = metrics.counter({
    name: 'toolhive_mcp_session_recoveries_total',
    help: 'Sessions that the backend had forgotten, by whether they could be initialized again.',
    labels: ['outcome'],
  })
  return createStreamableHttpBackend({ ...shared, store: openStore(deps), onRecovered: (outcome) => recoveries.with(outcome).inc() })
}

async function makeLocation(deps: BackendDeps, outbound: Outbound): Promise<BackendLocation> {
  const { config, clock, log, env } = deps
  const path = config.transport === 'sse' ? ENDPOINT_PATHS.sse : ENDPOINT_PATHS['streamable-http']
  const blockedAddresses = apiServerAddresses({ env })
  if (isRemote(config)) return remoteLocation({ config, outbound, path, ca: await readCaBundle(config, log), blockedAddresses })
  // Not the signal of the lifecycle: that one aborts while calls are still to be finished.
  const closing = new AbortController()
  const runtime = await openRuntime(deps)
  deps.lifecycle.onShutdown('server', () => closing.abort(new ThvError('aborted', 'the runner is stopping')))
  // On the local platform servers run on loopback, and many then reject every Host that is not a loopback name (DNS rebinding).
  const asLocalhost = Boolean(env['THV_RESOLVER'])
  return localLocation({ runtime, outbound, path, asLocalhost, clock, log, signal: closing.signal })
}

async function openRuntime({ runtime, lifecycle }: BackendDeps): Promise<Runtime> {
  const opened = await runtime()
  lifecycle.onShutdown('runtime', () => opened.close())
  return opened
}

function openStore<T extends JsonValue>({ clock, lifecycle, state }: BackendDeps): SessionStore<T> {
  const store = state?.sessions<T>() ?? createMemorySessionStore<T>({ clock })
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
