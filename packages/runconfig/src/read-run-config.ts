import { type Findings, type Problem, readFields } from './field.ts'
import { middlewareProblems } from './middleware-configs.ts'
import type { RunConfig } from './run-config.ts'
import { RUN_CONFIG_FIELDS } from './run-config-fields.ts'
import { ruleFindings } from './run-config-rules.ts'

export type { Problem } from './field.ts'

export type ReadResult =
  | { readonly ok: true; readonly config: RunConfig; readonly warnings: readonly Problem[] }
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly warnings: readonly Problem[] }

/**
 * Reads a parsed document. Pure. All problems are found at once as far as they can be: what joins several fields is checked once each
 * of them is right by itself. Unknown fields are tolerated, and listed as warnings.
 */
export function readRunConfig(json: unknown): ReadResult {
  const findings: Findings = { problems: [], warnings: [] }
  const read = readFields<RunConfig>(RUN_CONFIG_FIELDS, { value: json, path: '', findings })
  if (read === undefined) return { ok: false, ...findings }

  const config = withDerivedDefaults(read, findings)
  ruleFindings(config, findings)
  findings.problems.push(...middlewareProblems(config))
  return findings.problems.length > 0 ? { ok: false, ...findings } : { ok: true, config, warnings: findings.warnings }
}

/** Defaults that depend on other fields: the table cannot know them, so these three may be absent until here. */
function withDerivedDefaults(read: RunConfig, { warnings }: Findings): RunConfig {
  const given: Partial<RunConfig> = read
  const containerName = given.container_name ?? read.name
  const proxyMode = read.transport === 'stdio' ? (given.proxy_mode ?? 'streamable-http') : read.transport
  if (given.proxy_mode !== undefined && given.proxy_mode !== proxyMode) {
    warnings.push({ path: 'proxy_mode', message: `has no effect beside transport ${read.transport}: clients speak what the server speaks` })
  }
  return { ...read, container_name: containerName, base_name: given.base_name ?? containerName, proxy_mode: proxyMode }
}
