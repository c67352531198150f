import { Argument, type Command } from 'commander'
import type { ProgramEnv } from '../program.ts'
import { bashScript } from './bash-script.ts'
import { type CommandRow, commandTable } from './command-table.ts'
import { fishScript } from './fish-script.ts'
import { zshScript } from './zsh-script.ts'

const SCRIPTS: Readonly<Record<string, (table: readonly CommandRow[]) => string>> = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** thv completion bash|zsh|fish: must be added last, because it completes the other commands. */
export function addCompletion(program: Command, env: ProgramEnv): void {
  program
    .command('completion')
    .description('print a shell completion script')
    .addArgument(new Argument('<shell>', 'the shell to complete in').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', '\nExamples:\n  source <(thv completion bash)\n  source <(thv completion zsh)\n  thv completion fish | source')
    .action((shell: string) => env.out(SCRIPTS[shell]?.(commandTable(program)) ?? ''))
}
