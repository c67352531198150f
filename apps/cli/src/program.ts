import { Command } from 'commander'
import { printCrds } from './crds.ts'
import { overview } from './overview.ts'

export interface ProgramEnv {
  out: (text: string) => void
}

export function buildProgram(env: ProgramEnv): Command {
  const program = new Command('thv')
    .description('Declare, protect, join and publish MCP servers.')
    .configureOutput({ writeOut: env.out })
    .showHelpAfterError('(thv --help lists what there is)')
    .action(() => env.out(overview()))

  program
    .command('crds')
    .description('print the CustomResourceDefinitions, ready for "kubectl apply -f -"')
    .argument('[kinds...]', 'only these: kind, plural or short name')
    .action((kinds: string[]) => env.out(printCrds(kinds)))

  return program
}
