import { ThvError } from '@thv/kernel/errors'
import { Command, CommanderError, Help, Option } from 'commander'
import type { CallOptions } from './call-command.ts'
import { addClusterOptions } from './cluster/cluster-options.ts'
import { printCrds } from './crds.ts'
import { addObjectCommands } from './objects/object-commands.ts'
import { overview } from './overview.ts'
import { addPlatformCommands } from './platform/platform-commands.ts'
import { addRegistryCommands } from './registry/registry-commands.ts'
import { VERSION } from './text/version.ts'
import type { ToolsOptions } from './tools-command.ts'

/** What a command may use of the world around it. */
export interface ProgramEnv {
  out: (text: string) => void
  /** For people: progress, questions, and what went wrong on the way. */
  err: (text: string) => void
  readonly cwd: string
  /** The environment variables. */
  readonly variables: Readonly<Record<string, string | undefined>>
  /** `err` is a terminal, so that a line may be written over. */
  readonly isTerminal: boolean
  /** Width of that terminal. */
  readonly columns?: number | undefined
  /** The user wants it to end. */
  readonly signal?: AbortSignal | undefined
  /** Asks the user; undefined when the input has ended. Absent where there is nobody to ask. */
  ask?: ((question: string, signal: AbortSignal) => Promise<string | undefined>) | undefined
  /** All of the standard input. */
  readInput?: (() => Promise<string>) | undefined
}

export interface Program {
  /** Runs the command of an argument list as in `process.argv`. Fails with a ThvError, `usage` where the words are wrong. */
  parseAsync(argv: readonly string[]): Promise<void>
}

export function buildProgram(env: ProgramEnv): Program {
  const program = new Command('thv').description('Declare, protect, join and publish MCP servers.').version(VERSION).allowExcessArguments()
  program.action(() => {
    const [unknown] = program.args
    if (unknown !== undefined)
      throw new ThvError('usage', `there is no command ${JSON.stringify(unknown)}; "thv --help" lists what there is`)
    env.out(overview())
  })
  addPlatformCommands(program, env)
  addTools(program, env)
  addCall(program, env)
  addRegistryCommands(program, env)
  addObjectCommands(program, env)
  addCrds(program, env)
  for (const command of [program, ...program.commands]) configure(command, env)
  return { parseAsync: (argv) => parse(program, argv) }
}

function addCrds(program: Command, env: ProgramEnv): void {
  program
    .command('crds')
    .description('print the CustomResourceDefinitions, ready for "kubectl apply -f -"')
    .argument('[kinds...]', 'only these: kind, plural or short name')
    .action((kinds: string[]) => env.out(printCrds(kinds)))
}

function addTools(program: Command, env: ProgramEnv): void {
  const command = program
    .command('tools')
    .description('list the tools of an MCP server')
    .argument('<server>', 'NAME or NAMESPACE/NAME of a server of the platform, or the URL of an MCP endpoint')
    .addOption(new Option('-o, --output <form>', 'form of the output').choices(['table', 'json']).default('table'))
    .action(async (server: string, options: ToolsOptions) => {
      const { runTools } = await import('./tools-command.ts')
      await runTools(server, options, env)
    })
  addSessionOptions(command)
}

function addCall(program: Command, env: ProgramEnv): void {
  const command = program
    .command('call')
    .description('call a tool of an MCP server')
    .argument('<server>', 'NAME or NAMESPACE/NAME of a server of the platform, or the URL of an MCP endpoint')
    .argument('<tool>', 'name of the tool')
    .argument('[arguments...]', 'name=value, name:=JSON, name=@file, or @file for a JSON object of arguments')
    .addOption(new Option('-o, --output <form>', 'form of the output').choices(['text', 'json']).default('text'))
    .action(async (server: string, tool: string, words: string[], options: CallOptions) => {
      const { runCall } = await import('./call-command.ts')
      await runCall({ server, tool, words }, options, env)
    })
  addSessionOptions(command)
}

function addSessionOptions(command: Command): void {
  const collect = (value: string, before: string[]) => [...before, value]
  command
    .option('--header <name=value>', 'send this HTTP header too; may be repeated', collect, [])
    .option('--timeout <duration>', 'give up after this time, such as 30s or 2m')
    .option('-v, --verbose', 'tell on standard error what else the server says')
  addClusterOptions(command)
}

/** Errors come back as errors, so that there is one place that prints them. */
function configure(command: Command, env: ProgramEnv): void {
  const help = new Help()
  command
    .exitOverride()
    .configureOutput({ writeOut: env.out, writeErr: () => {} })
    .configureHelp({ optionDescription: (option) => help.optionDescription(option).replace(' (default: [])', '') })
}

async function parse(program: Command, argv: readonly string[]): Promise<void> {
  try {
    await program.parseAsync(argv)
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return // --help, --version
    const command = program.commands.find((each) => each.name() === argv[2])
    const help = command === undefined ? 'thv --help' : `thv ${command.name()} --help`
    throw new ThvError('usage', `${error.message.replace(/^error: /, '').replace(/\.$/, '')}; "${help}" lists what there is`)
  }
}
