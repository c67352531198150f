import { runAtOnce, type Steps } from '@thv/kernel/steps'
import { type CompiledPolicy, compilePolicy, type PolicyJson } from './evaluator/compile-policy.ts'
import { EntityStore, readEntities } from './evaluator/entities.ts'
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
  return runAtOnce(compileParsed({ policies: [JSON.stringify(parsed.policies)], entities: [entitiesJson] }))
}

/** Policies and entities that the engine has accepted: JSON lists, in pieces. */
export interface ParsedSet {
  readonly policies: readonly string[]
  readonly entities: readonly string[]
}

/** In pieces as small as those of the set, so that a large one does not stall the thread. */
export function* compileParsed({ policies, entities }: ParsedSet): Steps<CompiledPolicies> {
  const problems: PolicyProblem[] = []
  const compiled: CompiledPolicy[] = []
  const ids = new Map<string, number>()
  let index = 0
  for (const piece of policies) {
    for (const json of JSON.parse(piece) as PolicyJson[]) {
      const path = `policies[${index}]`
      const id = json.annotations?.['id'] ?? `policy${index}`
      const twin = ids.get(id)
      if (twin !== undefined) problems.push({ path, message: `has the id "${id}" of policies[${twin}]: ids must differ` })
      ids.set(id, index)
      attempt(problems, path, () => compiled.push(compilePolicy(id, json)))
      index++
    }
    yield
  }
  const store = yield* storeOf(entities, problems)
  return problems.length > 0 ? { ok: false, problems } : { ok: true, set: yield* PolicySet.of(compiled, store) }
}

function* storeOf(entities: readonly string[], problems: PolicyProblem[]): Steps<EntityStore> {
  try {
    return yield* readEntities(lists(entities))
  } catch (error) {
    problems.push({ path: 'entities_json', message: unsupported(error).message })
    return new EntityStore()
  }
}

function* lists(pieces: readonly string[]): Generator<readonly unknown[]> {
  for (const piece of pieces) yield JSON.parse(piece) as unknown[]
}

function attempt(problems: PolicyProblem[], path: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    problems.push({ path, message: unsupported(error).message })
  }
}

function unsupported(error: unknown): UnsupportedPolicy {
  if (error instanceof UnsupportedPolicy) return error
  throw error
}
