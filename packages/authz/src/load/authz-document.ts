import { type Findings, readFields } from '@thv/runconfig/field'
import { parseJsonText } from '@thv/runconfig/json-text'
import { AUTHZ_FIELDS, type AuthzConfig, type CedarConfig } from '@thv/runconfig/policy-config'
import { parseDocument } from 'yaml'

export const AUTHZ_VERSION = '1.0'
export const AUTHZ_TYPE = 'cedarv1'

/** An `authz_config` that has policies. */
export interface CedarAuthzConfig extends AuthzConfig {
  readonly cedar: CedarConfig
}

export type AuthzDocument = { ok: true; config: CedarAuthzConfig } | { ok: false; problems: string[] }

/**
 * Reads `{version, type, cedar, candidate}` in JSON or YAML. Unknown members are refused: a misspelt `entities_json` would leave out groups that a
 * policy forbids something to. Problems say where, and never quote the text.
 */
export function readAuthzDocument(text: string): AuthzDocument {
  const parsed = parse(text)
  if (!parsed.ok) return { ok: false, problems: [parsed.problem] }

  const findings: Findings = { problems: [], warnings: [] }
  const config = readFields<AuthzConfig>(AUTHZ_FIELDS, { value: withTextVersion(parsed.value), path: '', findings })
  const problems = [
    ...findings.problems.map(({ path, message }) => (path === '' ? `the document ${message}` : `${path} ${message}`)),
    ...findings.warnings.map(({ path }) => `${path} is not a known field: correct or remove it`),
  ]
  if (config === undefined || problems.length > 0) return { ok: false, problems }
  return checkAuthzConfig(config)
}

/** The rules beyond types and names. */
export function checkAuthzConfig(config: AuthzConfig): AuthzDocument {
  const problems: string[] = []
  if (config.version !== AUTHZ_VERSION) problems.push(`version must be "${AUTHZ_VERSION}"`)
  if (config.type !== AUTHZ_TYPE) problems.push(`type must be ${AUTHZ_TYPE}: no other policy engine is built in`)
  else if (config.cedar === undefined) problems.push('cedar is missing: put the policies there')
  if (config.cedar !== undefined) problems.push(...cedarProblems(config.cedar, 'cedar'))
  if (config.candidate !== undefined) problems.push(...cedarProblems(config.candidate, 'candidate'))
  if (config.cedar === undefined || problems.length > 0) return { ok: false, problems }
  return { ok: true, config: { ...config, cedar: config.cedar } }
}

function cedarProblems({ policies, group_entity_type: groupType }: CedarConfig, path: string): string[] {
  const problems: string[] = []
  if (policies.length === 0) problems.push(`${path}.policies is empty: without a policy every call is denied`)
  if (groupType !== undefined && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(groupType))
    problems.push(`${path}.group_entity_type must be a Cedar type without a namespace, such as THVGroup`)
  return problems
}

function parse(text: string): { ok: true; value: unknown } | { ok: false; problem: string } {
  if (text.trim() === '') return { ok: false, problem: 'the document is empty' }
  const json = parseJsonText(text)
  if (json.ok) return json
  const notJson = { ok: false as const, problem: `line ${json.line}, column ${json.column}: the document is not JSON` }
  if (/^\s*[{[]/.test(text)) return notJson
  if (text.length > MAX_YAML) return { ok: false, problem: `the document has more than ${MAX_YAML >> 10} KiB, which only JSON may have` }
  const document = parseDocument(text, { prettyErrors: true, logLevel: 'silent' })
  const [error] = document.errors
  if (error === undefined) return toValue(document)
  const [place] = error.linePos ?? []
  return { ok: false, problem: `${place ? `line ${place.line}, column ${place.col}: ` : ''}the document is neither JSON nor YAML` }
}

/** A hostile document of this size takes a second or two, in which nothing else is reconciled. JSON is read a hundred times as fast. */
const MAX_YAML = 128 << 10

/** Aliases are unfolded here, and only so many: a few lines could mean gigabytes. */
function toValue(document: ReturnType<typeof parseDocument>): ReturnType<typeof parse> {
  try {
    return { ok: true, value: document.toJS({ maxAliasCount: 100 }) }
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error
    return { ok: false, problem: 'the document has too many aliases, or one that leads nowhere' }
  }
}

/** In YAML `version: 1.0` is a number, and everybody writes it so. */
function withTextVersion(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('version' in value) || value.version !== 1) return value
  return { ...value, version: AUTHZ_VERSION }
}
