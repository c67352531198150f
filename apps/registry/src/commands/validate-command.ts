import { isThvError } from '@thv/kernel/errors'
import { storeText } from '../serve/start-lines.ts'
import type { CommandEnv } from './command-env.ts'
import { type ConfigFlags, loadConfig } from './load-config.ts'

/** Looks at a file as `serve` would, without opening anything. 0, or 1 with one line per problem. */
export async function validateCommand(flags: ConfigFlags & { readonly config: string }, { env, out }: CommandEnv): Promise<number> {
  try {
    const { config, warnings } = await loadConfig(flags, env)
    for (const warning of warnings) out(`warning: ${warning}\n`)
    const count = (items: readonly unknown[], one: string, many: string) => `${items.length} ${items.length === 1 ? one : many}`
    out(
      `${flags.config} is good: ${count(config.sources, 'source', 'sources')}, ${count(config.registries, 'registry', 'registries')}, ` +
        `access ${config.auth.mode}, store ${storeText(config)}\n`,
    )
    return 0
  } catch (error) {
    if (!isThvError(error, 'registry_config_invalid')) throw error
    const problems = problemsOf(error.details)
    for (const problem of problems) out(`${problem}\n`)
    return 1
  }
}

/** The lines of `loadConfig`'s error. */
export function problemsOf(details: Readonly<Record<string, unknown>>): string[] {
  const problems = details['problems']
  return Array.isArray(problems) ? problems.map(String) : []
}
