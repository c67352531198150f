import { resolve } from 'node:path'
import { ThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import { problemLine } from '../config/config-problem.ts'
import { DEFAULT_DATA_DIR, defaultConfig } from '../config/default-config.ts'
import type { Env } from '../config/env-values.ts'
import { type ReadOptions, type ReadResult, readConfigFile } from '../config/read-config.ts'

export interface ConfigFlags {
  readonly config?: string
  readonly authMode?: string
  readonly dataDir?: string
}

export type LoadedConfig = Extract<ReadResult, { ok: true }> & { readonly file: string | undefined; readonly read: ReadOptions }

function readOptions({ authMode, dataDir }: ConfigFlags, env: Env): ReadOptions {
  const folder = resolve(dataDir ?? (env['THV_REGISTRY_DATA_DIR'] || DEFAULT_DATA_DIR))
  return { env, dataDir: folder, ...(authMode !== undefined && { authMode }) }
}

/** The configuration that the flags name, or the one without a file. Rejects with `registry_config_invalid` and one line per problem. */
export async function loadConfig(flags: ConfigFlags, env: Env): Promise<LoadedConfig> {
  const read = readOptions(flags, env)
  const file = flags.config === undefined ? undefined : mountedPath(flags.config, env)
  const result = file === undefined ? defaultConfig(read) : await readConfigFile(file, read)
  if (result.ok) return { ...result, file, read }
  const problems = result.problems.map((problem) => problemLine(file ?? 'the built-in configuration', problem))
  throw new ThvError('registry_config_invalid', `the configuration cannot be used: ${problems.join('; ')}`, { details: { problems } })
}
