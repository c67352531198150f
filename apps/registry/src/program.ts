import { runCommandLine, withoutExit } from '@thv/kernel/command-line'
import { Command, Option } from 'commander'
import type { CommandEnv } from './commands/command-env.ts'
import { type MigrateFlags, migrateDownCommand, migrateUpCommand } from './commands/migrate-command.ts'
import { type ServeFlags, serveCommand } from './commands/serve-command.ts'
import { validateCommand } from './commands/validate-command.ts'
import { versionCommand } from './commands/version-command.ts'
import { VERSION } from './serve/version.ts'

export interface Program {
  /** Runs the command of an argument list as in `process.argv`, and gives its exit code. Fails with a ThvError. */
  parseAsync(argv: readonly string[]): Promise<number>
}

const NAME = 'thv-registry-api'

const VARIABLES = `
Variables:
  THV_REGISTRY_ADDRESS, THV_REGISTRY_INTERNAL_ADDRESS, THV_REGISTRY_DATA_DIR
                            like the flags, which take precedence
  THV_REGISTRY_KEY_KEY      override a value of the file: THV_REGISTRY_DATABASE_HOST is database.host
  THV_REGISTRY_INSECURE_URL true allows issuers without TLS (http://); for trials
  THV_REGISTRY_STOP_DELAY   how long requests are still taken when it is to end (0s)
  THV_REGISTRY_LOG_LEVEL    debug, info, warn or error (default: LOG_LEVEL, else info)

Signals:
  SIGTERM, SIGINT           finish the requests in progress, then stop
  SIGHUP                    read the configuration again; not needed after a change of the file, which is watched`

export function buildProgram(env: CommandEnv): Program {
  let code = 0
  const program = new Command(NAME)
    .description('An MCP registry: reads descriptions of MCP servers from its sources and serves them.')
    .version(VERSION.version)
  configure(program, env)
    .addOption(new Option('--debug', 'log debug messages too'))
    .addHelpText(
      'after',
      `\nWithout a command, help is shown. "${NAME} serve" without --config serves the bundled catalog of public servers on this machine.`,
    )

  configure(program.command('serve'), env)
    .description('serve registries until stopped')
    .option('--config <file>', 'configuration file (default: none; the bundled catalog is served on this machine)')
    .option('--address <host:port>', 'address for clients (default: :8080; without --config 127.0.0.1:8080)')
    .option('--internal-address <host:port>', 'address for health probes and metrics (default: :8081; without --config 127.0.0.1:8081)')
    .addOption(authModeOption())
    .option('--data-dir <folder>', 'folder of the embedded store (default: .thv/registry-api)')
    .addOption(new Option('--debug', 'log debug messages too'))
    .addHelpText('after', VARIABLES)
    .action(async (flags: ServeFlags) => await serveCommand({ ...program.opts(), ...flags }, env))

  configure(program.command('validate'), env)
    .description('check a configuration file and print every problem with line and column; exits with 1 if there is one')
    .requiredOption('--config <file>', 'configuration file')
    .addOption(authModeOption())
    .action(async (flags: { config: string; authMode?: string }) => {
      code = await validateCommand(flags, env)
    })

  const migrate = configure(program.command('migrate'), env).description('upgrade or downgrade the schema of a PostgreSQL database')
  migrateCommand(migrate, 'up', env)
    .description('upgrade to the latest schema version')
    .action((flags: MigrateFlags) => migrateUpCommand(flags, env))
  migrateCommand(migrate, 'down', env)
    .description('downgrade the schema; what the removed versions hold is lost')
    .action((flags: MigrateFlags) => migrateDownCommand(flags, env))

  configure(program.command('version'), env)
    .description('print the version')
    .addOption(new Option('--format <format>', 'output format').choices(['text', 'json']).default('text'))
    .action((flags: { format: string }) => versionCommand(flags, env))

  return {
    async parseAsync(argv) {
      const onCommandMissing = () => env.out(commandAt(program, argv.slice(2)).helpInformation())
      await runCommandLine(program, argv, { message: (problem) => `${problem}; "${NAME} --help" lists what there is`, onCommandMissing })
      return code
    },
  }
}

function authModeOption(): Option {
  return new Option('--auth-mode <mode>', 'override auth.mode of the configuration').choices(['anonymous', 'oauth'])
}

function migrateCommand(parent: Command, name: string, env: CommandEnv): Command {
  return configure(parent.command(name), env)
    .requiredOption('--config <file>', 'configuration file that names the database')
    .option('-y, --yes', 'do not ask for confirmation')
    .option(
      '-n, --num-steps <number>',
      name === 'up' ? 'number of versions to upgrade (default: all)' : 'number of versions to downgrade; required',
    )
}

function configure(command: Command, { out }: CommandEnv): Command {
  return withoutExit(command, out).allowExcessArguments(false)
}

function commandAt(program: Command, words: readonly string[]): Command {
  let command = program
  for (const word of words) command = command.commands.find((below) => below.name() === word) ?? command
  return command
}
