import { hostname } from 'node:os'
import { createGateway } from '@thv/gateway/gateway'
import { addGatewayGauges } from '@thv/gateway/metrics/gateway-gauges'
import { startMetricsServer } from '@thv/gateway/metrics-server'
import type { LiveSessionRecord } from '@thv/gateway/sessions/live-sessions'
import type { Resolve } from '@thv/http/outbound/guarded-connector'
import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { tryParseDuration } from '@thv/kernel/duration'
import { errorMessage } from '@thv/kernel/errors'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import { BackendEras } from '@thv/mcp/client/http/backend-eras'
import { WorkflowFeed } from '@thv/middleware/audit/workflow-event'
import { pipelineFromRunConfig } from '@thv/middleware/from-run-config'
import { mountOf } from '@thv/middleware/login/login-server'
import { LateToolSource } from '@thv/middleware/pipeline/tool-source'
import { protectedResourceOf } from '@thv/middleware/run-config/protected-resource-of'
import { openSharedState, type SharedState } from '@thv/middleware/run-config/shared-state'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import type { JsonValue } from '@thv/store/session-store'
import type { Log } from '@thv/telemetry/log'
import { createMetrics, type Metrics } from '@thv/telemetry/metrics'
import { addMemoryRelease, addProcessMetrics } from '@thv/telemetry/process-metrics'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { RunningWorkflows } from './compose/running-workflows.ts'
import { SharedWorkflows } from './compose/shared-workflows.ts'
import { SuspendedWorkflows } from './compose/suspended-workflows.ts'
import { frontConfig, openFrontLogin, openFrontPolicies } from './config/front-config.ts'
import type { Env } from './discover/forwarded-headers.ts'
import { LiveConfig } from './live/live-config.ts'
import { healthSettings, LiveServer } from './live/live-server.ts'
import { type ClusterPlace, openLiveSource } from './live/live-source.ts'
import { StatusReporter } from './live/status-reporter.ts'
import { MemberRoster } from './members/member-roster.ts'
import { Offer } from './offer.ts'
import { SealKeys } from './seal/seal-keys.ts'
import { LocalUsedStates, SharedUsedStates } from './seal/used-states.ts'
import { statusRoutes } from './status-routes.ts'
import { viewSettings } from './view/built-view.ts'
import { ViewCache } from './view/view-cache.ts'
import { VirtualBackend } from './virtual-backend.ts'

export interface VmcpServerOptions {
  readonly config: VmcpConfig
  /** File that the configuration comes from; changes of it are taken over. */
  readonly file?: { readonly path: string; readonly text: string } | undefined
  /** Adds settings of the command line to a configuration. */
  readonly adjust?: ((config: VmcpConfig) => VmcpConfig) | undefined
  /** For `outgoingAuth.source: discovered`. */
  readonly cluster?: ClusterPlace | undefined
  readonly host: string
  readonly port: number
  readonly sessionTtlMs: number
  readonly version: string
  readonly lifecycle: Lifecycle
  readonly env: Env
  readonly log: Log
  readonly clock?: Clock
  /** Name resolution for backends; the system's unless given. */
  readonly resolve?: Resolve | undefined
  /** For questions to identity providers; one of its own unless given. */
  readonly providers?: Outbound | undefined
  /** A load balancer in front must hear of the end first; by default where `VMCP_NAMESPACE` is set. */
  readonly isPod?: boolean | undefined
  /** Main module of the worker that reads policies. */
  readonly workerEntry?: URL | undefined
  /** That replicas share; those of the configured Redis unless given. */
  readonly stores?: Pick<SharedState, 'sessions'> | undefined
  /** How long clients wait for lists that never came; a second unless given. */
  readonly firstWaitMs?: number | undefined
}

export interface RunningVmcp {
  readonly url: string
  readonly base: string
  readonly offer: Offer
  readonly live: LiveServer
}

/** Time limit for draining clients, below the 75 s that Kubernetes gives between the signal and the end. */
const DRAIN_MS = 55_000

/** Puts a virtual server together. It listens before its backends have answered, and `/readyz` says when they have. */
export async function startVmcp(options: VmcpServerOptions): Promise<RunningVmcp> {
  const { config, lifecycle, env, log, host, port, version, file, cluster, clock = systemClock } = options
  const source = openLiveSource({ config, file: file?.path, cluster, env, log, clock })
  lifecycle.onShutdown('source', () => source.close())
  const discovered = await source.feed.resolve(config)
  const front = frontConfig(config, env)
  const sealKeys = SealKeys.fromEnv(env)
  const metrics = createMetrics()
  const providers = options.providers ?? createOutbound({ clock })
  lifecycle.onShutdown('providers', () => providers.close())
  const policies = await openFrontPolicies(front, { log, metrics, clock, workerEntry: options.workerEntry })
  const state = await openSharedState({ config: front, env, log, metrics, clock })
  if (state !== undefined) lifecycle.onShutdown('redis', async () => void (await state[Symbol.asyncDispose]()))
  else log.info('sessions are kept in memory: run one replica only, or set sessionStorage.provider to redis')
  const keepsTokens = config.authServer?.disable_upstream_token_injection === false
  const login = await openFrontLogin(front, { env, log, clock, outbound: providers, lifecycle, keepsTokens })
  const toolSource = new LateToolSource()
  const workflows = new WorkflowFeed()
  const deps = { env, log, metrics, clock, outbound: providers, policies, toolSource, redis: state?.redis, workflows }
  const pipeline = pipelineFromRunConfig(front, { ...deps, ownIssuer: login, upstreamTokens: login?.tokens })
  lifecycle.onShutdown('middleware', (signal) => pipeline.close(signal))
  const processMetrics = addProcessMetrics(metrics)
  addMemoryRelease(metrics, lifecycle.signal)
  lifecycle.onShutdown('metrics', () => processMetrics[Symbol.dispose]())

  const outbound = createOutbound({ clock, ...(options.resolve !== undefined && { resolve: options.resolve }) })
  lifecycle.onShutdown('connections', () => outbound.close())
  const eras = new BackendEras({ clock, onChange: (key, { verdict }) => log.info('found out the era of a backend', { key, verdict }) })
  lifecycle.onShutdown('eras', async () => eras.close())
  const resource = protectedResourceOf(front)
  const onDemand = new Set(config.authServer?.upstreams.filter((upstream) => upstream.login_policy === 'onDemand').map(({ name }) => name))
  const vault = login && { tokens: login.tokens, issuer: config.authServer?.issuer ?? '', resource, onDemand }
  const roster = new MemberRoster({ outbound, providers, login: vault, eras, clock, log, version })
  roster.apply(discovered?.backends ?? [], healthSettings(config))
  const view = new ViewCache({ roster, settings: viewSettings(config), clock, log, firstWaitMs: options.firstWaitMs })
  const seal = sealKeys.sealFor('workflows')
  const stores = options.stores ?? state
  const shared = stores?.sessions<JsonValue>('workflow:')
  const waiting = shared === undefined ? new SuspendedWorkflows(clock, seal) : new SharedWorkflows({ store: shared, seal, clock, log })
  const used = stores?.sessions<JsonValue>('used-state:')
  if (used !== undefined) lifecycle.onShutdown('used states', () => used.close())
  const usedStates = used === undefined ? new LocalUsedStates() : new SharedUsedStates(used, log)
  const offer = new Offer({ config, roster, view, pipeline, clock, log, version, sealKeys, usedStates, waiting, policies, workflows })
  const store = stores?.sessions<LiveSessionRecord>() ?? createMemorySessionStore<LiveSessionRecord>({ clock })
  lifecycle.onShutdown('sessions', () => store.close())
  const noted = stores?.sessions<JsonValue>('running:')
  const running = noted && new RunningWorkflows({ store: noted, clock, log, replica: hostname() })
  const { sessionTtlMs } = options
  const checks = () => checkSettings(offer.config)
  const backend = new VirtualBackend({ offer, store, sessionTtlMs, checks, running, metrics: streamMetrics(metrics) })
  toolSource.bind(backend)
  lifecycle.onShutdown('backends', () => backend.close())
  addViewGauges(metrics, offer)

  const metricsPort = config.telemetry?.prometheus_port
  if (metricsPort !== undefined) {
    const diagnostics = await startMetricsServer({ host, port: metricsPort, metrics, log })
    lifecycle.onShutdown('diagnostics', (signal) => diagnostics.close(signal))
  }
  const { name, allowedHosts, serviceHosts } = config
  const hosts = { host, port, allowedHosts, serviceHosts, podName: env['VMCP_NAMESPACE'] ? env['HOSTNAME'] : undefined }
  const metricsHere = config.telemetry?.metrics_on_transport_port !== false
  const server = { name, transport: 'streamable-http', ...hosts, metricsHere, resource }
  const configured = new LiveConfig(config, file?.text, options.adjust)
  const live = new LiveServer({ live: configured, discovered, feed: source.feed, roster, view, offer, policies, env, log, metrics })
  lifecycle.onShutdown('live', () => live.close())
  const routes = statusRoutes({ offer, backend, live, version })
  const isPod = options.isPod ?? Boolean(env['VMCP_NAMESPACE'])
  const gateway = createGateway({
    ...{ backend, pipeline, log, metrics, clock, server, routes },
    ...(login !== undefined && { mount: mountOf(login) }),
    ...(isPod ? {} : LEAVES_AT_ONCE),
  })
  addGatewayGauges(metrics, { backend, gateway, server: config.name, transport: 'streamable-http' })
  const address = await gateway.listen()
  lifecycle.onShutdown('clients', (signal) => gateway.drain(signal), { timeoutMs: DRAIN_MS })
  source.start(live)
  backend.start(live.first)
  if (cluster !== undefined) startReporter({ cluster, offer, live, env, log, clock, lifecycle })
  log.info('listening', { url: `${address.url}/mcp`, server: config.name, backends: roster.size })
  return { url: `${address.url}/mcp`, base: address.url, offer, live }
}

interface Reporting {
  readonly cluster: ClusterPlace
  readonly offer: Offer
  readonly live: LiveServer
  readonly env: Env
  readonly log: Log
  readonly clock: Clock
  readonly lifecycle: Lifecycle
}

/** Reports to the VirtualMCPServer that the server runs for, if it does. */
function startReporter({ cluster, offer, live, env, log, clock, lifecycle }: Reporting): void {
  const { VMCP_NAME: name } = env
  if (!name) return
  const reporter = new StatusReporter({
    ...{ ...cluster, name, clock, log, signal: lifecycle.signal },
    intervalMs: () => tryParseDuration(offer.config.operational.failureHandling.statusReportingInterval ?? '30s') ?? 30_000,
    facts: () => ({
      members: offer.members,
      leftOut: live.discovered.leftOut,
      conflicts: offer.view.now.conflicts,
      moved: offer.view.moved,
      isDiscovering: offer.config.outgoingAuth.source === 'discovered',
      problem: live.live.state.problem,
    }),
  })
  live.onChange(() => reporter.changed())
  offer.view.onChange(() => reporter.changed())
  for (const member of offer.members) member.health.onChange(() => reporter.changed())
  offer.roster.onChange(({ joined }) => {
    for (const member of joined) member.health.onChange(() => reporter.changed())
  })
  const running = reporter.run().catch((error: unknown) => log.error('the status is not reported any more', { error: errorMessage(error) }))
  lifecycle.onShutdown('status', () => running)
}

/** Without a cluster there is no endpoint to be removed first, and a user waits. */
const LEAVES_AT_ONCE = { limits: { lameDuckMs: 0 }, httpLimits: { drainIdleMs: 0 } }

function checkSettings({ operational }: VmcpConfig) {
  const { healthCheckInterval, healthCheckTimeout } = operational.failureHandling
  const intervalMs = tryParseDuration(healthCheckInterval) ?? 30_000
  const given = healthCheckTimeout === undefined ? undefined : tryParseDuration(healthCheckTimeout)
  return { intervalMs, timeoutMs: given ?? Math.min(10_000, intervalMs / 2) }
}

function streamMetrics(metrics: Metrics) {
  const dropped = metrics.counter({
    name: 'toolhive_mcp_frames_dropped_total',
    help: 'Frames that a slow client never received.',
    labels: ['kind', 'reason'],
  })
  return { dropped: (kind: string, reason: string) => dropped.with(kind, reason).inc() }
}

function addViewGauges(metrics: Metrics, { view, roster }: Offer): void {
  const conflicts = metrics.gauge({
    name: 'toolhive_vmcp_conflicts',
    help: 'Items that are not offered as their backend lists them.',
    labels: ['outcome'],
  })
  const healthy = metrics.gauge({
    name: 'toolhive_vmcp_backend_healthy',
    help: '1 when the backend is healthy, else 0.',
    labels: ['backend'],
  })
  const callers = metrics.gauge({
    name: 'toolhive_vmcp_caller_views',
    help: 'Callers with lists of their own, the different views that they have, and the characters that those hold.',
    labels: ['of'],
  })
  metrics.onCollect(() => {
    for (const [of, value] of Object.entries(view.callers)) callers.with(of).set(value)
    for (const outcome of ['lost', 'renamed', 'unresolved', 'duplicate', 'invalid'] as const)
      conflicts.with(outcome).set(view.now.conflicts.filter((conflict) => conflict.outcome === outcome).length)
    for (const { name, health } of roster.all) healthy.with(name).set(health.status === 'healthy' ? 1 : 0)
  })
}
