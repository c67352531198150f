import { type Command, Option } from 'commander'
import type { PlatformFlags } from '../local-platform/platform-folder.ts'
import type { ProgramEnv } from '../program.ts'
import type { UpOptions } from './up-command.ts'

/** The platform on this machine: up, down, status. */
export function addPlatformCommands(program: Command, env: ProgramEnv): void {
  program
    .command('up')
    .description('start the platform on this machine: a Kubernetes of one process, the operator, and the quick start')
    .option('--data-dir <folder>', 'where it keeps everything (default: .thv)')
    .option('--no-examples', 'without the quick start')
    .option('-f, --filename <file>', 'apply this file or folder too; may be repeated', (value, before: string[]) => [...before, value], [])
    .option('--no-registry', 'without the registry server')
    .option('--registry-config <file>', 'configuration of the registry server (default: the bundled catalogue)')
    .option('--detach', 'return when all is ready, and leave it running ("thv down" stops it)')
    .option('--port <number>', 'port of the API server (default: that of the last start, or a free one)')
    .option('--shared', 'serve every user of this machine (default: only you and root, on Linux)')
    .addOption(new Option('--bare').hideHelp())
    .action(async (options: UpOptions) => {
      const { runUp } = await import('./up-command.ts')
      await runUp(options, env)
    })
  program
    .command('down')
    .description('stop the platform; what was declared stays for the next start')
    .option('--data-dir <folder>', 'the data folder of the platform (default: .thv, here or above)')
    .action(async (options: PlatformFlags) => {
      const { runDown } = await import('./down-command.ts')
      await runDown(options, env)
    })
  program
    .command('status')
    .description('show the platform, its operator and its servers')
    .option('--data-dir <folder>', 'the data folder of the platform (default: .thv, here or above)')
    .action(async (options: PlatformFlags) => {
      const { runStatus } = await import('./status-command.ts')
      await runStatus(options, env)
    })
}
