import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { join, resolve } from 'node:path'
import { kubeconfigText } from '@thv/cluster/platform/kubeconfig'
import { type Platform, startPlatform } from '@thv/cluster/platform/platform'
import { peerLookupProblem } from '@thv/http/server/peer-lookup'
import { systemClock } from '@thv/kernel/clock'
import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { memorySettingProblems } from '@thv/programs/memory-settings'
import type { Logger } from '@thv/telemetry/log'
import { createMetrics } from '@thv/telemetry/metrics'
import { addMemoryRelease, addProcessMetrics } from '@thv/telemetry/process-metrics'
import { DATA_FOLDER, KUBECONFIG_FILE, withCluster } from '../cluster/open-cluster.ts'
import { createPatience } from '../cluster/patience.ts'
import { findRunning, noteRunning, writePrivate } from '../local-platform/running-platform.ts'
import { type ApplyOptions, runApply } from '../objects/apply-command.ts'
import { readManifests } from '../objects/manifest-files.ts'
import { arePlatformToolsDeclared, declarePlatformTools } from '../platform-tools/declare-platform-tools.ts'
import type { PlatformToolsServer } from '../platform-tools/platform-tools-server.ts'
import type { ProgramEnv } from '../program.ts'
import { declareRegistry, removeRegistry } from '../registry/declare-registry.ts'
import { registryState } from '../registry/registry-state.ts'
import { prepareDataFolder } from './data-folder.ts'
import { startDetached } from './detached-platform.ts'
import { LOG_FILE, openPlatformLog } from './platform-log.ts'
import { examplesFolder, loadPlatformParts } from './platform-parts.ts'
import { createProgressView } from './progress-view.ts'
import { createStepView, type StepView } from './step-view.ts'
import { summaryText } from './summary.ts'
import { waitForServers } from './wait-for-servers.ts'

export interface UpOptions {
  readonly dataDir?: string
  readonly examples: boolean
  readonly filename: readonly string[]
  readonly detach?: boolean
  readonly port?: string
  readonly registry: boolean
  readonly registryConfig?: string
  /** Serve every user of this machine. */
  readonly shared?: boolean
  /** Run the proxies of all servers in one process. */
  readonly oneProxyProcess?: boolean
  /** Only the platform itself: how a detached one runs. */
  readonly bare?: boolean
}

interface Starting {
  readonly folder: string
  readonly options: UpOptions
  readonly env: ProgramEnv
  /** By the monotonic clock. */
  readonly since: number
}

/** Packages are downloaded at the first start. */
const READY_WITHIN_MS = 240_000
/** Until the files are applied. The platform has answered already, but a loaded machine may stall it. */
const APPLIED_WITHIN_MS = 60_000

/** thv up: the platform in this process, until Ctrl-C; with `--detach` in one of its own. */
export async function runUp(options: UpOptions, env: ProgramEnv): Promise<void> {
  const folder = resolve(env.cwd, options.dataDir ?? DATA_FOLDER)
  const starting = { folder, options, env, since: systemClock.monotonic() }
  const port = portOf(options.port)
  refuseSecond(folder)
  await refuseBadFiles(options, env)
  if (options.registryConfig !== undefined && !existsSync(resolve(env.cwd, options.registryConfig)))
    throw new ThvError('usage', `--registry-config: there is no file ${options.registryConfig}`)
  prepareDataFolder(folder)
  if (!options.shared && !options.bare) await warnIfOpen(env)
  if (options.detach) {
    await startDetached(folder, { flags: bareFlags(options, { port, cwd: env.cwd }), env })
    const missing = await finishStart(starting, createStepView(env)).catch((error: unknown) => {
      throw isThvError(error) ? new ThvError(error.code, `${error.message}; the platform keeps running`, { cause: error.cause }) : error
    })
    if (missing > 0) throw new ThvError('timeout', `the platform is running, but ${missing} of its servers are not ready`)
    return
  }
  await runHere(starting)
}

/** Where users cannot be distinguished, the platform runs all the same, for all of them. */
async function warnIfOpen(env: ProgramEnv): Promise<void> {
  const problem = await peerLookupProblem()
  if (problem !== undefined) env.err(`Every user of this machine can use the servers: ${problem}.\n`)
}

async function runHere({ folder, options, env, since }: Starting): Promise<void> {
  if (!options.bare) env.err(`Starting the platform in ${folder}\n`)
  const log = openLog(folder)
  // The process that started a bare one reads its steps from the log.
  const steps = options.bare ? { step: (step: string) => log.info('step', { step }), end: () => {} } : createStepView(env)
  try {
    await runSteps({ folder, options, env, since }, { log, steps })
  } finally {
    steps.end('failed')
  }
}

async function runSteps({ folder, options, env, since }: Starting, { log, steps }: { log: Logger; steps: StepView }): Promise<void> {
  for (const problem of memorySettingProblems(env.variables)) {
    log.warn(problem)
    if (!options.bare) env.err(`${problem}\n`)
  }
  steps.step('Building the programs')
  const parts = await loadPlatformParts(env.variables, { oneProxyProcess: options.oneProxyProcess })
  const metrics = createMetrics()
  using _process = addProcessMetrics(metrics)
  const platform = await startPlatform({
    folder,
    port: portOf(options.port),
    ...parts,
    env: env.variables,
    shared: options.shared,
    log,
    metricsPage: () => metrics.render(),
    onStep: (step) => steps.step(step),
  }).catch((error: unknown) => {
    throw withAdvice(error, { folder, port: options.port })
  })
  const stopped = new AbortController()
  let forget: (() => void) | undefined
  let tools: PlatformToolsServer | undefined
  try {
    writePrivate(join(folder, KUBECONFIG_FILE), kubeconfigText(platform.server))
    const declared = { folder, client: platform.client, variables: env.variables, signal: stopped.signal, log }
    if (options.registry) {
      steps.step('Starting the registry')
      await declareRegistry({ ...declared, configFile: options.registryConfig && resolve(env.cwd, options.registryConfig) })
    } else await removeRegistry(declared)
    tools = await startTools({ folder, options, log }, platform, stopped.signal)
    forget = noteRunning(folder, platform.server.url)
    if (options.bare) steps.end()
    else await finishStart({ folder, options, env, since }, steps)
    flushCompileCache() // now, because a platform may be killed, and because V8 forgets code that has not run for long
    const onError = (error: unknown) => log.warn('cannot give memory back', { error: errorMessage(error) })
    addMemoryRelease(metrics, stopped.signal, { onError })
    await interruption(env)
  } catch (error) {
    if (!env.signal?.aborted) throw error // Ctrl-C while it started is an end like any other
  } finally {
    stopped.abort()
    if (!options.bare) env.err('\nStopping …\n')
    const [{ hooks, durationMs }] = await Promise.all([platform.stop(), tools?.stop()])
    forget?.()
    for (const { name, outcome, error } of hooks) if (outcome !== 'done') log.warn(`while stopping: ${name}: ${outcome}`, { error })
    log.info('stopped', { ms: Math.round(durationMs) })
  }
}

/** The server about the platform itself, for those who have the quick start: a member of its group that has no pod. */
async function startTools(
  { folder, options, log }: { folder: string; options: UpOptions; log: Logger },
  { client, peerEnv }: Pick<Platform, 'client' | 'peerEnv'>,
  signal: AbortSignal,
): Promise<PlatformToolsServer | undefined> {
  if (!options.examples && !(await arePlatformToolsDeclared(client, signal))) return undefined
  const { startPlatformTools } = await import('../platform-tools/platform-tools-server.ts')
  const tools = await startPlatformTools({ folder, client, peerEnv, log })
  await declarePlatformTools(client, { folder, isNew: false, signal })
  return tools
}

/** Applies what shall run, waits until it does, and says how to use it. Returns how many servers are not ready. */
async function finishStart({ folder, options, env, since }: Starting, steps: StepView): Promise<number> {
  const flags = { dataDir: folder, withinMs: APPLIED_WITHIN_MS }
  const quiet = { ...env, out: () => {} }
  const { examples } = examplesOf(folder, options)
  if (examples.length > 0) {
    steps.step('Declaring the example servers')
    await runApply({ ...flags, filename: examples.map(({ path }) => path) }, quiet)
    const patience = createPatience({ withinMs: APPLIED_WITHIN_MS, signal: env.signal })
    await withCluster(flags, env, ({ client }) => patience(() => declarePlatformTools(client, { folder, isNew: true, signal: env.signal })))
    writePrivate(join(folder, EXAMPLES_FILE), hashOf(examples))
  }
  if (options.filename.length > 0) {
    steps.step(`Applying ${options.filename.join(', ')}`)
    await applyFiles({ ...flags, filename: options.filename }, { env, steps })
  }
  steps.end()
  const states = await withCluster(flags, env, ({ client }) =>
    waitForServers({
      client,
      view: createProgressView(env),
      since,
      limitMs: READY_WITHIN_MS,
      signal: env.signal,
      beside: async () => [await registryState(client, env.signal)].filter((state) => state !== undefined),
    }),
  )
  const kubeconfig = join(folder, KUBECONFIG_FILE)
  env.out(summaryText({ states, kubeconfig, logFile: join(folder, LOG_FILE), cwd: env.cwd, detached: options.detach === true }))
  return states.filter(({ state }) => state !== 'ready').length
}

/** Its output comes after the step's own line. */
async function applyFiles(options: ApplyOptions, { env, steps }: { env: ProgramEnv; steps: StepView }): Promise<void> {
  const said: (() => void)[] = []
  const later = (print: (text: string) => void) => (text: string) => void said.push(() => print(text))
  try {
    await runApply(options, { ...env, out: later(env.out), err: later(env.err) })
    steps.end()
  } finally {
    steps.end('failed')
    for (const print of said) print()
  }
}

/** The parts of the quick start that were applied to a data folder: an example that the user deletes does not come back at the next start. */
const EXAMPLES_FILE = 'examples.sha256'

interface ExampleFile {
  readonly path: string
  readonly text: string
}

function examplesOf(folder: string, options: UpOptions): { examples: ExampleFile[] } {
  if (!options.examples) return { examples: [] }
  const path = examplesFolder()
  const examples = EXAMPLES.map((name) => ({ path: join(path, name), text: readFileSync(join(path, name), 'utf8') }))
  const note = join(folder, EXAMPLES_FILE)
  return { examples: existsSync(note) && readFileSync(note, 'utf8') === hashOf(examples) ? [] : examples }
}

const EXAMPLES = ['everything.yaml', 'everything-http.yaml', 'all-in-one.yaml']

function hashOf(examples: readonly ExampleFile[]): string {
  return createHash('sha256')
    .update(JSON.stringify(examples.map(({ text }) => text)))
    .digest('hex')
}

/** The user's flags that a platform in the background receives. */
function bareFlags(options: UpOptions, { port, cwd }: { port: number | undefined; cwd: string }): string[] {
  return [
    ...(port === undefined ? [] : ['--port', String(port)]),
    ...(options.registry ? [] : ['--no-registry']),
    ...(options.examples ? [] : ['--no-examples']),
    ...(options.shared ? ['--shared'] : []),
    ...(options.oneProxyProcess ? ['--one-proxy-process'] : []),
    ...(options.registryConfig === undefined ? [] : ['--registry-config', resolve(cwd, options.registryConfig)]),
  ]
}

function openLog(folder: string) {
  try {
    return openPlatformLog(folder)
  } catch (cause) {
    throw new ThvError('data_folder_failed', `cannot write the log of the data folder ${folder}`, { cause })
  }
}

function refuseSecond(folder: string): void {
  const running = findRunning(folder)
  if (running)
    throw new ThvError(
      'data_folder_in_use',
      `a platform is already running in ${folder} (process ${running.pid}); stop it with "thv down", or choose another folder with --data-dir`,
    )
}

/** Before anything is started. */
async function refuseBadFiles(options: UpOptions, env: ProgramEnv): Promise<void> {
  const { problems } = await readManifests(options.filename, env)
  const [first] = problems
  if (first) throw new ThvError('manifest_invalid', `${first.file}:${first.line}: ${first.message}`)
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535)
    throw new ThvError('usage', `--port must be a number up to 65535, not ${JSON.stringify(text)}`)
  return port
}

/** Keeps code and cause; says what to do. */
function withAdvice(error: unknown, { folder, port }: { folder: string; port: string | undefined }): unknown {
  const text = errorMessage(error)
  if (/ENOSPC|disk is full/i.test(text))
    return new ThvError('data_folder_failed', `no space left for ${folder}; free some, or choose another folder with --data-dir`, {
      cause: error,
    })
  if (port !== undefined && /EADDRINUSE|in use/i.test(text) && /listen/i.test(text))
    return new ThvError('listen_failed', `port ${port} is in use; choose another with --port, or omit it`, { cause: error })
  return error
}

async function interruption({ signal }: ProgramEnv): Promise<void> {
  if (signal === undefined) return
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
