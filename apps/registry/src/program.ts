import { ThvError } from '@thv/kernel/errors'
import { Command, CommanderError, Option } from 'commander'
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
                            as the flags, which win
  THV_REGISTRY_KEY_KEY      instead of a value in the file: THV_REGISTRY_DATABASE_HOST is database.host
  THV_REGISTRY_INSECURE_URL true allows issuers with http
  THV_REGISTRY_LOG_LEVEL    debug, info, warn or error (info); LOG_LEVEL counts when it is not set

Signals:
  SIGTERM, SIGINT           stop, after the requests in work
  SIGHUP                    read the configuration again; a changed file is noticed without it`

export function buildProgram(env: CommandEnv): Program {
  let code = 0
  const program = new Command(NAME)
    .description('An MCP registry: gathers server descriptions from sources, and serves them.')
    .version(VERSION.version)
  configure(program, env)
    .addOption(new Option('--debug', 'log details'))
    .addHelpText(
      'after',
      `\nWithout a command, help is shown. "${NAME} serve" without --config serves a catalogue of public servers on this machine.`,
    )

  configure(program.command('serve'), env)
    .description('serve registries until told to stop')
    .option('--config <file>', 'the configuration; without it a bundled catalogue is served on this machine')
    .option('--address <host:port>', 'where clients ask (:8080; without --config 127.0.0.1:8080)')
    .option('--internal-address <host:port>', 'where probes and metrics are (:8081; without --config 127.0.0.1:8081)')
    .addOption(authModeOption())
    .option('--data-dir <folder>', 'where the embedded store is (.thv/registry-api)')
    .addOption(new Option('--debug', 'log details'))
    .addHelpText('after', VARIABLES)
    .action(async (flags: ServeFlags) => await serveCommand({ ...program.opts(), ...flags }, env))

  configure(program.command('validate'), env)
    .description('look at a configuration and print every problem with its place; 1 if there is one')
    .requiredOption('--config <file>', 'the configuration')
    .addOption(authModeOption())
    .action(async (flags: { config: string; authMode?: string }) => {
      code = await validateCommand(flags, env)
    })

  const migrate = configure(program.command('migrate'), env).description('bring the schema of a PostgreSQL database up to date, or back')
  migrateCommand(migrate, 'up', env)
    .description('apply all versions that are missing')
    .action((flags: MigrateFlags) => migrateUpCommand(flags, env))
  migrateCommand(migrate, 'down', env)
    .description('take the last versions back, with what they hold')
    .action((flags: MigrateFlags) => migrateDownCommand(flags, env))

  configure(program.command('version'), env)
    .description('print the version')
    .addOption(new Option('--format <format>', 'how').choices(['text', 'json']).default('text'))
    .action((flags: { format: string }) => versionCommand(flags, env))

  return {
    async parseAsync(argv) {
      await parse(program, argv, env)
      return code
    },
  }
}

function authModeOption(): Option {
  return new Option('--auth-mode <mode>', 'instead of auth.mode in the file').choices(['anonymous', 'oauth'])
}

function migrateCommand(parent: Command, name: string, env: CommandEnv): Command {
  return configure(parent.command(name), env)
    .requiredOption('--config <file>', 'the configuration with the database')
    .option('-y, --yes', 'do not ask')
    .option('-n, --num-steps <number>', name === 'up' ? 'how many versions (all that are missing)' : 'how many versions')
}

/** Errors come back as errors, so that there is one place that prints them. */
function configure(command: Command, { out }: CommandEnv): Command {
  return command
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({ writeOut: out, writeErr: () => {} })
}

async function parse(program: Command, argv: readonly string[], { out }: CommandEnv): Promise<void> {
  try {
    await program.parseAsync(argv)
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return // --help, --version
    // A command that has commands below it, and was given none.
    if (error.code === 'commander.help') return out(commandAt(program, argv.slice(2)).helpInformation())
    throw new ThvError('usage', `${error.message.replace(/^error: |\.$/g, '')}; "${NAME} --help" lists what there is`)
  }
}

function commandAt(program: Command, words: readonly string[]): Command {
  let command = program
  for (const word of words) command = command.commands.find((below) => below.name() === word) ?? command
  return command
}
