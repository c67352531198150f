import { type Clock, systemClock } from '@thv/kernel/clock'
import { runCommandLine, withoutExit } from '@thv/kernel/command-line'
import { aborted } from '@thv/kernel/deadline'
import { tryParseDuration } from '@thv/kernel/duration'
import { ThvError } from '@thv/kernel/errors'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import { createKubeClient, defaultConnection } from '@thv/kube'
import { createLogger, type Logger } from '@thv/telemetry/log'
import { createMetrics } from '@thv/telemetry/metrics'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { Command, InvalidArgumentError, Option } from 'commander'
import { frontConfig, openFrontPolicies } from './config/front-config.ts'
import { loadVmcpConfig, parseVmcpConfig, readConfigText } from './config/load-vmcp-config.ts'
import { discoverOnce } from './discover/discover-once.ts'
import type { Discovered } from './discover/discovered-backends.ts'
import type { Env } from './discover/forwarded-headers.ts'
import { staticBackends } from './discover/static-backends.ts'
import { fixedBackends } from './live/backend-feed.ts'
import type { ClusterPlace } from './live/live-source.ts'
import { preview } from './preview.ts'
import { startVmcp } from './vmcp-server.ts'
import { type WorkflowFlags, workflowText } from './workflow-text.ts'

export interface ProgramEnv {
  readonly out: (text: string) => void
  readonly env: Env
  readonly lifecycle: Lifecycle
  readonly clock?: Clock
  /** For tests; else standard error. */
  readonly log?: Logger
  /** Main module of worker threads. A bundle names itself, because it has no other file. */
  readonly workerEntry?: URL
}

export interface Program {
  /** Runs the command of an argument list as in `process.argv`; a server, until its lifecycle ends. Fails with a ThvError. */
  parseAsync(argv: readonly string[]): Promise<void>
}

interface ClusterFlags {
  readonly kubeconfig?: string
  readonly namespace?: string
}

interface ServeFlags extends ClusterFlags {
  readonly config?: string
  readonly host: string
  readonly port: number
  readonly sessionTtl: number
  readonly enableAudit?: boolean
  readonly debug?: boolean
}

interface ValidateFlags extends ClusterFlags {
  readonly config?: string
  readonly connect?: boolean
}

const VERSION = '0.1.0'
const DEFAULT_TTL_MS = 30 * 60_000

export function buildProgram(env: ProgramEnv): Program {
  const program = new Command('vmcp').description('Join many MCP servers into one.')
  withoutExit(program, env.out)
  program.addOption(configOption()).addOption(debugOption())
  const serve = program
    .command('serve')
    .description('serve the virtual MCP server of a configuration file')
    .addOption(configOption())
    .addOption(debugOption())
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 for any free one', port, 4483)
    .option('--session-ttl <duration>', 'time after which an unused session ends; 0 for 30m', duration, DEFAULT_TTL_MS)
    .option(
      '--kubeconfig <file>',
      'cluster of the group, with outgoingAuth.source discovered; KUBECONFIG or the account of the pod unless given',
    )
    .option('--namespace <name>', 'namespace of the group')
    .option('--enable-audit', 'write audit events when the file configures none')
    .action((flags: ServeFlags) => runServe({ ...program.opts(), ...flags }, env))
  const validate = program
    .command('validate')
    .description('check a configuration file and print a summary')
    .addOption(configOption())
    .option('--connect', 'connect to the backends and print every name that clients would see')
    .option('--kubeconfig <file>', 'cluster of the group, for --connect with outgoingAuth.source discovered')
    .option('--namespace <name>', 'namespace of the group')
    .action((flags: ValidateFlags) => runValidate({ ...program.opts(), ...flags }, env))
  const workflow = program
    .command('workflow')
    .description('show what a composite tool of a configuration file does, without a call')
    .argument('<name>', 'name of the composite tool')
    .addOption(configOption())
    .option('--params <json>', 'arguments of the tool, for --dry-run')
    .option('--dry-run', 'print the steps in order, with conditions and arguments')
    .option('--graph', 'print the steps as a Mermaid flowchart')
    .action(async (name: string, flags: WorkflowFlags) => {
      const config = await loadVmcpConfig(fileOf({ ...program.opts(), ...flags }))
      env.out(workflowText(config.compositeTools, name, flags))
    })
  const version = program
    .command('version')
    .description('print the version')
    .action(() => env.out(`vmcp ${VERSION}\n`))
  for (const command of [serve, validate, workflow, version]) withoutExit(command, env.out)
  return { parseAsync: (argv) => runCommandLine(program, argv, { message: (problem) => `${problem}; "vmcp --help" lists the commands` }) }
}

function configOption(): Option {
  return new Option('-c, --config <file>', 'the configuration file')
}

function debugOption(): Option {
  return new Option('--debug', 'log details')
}

async function runServe(flags: ServeFlags, program: ProgramEnv): Promise<void> {
  const { env, lifecycle, out, clock = systemClock, workerEntry } = program
  const path = fileOf(flags)
  const text = await readConfigText(path)
  const adjust = (given: VmcpConfig) => withAudit(given, flags.enableAudit === true)
  const config = adjust(parseVmcpConfig(text, path))
  const wantsDebug = flags.debug === true || config.operational.logLevel === 'debug'
  const log = program.log ?? createLogger({ level: wantsDebug ? 'debug' : 'info' })
  const { host, port, sessionTtl: sessionTtlMs } = flags
  // A pod of a VirtualMCPServer reports its backends, also where the file names them.
  const needsCluster = config.outgoingAuth.source === 'discovered' || Boolean(env['VMCP_NAME'] && env['VMCP_NAMESPACE'])
  const cluster = needsCluster ? await clusterOf(flags, program) : undefined
  const { url } = await startVmcp({
    ...{ config, file: { path, text }, adjust, cluster, host, port, sessionTtlMs, version: VERSION },
    ...{ lifecycle, env, log, clock, workerEntry },
  })
  out(`${config.name} is served at ${url}\n`)
  await aborted(lifecycle.signal)
}

/** The pod's account, or a kubeconfig. */
async function clusterOf({ kubeconfig, namespace: given }: ClusterFlags, { env, lifecycle, clock }: ProgramEnv): Promise<ClusterPlace> {
  const connection = await defaultConnection({ env, ...(kubeconfig !== undefined && { kubeconfig }), ...(clock && { clock }) })
  const client = createKubeClient(connection)
  lifecycle.onShutdown('cluster', () => client.close())
  return { client, namespace: given ?? (env['VMCP_NAMESPACE'] || connection.namespace || 'default') }
}

function withAudit(config: VmcpConfig, isWanted: boolean): VmcpConfig {
  if (!isWanted || config.audit !== undefined) return config
  return { ...config, audit: DEFAULT_AUDIT }
}

const DEFAULT_AUDIT: NonNullable<VmcpConfig['audit']> = {
  enabled: true,
  event_types: [],
  exclude_event_types: [],
  include_request_data: false,
  include_response_data: false,
  detect_application_errors: true,
  max_data_size: 1_024,
  max_delegation_depth: 10,
  max_file_size: 100 * 1_024 * 1_024,
  max_files: 5,
  otlp: false,
}

async function runValidate(flags: ValidateFlags, program: ProgramEnv): Promise<void> {
  const { out, env, clock = systemClock, log = createLogger({ level: 'error' }) } = program
  const file = fileOf(flags)
  const config = await loadVmcpConfig(file)
  const policies = await openFrontPolicies(frontConfig(config, env), {
    log,
    clock,
    metrics: createMetrics(),
    workerEntry: program.workerEntry,
  })
  await policies?.close()
  const isDiscovering = config.outgoingAuth.source === 'discovered'
  if (!(isDiscovering && flags.connect === true) && (flags.kubeconfig ?? flags.namespace) !== undefined)
    throw new ThvError('usage', '--kubeconfig and --namespace are for --connect with outgoingAuth.source discovered')
  const found = isDiscovering ? undefined : fixedBackends(await staticBackends(config, env, log), config)
  const lines = [
    `${file} is valid.`,
    `name:      ${config.name}`,
    `group:     ${config.groupRef}`,
    `clients:   ${config.incomingAuth.type}`,
    `conflicts: ${config.aggregation.conflictResolution}`,
    ...(config.compositeTools.length > 0 ? [`composite: ${config.compositeTools.map(({ name }) => name).join(', ')}`] : []),
    ...(found === undefined ? ['backends:  discovered'] : backendLines(found)),
  ]
  out(`${lines.join('\n')}\n`)
  if (flags.connect !== true) return
  const members = found ?? (await discoverOnce(config, { ...(await clusterOf(flags, program)), env, log, clock }))
  if (found === undefined) out(`${backendLines(members).join('\n')}\n`)
  const seen = await preview(config, members, { clock, log, version: VERSION })
  out(`${seen.lines.join('\n')}\n`)
  if (seen.problems.length > 0) throw new ThvError('vmcp_config_invalid', seen.problems.join('; '))
}

function backendLines({ backends, warnings }: Discovered): readonly string[] {
  return [
    `backends:  ${backends.length}`,
    ...backends.map(({ name, url, authType }) => `  ${name}  ${url}  ${authType}`),
    ...(warnings.length > 0 ? ['warnings:', ...warnings.map(({ name, message }) => `  ${name}: ${message}`)] : []),
  ]
}

function fileOf({ config }: { readonly config?: string }): string {
  if (config === undefined) throw new ThvError('usage', '--config is required')
  return config
}

function port(value: string): number {
  const number = Number(value)
  if (!/^\d+$/.test(value) || number > 65_535) throw new InvalidArgumentError('expects a port from 0 to 65535')
  return number
}

function duration(value: string): number {
  const ms = value === '0' ? 0 : tryParseDuration(value)
  if (ms === undefined || ms < 0) throw new InvalidArgumentError('expects a duration such as 30m')
  return ms === 0 ? DEFAULT_TTL_MS : ms
}
