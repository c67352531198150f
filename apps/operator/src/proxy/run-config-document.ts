import { jsonEqual } from '@thv/kernel/json'
import { type UnsupportedField, unsupportedFields } from '@thv/runconfig/middleware-table'
import { type Problem, readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { Contribution, RunConfigDocument } from './contribution.ts'

export interface RenderedRunConfig {
  /** The content of the ConfigMap, byte for byte. */
  readonly text: string
  readonly generation: number
  /** Members that the runner would refuse to run without; not empty: no proxy may run. */
  readonly unsupported: readonly UnsupportedField[]
}

export type RenderResult =
  | { readonly ok: true; readonly rendered: RenderedRunConfig }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** One document of all parts; each member comes from one of them only. Throws a TypeError when two parts say the same thing. */
export function joinRunConfig(base: RunConfigDocument, contributions: readonly Contribution[]): RunConfigDocument {
  const joined: Record<string, unknown> = { ...base }
  for (const { runConfig = {} } of contributions) {
    for (const [field, value] of Object.entries(runConfig)) {
      if (value === undefined) continue
      if (field === 'scaling_config') joined[field] = { ...(joined[field] as object | undefined), ...(value as object) }
      else if (joined[field] === undefined) joined[field] = value
      else throw new TypeError(`two parts of a workload set ${field} of the RunConfig`)
    }
  }
  return joined as RunConfigDocument
}

/**
 * Writes the document down, checked by the reader of the runner itself. The guard number rises when, and only when, something in it has
 * changed: it is what tells an old pod that a newer one has taken over, and a change of anything else must roll no pod.
 */
export function renderRunConfig(
  document: RunConfigDocument,
  { live, generation }: { live: string | undefined; generation: number },
): RenderResult {
  const before = live === undefined ? undefined : parse(live)
  const guard = guardNumber(document, before, generation)
  const complete = { ...document, mcpserver_generation: guard }
  const read = readRunConfig(JSON.parse(JSON.stringify(complete)))
  if (!read.ok) return { ok: false, problems: read.problems }
  const text = `${JSON.stringify(sorted(complete), undefined, 2)}\n`
  return { ok: true, rendered: { text, generation: guard, unsupported: unsupportedFields(read.config) } }
}

function guardNumber(document: RunConfigDocument, before: Record<string, unknown> | undefined, generation: number): number {
  if (before === undefined) return generation
  const { mcpserver_generation: last, ...rest } = before
  const lastGuard = typeof last === 'number' ? last : 0
  const { mcpserver_generation: _, ...wanted } = JSON.parse(JSON.stringify(document)) as RunConfigDocument
  return jsonEqual(rest, wanted) ? lastGuard : Math.max(generation, lastGuard + 1)
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined // edited by hand; it is rewritten
  }
}

/** Top-level members in alphabetical order, so that the order of resolvers never rolls a pod. */
function sorted(document: RunConfigDocument): Record<string, unknown> {
  return Object.fromEntries(Object.entries(document).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** Members that guard something. */
const PROTECTIONS: readonly (keyof RunConfig)[] = [
  'oidc_config',
  'authz_config_path',
  'audit_config',
  'rate_limit_config',
  'tools_filter',
  'embedded_auth_server_config',
  'token_exchange_config',
  'header_injection_config',
  'aws_sts_config',
]

/** Protections that a spec requires, whether or not they can be resolved now. */
export type WantedProtections = Readonly<Partial<Record<keyof RunConfig, boolean>>>

/** Whether a proxy that runs from the live document would stand open where the spec asks for a guard. */
export function lacksProtection(live: string | undefined, wanted: WantedProtections): boolean {
  const document = live === undefined ? undefined : parse(live)
  if (document === undefined) return Object.values(wanted).some((isWanted) => isWanted)
  return PROTECTIONS.some((field) => wanted[field] === true && document[field] === undefined && !hasInstead(document, field))
}

/** Earlier operators wrote the policies into the RunConfig itself. */
function hasInstead(document: Readonly<Record<string, unknown>>, field: keyof RunConfig): boolean {
  return field === 'authz_config_path' && document['authz_config'] !== undefined
}
