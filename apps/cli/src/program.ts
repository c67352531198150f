import { runCommandLine, withoutExit } from '@thv/kernel/command-line'
import { ThvError } from '@thv/kernel/errors'
import { Argument, Command, Help, Option } from 'commander'
import type { ExplainOptions } from './access/explain-command.ts'
import type { CallOptions } from './call-command.ts'
import { addClusterOptions } from './cluster/cluster-options.ts'
import { addCompletion } from './completion/completion-command.ts'
import { printCrds } from './crds.ts'
import type { LoginOptions } from './login-command.ts'
import type { LogoutOptions } from './logout-command.ts'
import { addObjectCommands } from './objects/object-commands.ts'
import { overview } from './overview.ts'
import { addPlatformCommands } from './platform/platform-commands.ts'
import { addRegistryCommands } from './registry/registry-commands.ts'
import { addServerListCommands } from './servers/server-list-commands.ts'
import { suggestion } from './text/closest.ts'
import { VERSION } from './text/version.ts'
import { MAX_COLUMNS } from './text/wrapped.ts'
import type { ToolsOptions } from './tools-command.ts'

/** The parts of the outside world that a command may use. */
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
  /** Asks the user; undefined when the input has ended. Absent where there is no terminal. */
  ask?: ((question: string, signal: AbortSignal) => Promise<string | undefined>) | undefined
  /** Opens an address in the user's browser. Absent where there is no terminal. */
  openBrowser?: ((url: string) => void) | undefined
  /** All of the standard input. */
  readInput?: (() => Promise<string>) | undefined
}

export interface Program {
  /** Runs the command of an argument list as in `process.argv`. Fails with a ThvError, `usage` where the words are wrong. */
  parseAsync(argv: readonly string[]): Promise<void>
}

export function buildProgram(env: ProgramEnv): Program {
  const program = new Command('thv')
    .description('Declare, protect, join and publish MCP servers.')
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help for a command')
    .allowExcessArguments()
  program.action(() => {
    const [unknown] = program.args
    if (unknown !== undefined) throw unknownCommand(unknown, program)
    env.out(overview())
  })
  program.commandsGroup('Platform on this machine:')
  addPlatformCommands(program, env)
  program.commandsGroup('MCP servers:')
  addServerListCommands(program, env)
  addTools(program, env)
  addCall(program, env)
  addLogin(program, env)
  addLogout(program, env)
  addExplain(program, env)
  addRegistryCommands(program, env)
  program.commandsGroup('Objects of any cluster:')
  addObjectCommands(program, env)
  addCrds(program, env)
  program.commandsGroup('Other commands:')
  addVersion(program, env)
  addCompletion(program, env)
  addHelp(program)
  for (const command of [program, ...program.commands]) configure(command, env)
  return { parseAsync: (argv) => runCommandLine(program, argv, { message: (problem) => `${problem}. See "${helpFor(program, argv)}".` }) }
}

function unknownCommand(word: string, program: Command): ThvError {
  const names = program.commands.flatMap((command) => [command.name(), ...command.aliases()])
  return new ThvError('usage', `unknown command ${JSON.stringify(word)}.${suggestion(word, names)} See "thv help".`)
}

function addHelp(program: Command): void {
  program
    .command('help')
    .description('show help for a command')
    .argument('[command]', 'command to show help for')
    .action((name: string | undefined) => {
      const command = name === undefined ? program : findCommand(program, name)
      if (command === undefined) throw unknownCommand(name ?? '', program)
      command.outputHelp()
    })
}

function helpFor(program: Command, argv: readonly string[]): string {
  const command = findCommand(program, argv[2] ?? '')
  return command === undefined ? 'thv --help' : `thv ${command.name()} --help`
}

function findCommand(program: Command, name: string): Command | undefined {
  return program.commands.find((command) => command.name() === name || command.aliases().includes(name))
}

function addVersion(program: Command, env: ProgramEnv): void {
  program
    .command('version')
    .description('print the versions of thv and Node')
    .action(() => env.out(`thv ${VERSION}, Node ${process.version}, ${process.platform}-${process.arch}\n`))
}

function addCrds(program: Command, env: ProgramEnv): void {
  program
    .command('crds')
    .description('print the CustomResourceDefinitions for "kubectl apply -f -"')
    .argument('[kinds...]', 'kinds to print, by kind, plural or short name (default: all)')
    .action((kinds: string[]) => env.out(printCrds(kinds)))
}

function addTools(program: Command, env: ProgramEnv): void {
  const command = program
    .command('tools')
    .description('list the tools of an MCP server')
    .argument('<server>', 'NAME or NAMESPACE/NAME of a server, or the URL of an MCP endpoint')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['table', 'json']).default('table'))
    .action(async (server: string, options: ToolsOptions) => {
      const { runTools } = await import('./tools-command.ts')
      await runTools(server, options, env)
    })
  addSessionOptions(command)
}

const CALL_EXAMPLES = `
Examples:
  thv call everything echo message=hello
  thv call everything get-sum a=2 b=3
  thv call files write path=notes.txt content=@notes.txt
  thv call search query 'filter:={"tags":["web"]}'`

function addCall(program: Command, env: ProgramEnv): void {
  const command = program
    .command('call')
    .description('call a tool of an MCP server')
    .argument('<server>', 'NAME or NAMESPACE/NAME of a server, or the URL of an MCP endpoint')
    .argument('<tool>', 'tool name')
    .argument('[arguments...]', 'name=value, name:=JSON, name=@file (text from a file), or @file with a JSON object of all arguments')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .action(async (server: string, tool: string, words: string[], options: CallOptions) => {
      const { runCall } = await import('./call-command.ts')
      await runCall({ server, tool, words }, options, env)
    })
    .addHelpText('after', CALL_EXAMPLES)
  addSessionOptions(command)
}

function addLogin(program: Command, env: ProgramEnv): void {
  const command = program
    .command('login')
    .description('log in to an MCP server with a browser')
    .argument('<server>', 'NAME or NAMESPACE/NAME of a server, or the URL of an MCP endpoint')
    .option('--client-id <id>', 'client ID at the authorization server, or the https URL of a client ID metadata document')
    .option('--client-secret-file <file>', 'file with the secret of that client')
    .option('--scope <scope>', 'ask for this scope too; repeatable', collect)
    .option('--callback-port <port>', 'port on 127.0.0.1 that the browser comes back to (default: any free port)')
    .action(async (server: string, options: LoginOptions) => {
      const { runLogin } = await import('./login-command.ts')
      await runLogin(server, options, env)
    })
  addSessionOptions(command)
}

function addLogout(program: Command, env: ProgramEnv): void {
  const command = program
    .command('logout')
    .description('forget the tokens of an MCP server, and revoke them')
    .argument('[server]', 'NAME or NAMESPACE/NAME of a server, or the URL of an MCP endpoint')
    .option('--all', 'forget the tokens of all servers')
    .action(async (server: string | undefined, options: LogoutOptions) => {
      const { runLogout } = await import('./logout-command.ts')
      await runLogout(server, options, env)
    })
  addClusterOptions(command)
}

function addExplain(program: Command, env: ProgramEnv): void {
  const command = program
    .command('explain')
    .description('explain what the policies of an MCP server decide, and why')
    .addArgument(new Argument('<what>', 'what to explain').choices(['access']))
    .argument('<server>', 'NAME of a server')
    .argument('[tool]', 'tool name (default: every tool that a policy names)')
    .argument('[arguments...]', 'arguments of the call, as for "thv call"')
    .option('--claims <file>', 'JSON file with the claims of the caller')
    .option('--token-file <file>', 'file with a token of the caller; its signature is not checked')
    .action(async (_what: string, server: string, tool: string | undefined, words: string[], options: ExplainOptions) => {
      const { runExplainAccess } = await import('./access/explain-command.ts')
      await runExplainAccess(tool === undefined ? [server] : [server, tool, ...words], options, env)
    })
  addClusterOptions(command)
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}

function addSessionOptions(command: Command): void {
  command
    .option('--header <name=value>', 'add an HTTP header; repeatable', collect, [])
    .option('--timeout <duration>', 'time limit, such as 30s or 2m')
    .option('-v, --verbose', 'print notifications and logs of the server to standard error')
  addClusterOptions(command)
}

function configure(command: Command, env: ProgramEnv): void {
  const help = new Help()
  withoutExit(command, env.out)
    .configureOutput({ getOutHelpWidth: () => Math.min(env.columns || MAX_COLUMNS, MAX_COLUMNS) })
    .configureHelp({
      optionDescription: (option) => help.optionDescription(option).replace(' (default: [])', ''),
      subcommandTerm: (subcommand) => [subcommand.name(), ...subcommand.aliases()].join(', '),
    })
}
