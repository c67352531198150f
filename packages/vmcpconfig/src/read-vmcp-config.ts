import { bracketDepth } from '@thv/kernel/bracket-depth'
import { type Findings, readFields } from '@thv/runconfig/field'
import { LineCounter, parseDocument } from 'yaml'
import type { VmcpProblem } from './composite-rules.ts'
import type { VmcpConfig } from './vmcp-config.ts'
import { VMCP_CONFIG_FIELDS } from './vmcp-config-fields.ts'
import { ruleProblems } from './vmcp-config-rules.ts'

export type ReadVmcpConfig =
  | { readonly ok: true; readonly config: VmcpConfig }
  | { readonly ok: false; readonly problems: readonly VmcpProblem[] }

export const MAX_CONFIG_BYTES = 1 << 20
const MAX_BRACKETS = 200

/** Reads the text of a configuration file. Pure. Unknown members are problems too: a misspelled protection must not be absent. */
export function readVmcpConfig(text: string): ReadVmcpConfig {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) return invalid(`is larger than ${MAX_CONFIG_BYTES} bytes`)
  if (bracketDepth(text) > MAX_BRACKETS) return invalid('is nested too deeply')
  const parsed = parseYaml(text)
  return 'problem' in parsed ? invalid(parsed.problem) : readVmcpDocument(parsed.value)
}

/** As `readVmcpConfig`, for a document that is parsed already. */
export function readVmcpDocument(document: unknown): ReadVmcpConfig {
  const findings: Findings = { problems: [], warnings: [] }
  const config = readFields<VmcpConfig>(VMCP_CONFIG_FIELDS, { value: document, path: '', findings })
  const unknown = findings.warnings.map(({ path }) => ({ path, message: 'is not a known field' }))
  const problems: VmcpProblem[] = [...findings.problems, ...unknown]
  if (config !== undefined && problems.length === 0) problems.push(...ruleProblems(config))
  return config === undefined || problems.length > 0 ? { ok: false, problems } : { ok: true, config }
}

function invalid(message: string): ReadVmcpConfig {
  return { ok: false, problems: [{ path: '', message }] }
}

/** The parser's own messages quote the text, which may hold secrets: only the position is kept. */
function parseYaml(text: string): { readonly value: unknown } | { readonly problem: string } {
  const lines = new LineCounter()
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'silent' })
    const [error] = document.errors
    if (error !== undefined) {
      const { line, col } = lines.linePos(error.pos[0])
      return { problem: `is not valid YAML at line ${line}, column ${col}${error.code === 'DUPLICATE_KEY' ? ': a key is repeated' : ''}` }
    }
    return { value: document.toJS({ maxAliasCount: 0 }) }
  } catch (error) {
    if (error instanceof RangeError) return { problem: 'is nested too deeply' }
    if (error instanceof ReferenceError) return { problem: 'uses aliases, which are not accepted: write the values out' }
    throw error
  }
}
