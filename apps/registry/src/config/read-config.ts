import { readFile, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { checkShape } from './check-shape.ts'
import { type ConfigProblem, NO_PLACE, ProblemList } from './config-problem.ts'
import { CONFIG_SHAPE, type ConfigFile } from './config-schema.ts'
import { configWarnings } from './config-warnings.ts'
import { applyOverrides, environmentFlag, withFlag } from './env-overrides.ts'
import { type Env, expandVariables, hideVariables } from './env-values.ts'
import { mountedConfig } from './mounted-config.ts'
import { normaliseConfig } from './normalise-config.ts'
import type { RegistryConfig } from './registry-config.ts'
import { MAX_CONFIG_BYTES, parseYamlTree } from './yaml-tree.ts'

export interface ReadOptions {
  readonly env: Env
  /** Wins over variable and file. */
  readonly authMode?: string
  /** Where the embedded store is unless the file says. */
  readonly dataDir: string
}

export type ReadResult =
  | { readonly ok: true; readonly config: RegistryConfig; readonly warnings: readonly string[]; readonly text: string }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[]; readonly text?: string }

export async function readConfigFile(path: string, options: ReadOptions): Promise<ReadResult> {
  const read = await readText(path)
  if ('problem' in read) return { ok: false, problems: [{ ...NO_PLACE, path: '', message: read.problem }] }
  return { ...readConfig(read.text, { ...options, folder: dirname(resolve(path)) }), text: read.text }
}

async function readText(path: string): Promise<{ text: string } | { problem: string }> {
  try {
    const facts = await stat(path)
    if (!facts.isFile()) return { problem: 'is not a file' }
    if (facts.size > MAX_CONFIG_BYTES) return { problem: `is larger than ${MAX_CONFIG_BYTES} bytes` }
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path)) }
  } catch (error) {
    if (error instanceof TypeError) return { problem: 'is not UTF-8' }
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT') return { problem: 'does not exist' }
    if (code === 'EACCES') return { problem: 'may not be read' }
    throw error
  }
}

export interface ReadTextOptions extends ReadOptions {
  /** Relative paths of file sources begin here. */
  readonly folder: string
}

/** All problems at once, as far as one does not hide another: a file that is no YAML has no keys. */
export function readConfig(text: string, options: ReadTextOptions): ReadResult {
  const problems = new ProblemList()
  const parsed = parseYamlTree(text, problems)
  if (!parsed) return { ok: false, problems: problems.sorted(), text }

  const { env } = options
  const expanded = expandVariables(parsed, env, problems)
  const overridden = applyOverrides(expanded, CONFIG_SHAPE, env)
  const tree = options.authMode
    ? withFlag(overridden.tree, ['auth', 'mode'], { flag: '--auth-mode', value: options.authMode })
    : overridden.tree
  const file = checkShape(tree, CONFIG_SHAPE, problems) as ConfigFile
  const insecureUrls = environmentFlag(env, 'THV_REGISTRY_INSECURE_URL', problems)
  const config = normaliseConfig(file, { ...options, insecureUrls, tree, problems })

  if (problems.list.length === 0 && config)
    return { ok: true, config: mountedConfig(config, env), warnings: [...overridden.warnings, ...configWarnings(file, config)], text }
  const hidden = firstPerPath(problems.list).map((problem) => ({ ...problem, message: hideVariables(problem.message, tree, env) }))
  return { ok: false, problems: hidden, text }
}

/** A later problem of the same key follows from the first. */
function firstPerPath(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const first = new ProblemList()
  const seen = new Set<string>()
  for (const { line, column, path, message } of problems) {
    if (path !== '' && seen.has(path)) continue
    seen.add(path)
    first.add({ line, column }, path, message)
  }
  return first.sorted()
}
