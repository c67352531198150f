import type { Command } from 'commander'
import { addClusterOptions } from '../cluster/cluster-options.ts'
import type { ProgramEnv } from '../program.ts'
import type { ListOptions } from './list-command.ts'
import type { RemoveOptions } from './remove-command.ts'

/** Short ways to the MCP servers, whatever their kind: ls, rm. */
export function addServerListCommands(program: Command, env: ProgramEnv): void {
  const list = program
    .command('ls')
    .alias('list')
    .description('list MCP servers with status and URL')
    .option('-A, --all-namespaces', 'list servers of all namespaces')
    .option('--no-headers', 'do not print column headers')
    .action(async (options: ListOptions) => {
      const { runList } = await import('./list-command.ts')
      await runList(options, env)
    })
  addClusterOptions(list)
  const remove = program
    .command('rm')
    .description('delete MCP servers by name')
    .argument('<name...>', 'NAME of an MCP server, or KIND/NAME')
    .option('--ignore-not-found', 'treat a missing server as deleted')
    .option('--no-wait', 'do not wait for the servers to be gone')
    .option('--timeout <duration>', 'time to wait for the servers to be gone', '60s')
    .action(async (names: string[], options: RemoveOptions) => {
      const { runRemove } = await import('./remove-command.ts')
      await runRemove(names, options, env)
    })
  addClusterOptions(remove)
}
