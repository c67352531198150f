import { type Command, Option } from 'commander'
import type { ProgramEnv } from '../program.ts'
import type { SearchOptions } from './search-command.ts'

/** The commands that query a registry. */
export function addRegistryCommands(program: Command, env: ProgramEnv): void {
  const collect = (value: string, before: readonly string[]) => [...before, value]
  program
    .command('search')
    .description('find MCP servers in a registry')
    .argument('[text...]', 'words of names, descriptions, tags or tools; tolerates typos')
    .option('--tag <tag>', 'servers with this tag; repeatable, any of them matches', collect, [])
    .option('--from <type>', 'servers from npm, pypi, oci, … or remote; repeatable, any of them matches', collect, [])
    .option('--transport <type>', 'servers with stdio, sse or streamable-http; repeatable, any of them matches', collect, [])
    .option('--registry <url>', 'URL of a registry or registry server (default: that of the local platform)')
    .option('--limit <number>', 'maximum number of results, up to 100', '10')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['table', 'json']).default('table'))
    .option('--header <name=value>', 'add an HTTP header; repeatable', collect, [])
    .option('--data-dir <folder>', 'data folder of the local platform (default: .thv, here or above)')
    .action(async (words: string[], options: SearchOptions) => {
      const { runSearch } = await import('./search-command.ts')
      await runSearch(words, options, env)
    })
}
