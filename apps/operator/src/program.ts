import { createHealth } from '@thv/http/server/health'
import { sendBytes, sendProblem } from '@thv/http/server/respond'
import { createHttpServer } from '@thv/http/server/server'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { runCommandLine, withoutExit } from '@thv/kernel/command-line'
import { tryParseDuration } from '@thv/kernel/duration'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import { createDiscovery, createKubeClient, defaultConnection, type KubeClient } from '@thv/kube'
import { KINDS } from '@thv/resources/kinds/kinds'
import { resourceTypeOf } from '@thv/resources/schema/kind-definition'
import { createLogger, type Logger, parseLogLevel } from '@thv/telemetry/log'
import { CONTENT_TYPE, createMetrics, type Metrics } from '@thv/telemetry/metrics'
import { addMemoryRelease, addProcessMetrics } from '@thv/telemetry/process-metrics'
import { Command } from 'commander'
import { createManager, type Manager } from './manager.ts'
import { type Address, type OperatorFlags, type OperatorSettings, operatorSettings } from './operator-settings.ts'

export interface ProgramEnv {
  readonly out: (text: string) => void
  readonly env: Readonly<Record<string, string | undefined>>
  readonly lifecycle: Lifecycle
  readonly clock?: Clock
  readonly log?: Logger
}

export interface Program {
  /** Runs the operator until its lifecycle ends. Fails with a ThvError. */
  parseAsync(argv: readonly string[]): Promise<void>
}

const VARIABLES = `
Variables:
  WATCH_NAMESPACE                      namespaces to watch, separated by commas (all)
  POD_NAMESPACE, POD_NAME              namespace of the Lease, and name of its holder
  POD_SERVICE_ACCOUNT                  account of the operator, which no MCP server may use (toolhive-operator)
  TOOLHIVE_RUNNER_IMAGE                image of the proxies
  TOOLHIVE_REGISTRY_API_IMAGE          image of registry servers (that of the proxies)
  TOOLHIVE_VMCP_IMAGE                  image of virtual servers, or VMCP_IMAGE (that of the proxies)
  TOOLHIVE_NPX_IMAGE                   image that runs npx:// packages; TOOLHIVE_UVX_IMAGE does so for uvx:// packages
  TOOLHIVE_PACKAGE_IMAGES              native: nodes run such packages without an image, as the local platform does
  TOOLHIVE_SERVICE_URLS                dns or address: whether URLs name a Service or its address (dns)
  TOOLHIVE_PROXY_HOST                  address that proxies listen on (0.0.0.0)
  TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS  pull secrets for all pods, separated by commas
  TOOLHIVE_DEFAULT_REDIS_ADDR          Redis for sessions of workloads that name none
  TOOLHIVE_DEFAULT_REDIS_SECRET_NAME   Secret with its password, and TOOLHIVE_DEFAULT_REDIS_SECRET_KEY (redis-password)
  TOOLHIVE_REGISTRY_EXPORT_NAMESPACES  namespaces that MCPRegistries of other namespaces may export, separated by commas, * for all (none)
  TOOLHIVE_REGISTRY_EXPORT_CLUSTER_ROLE  ClusterRole for MCPRegistries that export all namespaces
  TOOLHIVE_WEBHOOK_HOSTS               names and addresses that API servers call the admission webhook by, separated by commas
  TOOLHIVE_WEBHOOK_CONFIGURATION       ValidatingWebhookConfiguration whose caBundle the operator keeps (toolhive-operator)
  TOOLHIVE_WEBHOOK_SECRET              Secret for its certificates, in POD_NAMESPACE (toolhive-operator-webhook)
  TOOLHIVE_POD_SECURITY                most permissive level that pods may have: privileged, baseline or restricted (privileged)
  OPERATOR_OPENSHIFT                   true or false (detected)
  CLUSTER_DOMAIN                       DNS domain of the cluster (cluster.local)
  LOG_LEVEL                            debug, info, warn or error (info)

It needs the custom resource definitions: "thv crds | kubectl apply -f -".`

interface Flags extends Omit<OperatorFlags, 'leaseDuration'> {
  readonly kubeconfig?: string
  readonly context?: string
  readonly leaseDuration: string
}

export function buildProgram(env: ProgramEnv): Program {
  const program = new Command('thv-operator')
    .description(
      'Watches the ToolHive resources of a Kubernetes cluster and runs the MCP servers, proxies and registries that they declare.',
    )
    .option('--kubeconfig <file>', 'kubeconfig of the cluster (default: KUBECONFIG, the account of the pod, ~/.kube/config)')
    .option('--context <name>', 'kubeconfig context')
    .option('--metrics-bind-address <address>', 'address of /metrics; 0 turns it off', ':8080')
    .option('--health-probe-bind-address <address>', 'address of /healthz and /readyz; 0 turns them off', ':8081')
    .option('--webhook-bind-address <address>', 'address of the admission webhook; 0 turns it off', '0')
    .option('--leader-elect', 'elect a leader by a Lease; needed when several operators run', false)
    .option('--lease-duration <duration>', 'time after which another operator takes over from a silent leader', '15s')
    .option('--deny-private-remotes', 'refuse remote servers at private addresses unless they set allowPrivateEndpoint', false)
    .option('--allow-loopback-remotes', 'allow remote servers on loopback addresses; for trials', false)
    .addHelpText('after', VARIABLES)
    .allowExcessArguments(false)
    .action((flags: Flags) => operate(flags, env))
  withoutExit(program, env.out)
  return {
    parseAsync: (argv) => runCommandLine(program, argv, { message: (problem) => `${problem}; "thv-operator --help" lists what there is` }),
  }
}

async function operate(flags: Flags, { env, lifecycle, clock, log: given }: ProgramEnv): Promise<void> {
  const log = given ?? createLogger({ level: logLevel(env['LOG_LEVEL']) })
  const leaseDuration = tryParseDuration(flags.leaseDuration)
  if (leaseDuration === undefined || leaseDuration < 1_000)
    throw new ThvError('usage', '--lease-duration must be a duration of at least 1s, such as 15s')
  // Checked before anything is opened; whether this is OpenShift is asked of the server.
  operatorSettings({ ...flags, leaseDuration }, env, { openshift: false })

  const connection = await defaultConnection({ env, kubeconfig: flags.kubeconfig, context: flags.context })
  const client = createKubeClient(connection, {
    userAgent: 'thv-operator',
    onWarning: (text) => log.debug('the API server warns', { text }),
  })
  lifecycle.onShutdown('client', () => client.close())
  const openshift = await inspectServer(client, lifecycle.signal)
  const settings = operatorSettings({ ...flags, leaseDuration }, env, { openshift, server: connection.server })

  const metrics = createMetrics()
  const processMetrics = addProcessMetrics(metrics)
  addMemoryRelease(metrics, lifecycle.signal)
  lifecycle.onShutdown('metrics', () => processMetrics[Symbol.dispose]())
  const manager = createManager({ client, settings, metrics, log, ...(clock && { clock }) })
  await serveDiagnostics(settings, { manager, metrics, lifecycle, log })
  if (settings.webhook !== undefined) {
    const { serveWebhook } = await import('./webhook/webhook-server.ts')
    const isLeader = () => manager.isLeader
    serveWebhook(settings.webhook, { client, clock: clock ?? systemClock, log, lifecycle, isLeader, namespace: settings.podNamespace })
  }
  log.info('starting', { namespaces: settings.watchNamespaces ?? 'all', runnerImage: settings.runnerImage, platform: settings.platform })
  await manager.run(lifecycle)
}

/** Whether this is OpenShift. Fails with the way out when our kinds are not installed. */
async function inspectServer(client: KubeClient, signal: AbortSignal): Promise<boolean> {
  const discovery = createDiscovery(client)
  const served = await Promise.all(KINDS.map((definition) => discovery.hasResource(resourceTypeOf(definition))))
  signal.throwIfAborted()
  const missing = KINDS.filter((_, at) => !served[at]).map(({ kind }) => kind)
  if (missing.length > 0)
    throw new ThvError(
      'usage',
      `the cluster does not know ${missing.join(', ')}: install the definitions with "thv crds | kubectl apply -f -"`,
    )
  return await discovery.hasResource({ group: 'route.openshift.io', version: 'v1', kind: 'Route', plural: 'routes', namespaced: true })
}

function logLevel(text: string | undefined) {
  if (!text) return 'info'
  const level = parseLogLevel(text)
  if (level === undefined) throw new ThvError('usage', `LOG_LEVEL: "${text}" is not debug, info, warn or error`)
  return level
}

interface DiagnosticsDeps {
  readonly manager: Manager
  readonly metrics: Metrics
  readonly lifecycle: Lifecycle
  readonly log: Logger
}

async function serveDiagnostics({ healthAddress, metricsAddress }: OperatorSettings, deps: DiagnosticsDeps): Promise<void> {
  const { manager, metrics, lifecycle } = deps
  const health = createHealth({ livenessPath: '/healthz', readinessPath: '/readyz' })
  health.addCheck('caches', () => (manager.isReady ? { ok: true } : { ok: false, message: 'the caches are not filled yet' }))
  health.addCheck('running', () => ({ ok: !lifecycle.signal.aborted }))
  if (healthAddress) {
    await serve(healthAddress, 'health', deps, (exchange) => {
      if (!health.handle(exchange)) sendProblem(exchange, 404)
    })
  }
  if (metricsAddress) {
    await serve(metricsAddress, 'metrics', deps, (exchange) => {
      if (exchange.path !== '/metrics') sendProblem(exchange, 404)
      else sendBytes(exchange, 200, { type: CONTENT_TYPE, body: Buffer.from(metrics.render()), headers: ['Cache-Control', 'no-store'] })
    })
  }
}

async function serve(
  address: Address,
  name: string,
  { lifecycle, log }: DiagnosticsDeps,
  handler: Parameters<typeof createHttpServer>[0]['handler'],
): Promise<void> {
  const server = createHttpServer({
    handler,
    onError: (error) => log.error('a request could not be answered', { port: name, error: errorMessage(error) }),
    limits: { maxConnections: 64, drainIdleMs: 0 },
  })
  const { url } = await server.listen(address)
  lifecycle.onShutdown(name, async (signal) => void (await server.drain(signal)))
  log.info('listening', { port: name, url })
}
