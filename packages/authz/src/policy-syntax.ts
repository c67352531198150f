import type { DetailedError, Entities, PolicyJson } from '@cedar-policy/cedar-wasm/nodejs'
import { type CedarEngine, cedarEngine, discardCedarEngine } from './cedar-engine.ts'

/** A mistake in policies or entities, and its location. */
export interface PolicyProblem {
  /** `policies`, `policies[2]` or `entities_json`. */
  readonly path: string
  readonly message: string
}

export type PolicyChecker = (policies: readonly string[], entitiesJson: string) => PolicyProblem[]

/** Brackets in brackets. The engine recurses on them, and a few hundred exhaust its stack. */
const MAX_NESTING = 100

/**
 * Whether each entry is one static Cedar policy and the text is a JSON array of Cedar entities. All problems at once. An answer without
 * problems says nothing about what the policies allow.
 */
export const checkPolicies: PolicyChecker = (policies, entitiesJson) => {
  const parsed = policiesAsJson(policies, entitiesJson)
  return parsed.ok ? [] : [...parsed.problems]
}

export type ParsedPolicies =
  | { readonly ok: true; readonly policies: readonly PolicyJson[] }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] }

/** The policies in Cedar's JSON form, or all problems at once. */
export function policiesAsJson(policies: readonly string[], entitiesJson: string): ParsedPolicies {
  const problems: PolicyProblem[] = []
  const parsed: PolicyJson[] = []
  if (policies.length === 0)
    problems.push({ path: 'policies', message: 'at least one policy is needed: without any, every call is denied' })
  // One by one: so it is clear whose fault it is when the engine gives up.
  for (const [index, policy] of policies.entries()) {
    const outcome = parsePolicy(policy)
    if (typeof outcome === 'string') problems.push({ path: `policies[${index}]`, message: outcome })
    else parsed.push(outcome)
  }
  const message = entitiesProblem(entitiesJson)
  if (message !== undefined) problems.push({ path: 'entities_json', message })
  return problems.length > 0 ? { ok: false, problems } : { ok: true, policies: parsed }
}

/** A text says what is wrong. */
function parsePolicy(policy: string): PolicyJson | string {
  if (policy.trim() === '') return 'is empty'
  if (nesting(policy) > MAX_NESTING) return `has brackets nested more than ${MAX_NESTING} deep`
  const checked = ask((engine) => engine.checkParsePolicySet({ staticPolicies: { policy } }))
  if (checked === 'gave up') return TOO_MUCH
  if (checked.type === 'failure') return checked.errors.map((error) => describe(error, policy)).join('; ')
  const converted = ask((engine) => engine.policyToJson(policy))
  if (converted === 'gave up') return TOO_MUCH
  return converted.type === 'success' ? converted.json : converted.errors.map((error) => describe(error, policy)).join('; ')
}

function entitiesProblem(text: string): string | undefined {
  let entities: unknown
  try {
    entities = JSON.parse(text)
  } catch {
    return 'is not JSON' // the parser's own message would quote the text
  }
  if (!Array.isArray(entities)) return 'is not a JSON array'
  if (nesting(text) > MAX_NESTING) return `has brackets nested more than ${MAX_NESTING} deep`
  const checked = ask((engine) => engine.checkParseEntities({ entities: entities as Entities }))
  if (checked === 'gave up') return TOO_MUCH
  return checked.type === 'failure' ? checked.errors.map((error) => describe(error)).join('; ') : undefined
}

const TOO_MUCH = 'is too large or nested too deeply for the policy engine'

function ask<Answer>(question: (engine: CedarEngine) => Answer): Answer | 'gave up' {
  const engine = cedarEngine()
  try {
    return question(engine)
  } catch {
    // A trap of the engine, with a text of no use. The next caller gets a new engine.
    discardCedarEngine()
    return 'gave up'
  }
}

function describe({ message, help, sourceLocations }: DetailedError, source?: string): string {
  const [place] = sourceLocations ?? []
  const text = message.replace(/^failed to parse policy with id `[^`]*` from string: /, '')
  const hints = [place?.label, help].filter((hint) => typeof hint === 'string' && hint !== '')
  const where = place && source !== undefined ? ` at ${position(source, place.start)}` : ''
  return `${text}${where}${hints.length > 0 ? ` (${hints.join('; ')})` : ''}`
}

/** The engine counts bytes. */
function position(source: string, byteOffset: number): string {
  const before = Buffer.from(source).subarray(0, byteOffset).toString().split('\n')
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
}

/** How deep brackets stand in brackets, those in quoted texts and comments not counted. */
function nesting(source: string): number {
  let depth = 0
  let deepest = 0
  for (const [token] of source.matchAll(/"(?:\\.|[^"\\])*"|\/\/[^\n]*|[([{]|[)\]}]/g)) {
    if ('([{'.includes(token)) deepest = Math.max(deepest, ++depth)
    else if (')]}'.includes(token)) depth--
  }
  return deepest
}
