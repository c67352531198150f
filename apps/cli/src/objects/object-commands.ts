import { type Command, Option } from 'commander'
import { addClusterOptions } from '../cluster/cluster-options.ts'
import type { ClusterFlags } from '../cluster/open-cluster.ts'
import type { ProgramEnv } from '../program.ts'
import type { ApplyOptions } from './apply-command.ts'
import type { DeleteOptions } from './delete-command.ts'
import type { GetOptions } from './get-command.ts'
import type { LogsOptions } from './logs/logs-command.ts'

/** What a user needs without kubectl: apply, get, describe, delete, logs. */
export function addObjectCommands(program: Command, env: ProgramEnv): void {
  addApply(program, env)
  addGet(program, env)
  addDescribe(program, env)
  addDelete(program, env)
  addLogs(program, env)
}

function addApply(program: Command, env: ProgramEnv): void {
  const command = program
    .command('apply')
    .description('create or change objects as files say')
    .requiredOption('-f, --filename <file>', 'a file, a folder, or - for the standard input; may be repeated', collect, [])
    .option('--force-conflicts', 'take over fields that somebody else has set')
    .action(async (options: ApplyOptions) => {
      const { runApply } = await import('./apply-command.ts')
      await runApply(options, env)
    })
  addClusterOptions(command)
}

function addGet(program: Command, env: ProgramEnv): void {
  const command = program
    .command('get')
    .description('show objects in a table')
    .argument('<kind...>', 'KIND[,KIND] [NAME…], or KIND/NAME …; kinds also by short name')
    .option('-A, --all-namespaces', 'of all namespaces')
    .addOption(new Option('-o, --output <form>', 'form of the output').choices(['wide', 'yaml', 'json', 'name']))
    .option('-w, --watch', 'go on showing what changes')
    .option('-l, --selector <labels>', 'only those with these labels, such as app=web')
    .option('--field-selector <fields>', 'only those with these fields, such as metadata.name=web')
    .option('--show-labels', 'add a column with the labels')
    .option('--no-headers', 'leave the headings out')
    .action(async (words: string[], options: GetOptions) => {
      const { runGet } = await import('./get-command.ts')
      await runGet(words, options, env)
    })
  addClusterOptions(command)
}

function addDescribe(program: Command, env: ProgramEnv): void {
  const command = program
    .command('describe')
    .description('tell all about an object: its state, what is wanted, what happened')
    .argument('<kind...>', 'KIND [NAME…], or KIND/NAME …')
    .action(async (words: string[], options: ClusterFlags) => {
      const { runDescribe } = await import('./describe-command.ts')
      await runDescribe(words, options, env)
    })
  addClusterOptions(command)
}

function addDelete(program: Command, env: ProgramEnv): void {
  const command = program
    .command('delete')
    .description('delete objects, and wait until they are gone')
    .argument('[kind...]', 'KIND NAME…, or KIND/NAME …')
    .option('-f, --filename <file>', 'the objects of a file, a folder, or - for the standard input; may be repeated', collect, [])
    .option('-l, --selector <labels>', 'all of the kind with these labels')
    .option('--all', 'all of the kind in the namespace')
    .option('--ignore-not-found', 'what is not there is no error')
    .option('--no-wait', 'do not wait until they are gone')
    .option('--timeout <duration>', 'how long to wait', '60s')
    .action(async (words: string[], options: DeleteOptions) => {
      const { runDelete } = await import('./delete-command.ts')
      await runDelete(words, options, env)
    })
  addClusterOptions(command)
}

function addLogs(program: Command, env: ProgramEnv): void {
  const command = program
    .command('logs')
    .description('show what an MCP server and its proxy print')
    .argument('<name>', 'NAME of an MCP server or pod, or KIND/NAME such as pod/x or deploy/x')
    .option('-f, --follow', 'go on showing what they print')
    .option('--tail <lines>', 'begin with so many of the last lines')
    .option('-c, --container <name>', 'only this container')
    .option('-p, --previous', 'of the run before the last restart')
    .option('--timestamps', 'print the time of each line')
    .option('--raw', 'print lines exactly as the containers wrote them, pod by pod')
    .action(async (name: string, options: LogsOptions) => {
      const { runLogs } = await import('./logs/logs-command.ts')
      await runLogs(name, options, env)
    })
  addClusterOptions(command)
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value]
}
