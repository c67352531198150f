import { type CompiledPolicy, compilePolicy, type PolicyJson } from './evaluator/compile-policy.ts'
import { EntityStore } from './evaluator/entities.ts'
import { UnsupportedPolicy } from './evaluator/json-value.ts'
import { PolicySet } from './evaluator/policy-set.ts'
import { type PolicyProblem, policiesAsJson } from './policy-syntax.ts'

export type CompiledPolicies =
  | { readonly ok: true; readonly set: PolicySet }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] }

/**
 * A set of policies that can decide, or every reason why not. Loads the Cedar engine for parsing; decisions need it no more. Policies are
 * named by their `@id`, else by their position: `policy0`.
 */
export function compilePolicies(policies: readonly string[], entitiesJson: string): CompiledPolicies {
  const parsed = policiesAsJson(policies, entitiesJson)
  if (!parsed.ok) return parsed
  const problems: PolicyProblem[] = []
  const compiled: CompiledPolicy[] = []
  const ids = new Map<string, number>()
  for (const [index, json] of parsed.policies.entries()) {
    const path = `policies[${index}]`
    const id = json.annotations?.['id'] ?? `policy${index}`
    const twin = ids.get(id)
    if (twin !== undefined) problems.push({ path, message: `has the id "${id}" of policies[${twin}]: ids must differ` })
    ids.set(id, index)
    attempt(problems, path, () => compiled.push(compilePolicy(id, json as PolicyJson)))
  }
  let entities = new EntityStore()
  attempt(problems, 'entities_json', () => {
    entities = new EntityStore(JSON.parse(entitiesJson) as unknown[])
  })
  return problems.length > 0 ? { ok: false, problems } : { ok: true, set: new PolicySet(compiled, entities) }
}

function attempt(problems: PolicyProblem[], path: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    if (!(error instanceof UnsupportedPolicy)) throw error
    problems.push({ path, message: error.message })
  }
}
