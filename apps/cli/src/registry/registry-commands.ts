import { type Command, Option } from 'commander'
import type { ProgramEnv } from '../program.ts'
import type { SearchOptions } from './search-command.ts'

/** What a user asks a registry. */
export function addRegistryCommands(program: Command, env: ProgramEnv): void {
  const collect = (value: string, before: readonly string[]) => [...before, value]
  program
    .command('search')
    .description('find MCP servers in a registry')
    .argument('[text...]', 'words of a name, a description, tags or tools; typing errors are forgiven')
    .option('--tag <tag>', 'only servers with this tag; repeated: with any of them', collect, [])
    .option('--from <type>', 'only servers from npm, pypi, oci and so on, or remote; repeated: from any of them', collect, [])
    .option('--transport <type>', 'only servers with stdio, sse or streamable-http; repeated: with any of them', collect, [])
    .option('--registry <url>', 'registry, or registry server, to ask (default: that of the platform)')
    .option('--limit <number>', 'how many to show, at most 100', '10')
    .addOption(new Option('-o, --output <form>', 'form of the output').choices(['table', 'json']).default('table'))
    .option('--header <name=value>', 'send this HTTP header too; may be repeated', collect, [])
    .option('--data-dir <folder>', 'the data folder of the platform (default: .thv, here or above)')
    .action(async (words: string[], options: SearchOptions) => {
      const { runSearch } = await import('./search-command.ts')
      await runSearch(words, options, env)
    })
}
