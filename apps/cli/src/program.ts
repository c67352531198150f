import { ThvError } from '@thv/kernel/errors'
import { Command, CommanderError } from 'commander'
import { printCrds } from './crds.ts'
import { overview } from './overview.ts'

export interface ProgramEnv {
  out: (text: string) => void
}

export interface Program {
  /** Runs the command of an argument list as in `process.argv`. Fails with a ThvError, `usage` where the words are wrong. */
  parseAsync(argv: readonly string[]): Promise<void>
}

export function buildProgram(env: ProgramEnv): Program {
  const program = new Command('thv').description('Declare, protect, join and publish MCP servers.').allowExcessArguments()
  configure(program, env)
  program.action(() => {
    const [unknown] = program.args
    if (unknown !== undefined)
      throw new ThvError('usage', `there is no command ${JSON.stringify(unknown)}; "thv --help" lists what there is`)
    env.out(overview())
  })

  const crds = program
    .command('crds')
    .description('print the CustomResourceDefinitions, ready for "kubectl apply -f -"')
    .argument('[kinds...]', 'only these: kind, plural or short name')
    .action((kinds: string[]) => env.out(printCrds(kinds)))
  configure(crds, env)

  return { parseAsync: (argv) => parse(program, argv) }
}

/** Errors come back as errors, so that there is one place that prints them. */
function configure(command: Command, env: ProgramEnv): void {
  command.exitOverride().configureOutput({ writeOut: env.out, writeErr: () => {} })
}

async function parse(program: Command, argv: readonly string[]): Promise<void> {
  try {
    await program.parseAsync(argv)
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return // --help
    throw new ThvError('usage', `${error.message.replace(/^error: /, '')}; "thv --help" lists what there is`)
  }
}
