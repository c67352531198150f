import { type Command, Option } from 'commander'
import { addClusterOptions } from '../cluster/cluster-options.ts'
import type { ClusterFlags } from '../cluster/open-cluster.ts'
import type { ProgramEnv } from '../program.ts'
import type { ApplyOptions } from './apply-command.ts'
import type { DeleteOptions } from './delete-command.ts'
import type { GetOptions } from './get-command.ts'
import type { LogsOptions } from './logs/logs-command.ts'

/** The commands that replace kubectl: apply, get, describe, delete, logs. */
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
    .description('create or update objects from files')
    .requiredOption('-f, --filename <file>', 'file, folder, or - for standard input; repeatable', collect, [])
    .option('--force-conflicts', 'take over fields that another manager has set')
    .action(async (options: ApplyOptions) => {
      const { runApply } = await import('./apply-command.ts')
      await runApply(options, env)
    })
  addClusterOptions(command)
}

function addGet(program: Command, env: ProgramEnv): void {
  const command = program
    .command('get')
    .description('list objects, or show one')
    .argument('<kind...>', 'KIND[,KIND] [NAME…], or KIND/NAME …')
    .option('-A, --all-namespaces', 'list objects of all namespaces')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['wide', 'yaml', 'json', 'name']))
    .option('-w, --watch', 'watch for changes')
    .option('-l, --selector <labels>', 'label selector, such as app=web')
    .option('--field-selector <fields>', 'field selector, such as metadata.name=web')
    .option('--show-labels', 'add a column with labels')
    .option('--no-headers', 'do not print column headers')
    .action(async (words: string[], options: GetOptions) => {
      const { runGet } = await import('./get-command.ts')
      await runGet(words, options, env)
    })
  addClusterOptions(command)
}

function addDescribe(program: Command, env: ProgramEnv): void {
  const command = program
    .command('describe')
    .description('show details of an object: status, spec and events')
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
    .description('delete objects and wait until they are gone')
    .argument('[kind...]', 'KIND NAME…, or KIND/NAME …')
    .option('-f, --filename <file>', 'file, folder, or - for standard input; repeatable', collect, [])
    .option('-l, --selector <labels>', 'label selector, such as app=web')
    .option('--all', 'delete all objects of the kind in the namespace')
    .option('--ignore-not-found', 'treat a missing object as deleted')
    .option('--no-wait', 'do not wait for the objects to be gone')
    .option('--timeout <duration>', 'time to wait for the objects to be gone', '60s')
    .action(async (words: string[], options: DeleteOptions) => {
      const { runDelete } = await import('./delete-command.ts')
      await runDelete(words, options, env)
    })
  addClusterOptions(command)
}

function addLogs(program: Command, env: ProgramEnv): void {
  const command = program
    .command('logs')
    .description('print the logs of an MCP server and its proxy')
    .argument('<name>', 'NAME of an MCP server or pod, or KIND/NAME such as pod/x or deploy/x')
    .option('-f, --follow', 'follow the logs')
    .option('--tail <lines>', 'number of recent lines to print, per container')
    .option('-c, --container <name>', 'print the logs of one container')
    .option('-p, --previous', 'print the logs of the previous run')
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
