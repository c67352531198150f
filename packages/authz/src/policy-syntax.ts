import type { CheckParseAnswer, DetailedError, Entities } from '@cedar-policy/cedar-wasm/nodejs'
import { type CedarEngine, cedarEngine, discardCedarEngine } from './cedar-engine.ts'

/** What is wrong with policies or entities, and where. */
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
  const problems: PolicyProblem[] = []
  if (policies.length === 0)
    problems.push({ path: 'policies', message: 'at least one policy is needed: without any, every call is denied' })
  // One by one: so it is clear whose fault it is when the engine gives up.
  for (const [index, policy] of policies.entries()) {
    const message = policyProblem(policy)
    if (message !== undefined) problems.push({ path: `policies[${index}]`, message })
  }
  const message = entitiesProblem(entitiesJson)
  if (message !== undefined) problems.push({ path: 'entities_json', message })
  return problems
}

function policyProblem(policy: string): string | undefined {
  if (policy.trim() === '') return 'is empty'
  if (nesting(policy) > MAX_NESTING) return `has brackets nested more than ${MAX_NESTING} deep`
  const errors = ask((engine) => engine.checkParsePolicySet({ staticPolicies: { policy } }))
  return errors === 'gave up' ? TOO_MUCH : errors?.map((error) => describe(error, policy)).join('; ')
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
  const errors = ask((engine) => engine.checkParseEntities({ entities: entities as Entities }))
  return errors === 'gave up' ? TOO_MUCH : errors?.map((error) => describe(error)).join('; ')
}

const TOO_MUCH = 'is too large or nested too deeply for the policy engine'

/** Undefined: all is well. */
function ask(question: (engine: CedarEngine) => CheckParseAnswer): DetailedError[] | 'gave up' | undefined {
  const engine = cedarEngine()
  try {
    const answer = question(engine)
    return answer.type === 'success' ? undefined : answer.errors
  } catch {
    // A trap of the engine, whose text says nothing to anybody. Whoever calls next gets a new one.
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
