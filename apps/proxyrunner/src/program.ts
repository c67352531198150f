import { type Clock, systemClock } from '@thv/kernel/clock'
import { runCommandLine, withoutExit } from '@thv/kernel/command-line'
import { aborted } from '@thv/kernel/deadline'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import type { SharedState } from '@thv/middleware/run-config/shared-state'
import { createLogger, type Logger } from '@thv/telemetry/log'
import { Command, Option } from 'commander'
import { loadRunConfig, RUN_CONFIG_PATHS } from './run-config/load-run-config.ts'
import { type RunnerOptions, startRunner } from './runner.ts'
import type { Env } from './runner-settings.ts'
import { createRuntime, RUNTIME_CHOICES, type RuntimeChoice } from './select-runtime.ts'

export interface ProgramEnv {
  readonly out: (text: string) => void
  readonly env: Env
  readonly lifecycle: Lifecycle
  readonly clock?: Clock
  /** For tests. */
  readonly log?: Logger
  /** Takes a log line with its line feed. Standard error unless given. */
  readonly writeLog?: (line: string) => void
  /** Where several runners share a process: how one of them takes part in giving memory back. */
  readonly addMemoryRelease?: RunnerOptions['addMemoryRelease']
  /** Main module of worker threads. A bundle names itself, because it has no other file. */
  readonly workerEntry?: URL
}

export interface Program {
  /** Runs the command of an argument list as in `process.argv`; a runner, until its lifecycle ends. Fails with a ThvError. */
  parseAsync(argv: readonly string[]): Promise<void>
}

interface RunFlags {
  readonly config?: string
  readonly runtime: RuntimeChoice
  readonly k8sPodPatch?: string
  readonly debug?: boolean
}

export function buildProgram(env: ProgramEnv): Program {
  const program = new Command('thv-proxyrunner').description(
    'Runs one MCP server, or connects to a remote one, and serves it to clients over HTTP.',
  )
  withoutExit(program, env.out)
  program.addOption(debugOption())
  const run = program
    .command('run')
    .description('run the server of a run config and serve it until stopped')
    .argument('[image]', 'image to run instead of the one in the run config')
    .option('--config <file>', `run config in JSON (default: the first that exists of ${RUN_CONFIG_PATHS.join(', ')})`)
    .addOption(
      new Option('--runtime <name>', 'where the server runs: in a StatefulSet or as a local process; auto: kubernetes in a pod, else local')
        .choices(RUNTIME_CHOICES)
        .default('auto'),
    )
    .addOption(new Option('--k8s-pod-patch <json>', 'instead of k8s_pod_template_patch in the run config').hideHelp())
    .addOption(new Option('--foreground [value]', 'passed by the operator of ToolHive (Go); ignored, a runner always is').hideHelp())
    .addOption(debugOption())
    .action((image: string | undefined, flags: RunFlags) => serve(image, { ...program.opts(), ...flags }, env))
  withoutExit(run, env.out)
  return {
    parseAsync: (argv) =>
      runCommandLine(program, argv, { message: (problem) => `${problem}; "thv-proxyrunner run --help" lists what there is` }),
  }
}

function debugOption(): Option {
  return new Option('--debug', 'log debug messages too')
}

async function serve(image: string | undefined, flags: RunFlags, program: ProgramEnv): Promise<void> {
  const { env, lifecycle, out, clock = systemClock, workerEntry, addMemoryRelease } = program
  const wantsDebug = flags.debug === true || ['1', 'true'].includes(env['TOOLHIVE_DEBUG']?.toLowerCase() ?? '')
  const log = program.log ?? createLogger({ level: wantsDebug ? 'debug' : 'info', ...(program.writeLog && { write: program.writeLog }) })
  const { config, file, warnings } = await loadRunConfig({
    configPath: flags.config,
    image,
    podPatch: flags.k8sPodPatch,
    env,
    log: (message) => log.info(message),
    signal: lifecycle.signal,
    clock,
  })
  for (const { path, message } of warnings) log.warn(`run config: ${path} ${message}`, { file })
  const runtime = (state: SharedState | undefined) =>
    createRuntime({
      runtime: flags.runtime,
      config,
      env,
      log,
      clock,
      stopping: lifecycle.signal,
      leases: state && ((owner) => state.leases(owner)),
    })
  const { url } = await startRunner({ config, runtime, lifecycle, env, log, clock, workerEntry, addMemoryRelease })
  out(`${config.name} is served at ${url}\n`)
  await aborted(lifecycle.signal)
}
