import { type Command, Option } from 'commander'
import type { PlatformFlags } from '../local-platform/platform-folder.ts'
import type { ProgramEnv } from '../program.ts'
import type { UpOptions } from './up-command.ts'

/** The platform on this machine: up, down, status. */
export function addPlatformCommands(program: Command, env: ProgramEnv): void {
  program
    .command('up')
    .description('start the platform: API server, operator, registry and two example servers')
    .option('--data-dir <folder>', 'data folder (default: .thv)')
    .option('--no-examples', 'do not declare the example servers')
    .option('-f, --filename <file>', 'apply a file or folder; repeatable', (value, before: string[]) => [...before, value], [])
    .option('--no-registry', 'do not start the registry server')
    .option('--registry-config <file>', 'configuration of the registry server (default: the bundled catalog)')
    .option('--detach', 'run in the background and return when everything is ready')
    .option('--port <number>', 'port of the API server (default: that of the last start, or a free port)')
    .option('--shared', 'serve every user of this machine (default: only you and root, on Linux)')
    .option('--one-proxy-process', 'run the proxies of all servers in one process: less memory, shared crashes and stalls')
    .addOption(new Option('--bare').hideHelp())
    .action(async (options: UpOptions) => {
      const { runUp } = await import('./up-command.ts')
      await runUp(options, env)
    })
  program
    .command('down')
    .description('stop the platform; its objects stay for the next start')
    .option('--data-dir <folder>', 'data folder (default: .thv, here or above)')
    .action(async (options: PlatformFlags) => {
      const { runDown } = await import('./down-command.ts')
      await runDown(options, env)
    })
  program
    .command('status')
    .description('show the status of the platform, its operator and its servers')
    .option('--data-dir <folder>', 'data folder (default: .thv, here or above)')
    .action(async (options: PlatformFlags) => {
      const { runStatus } = await import('./status-command.ts')
      await runStatus(options, env)
    })
}
