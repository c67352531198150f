import type { AuthzConfig, CedarConfig } from '@thv/runconfig/policy-config'
import { AccessPolicies } from '../access/access-policies.ts'
import { compilePolicies } from '../compile-policies.ts'
import { checkAuthzConfig } from './authz-document.ts'
import { claimMappingOf } from './claim-mapping.ts'

/** Policies, and the text of each by its id. */
export interface TextedPolicies {
  readonly policies: AccessPolicies
  readonly texts: ReadonlyMap<string, string>
}

export type LoadedAtOnce =
  | ({ readonly ok: true; readonly candidate: TextedPolicies | undefined } & TextedPolicies)
  | {
      readonly ok: false
      readonly problems: readonly string[]
    }

/** As `loadPolicies`, in this thread: for commands that have nothing else to do. */
export function loadPoliciesAtOnce(config: AuthzConfig, server: string): LoadedAtOnce {
  const checked = checkAuthzConfig(config)
  if (!checked.ok) return checked
  const { cedar, candidate } = checked.config
  const problems: string[] = []
  const enforced = compile(cedar, { server, path: 'cedar', problems })
  const other = candidate && compile(candidate, { server, path: 'candidate', problems })
  if (enforced === undefined || problems.length > 0) return { ok: false, problems }
  return { ok: true, ...enforced, candidate: other }
}

interface CompileContext {
  readonly server: string
  readonly path: string
  readonly problems: string[]
}

function compile(cedar: CedarConfig, { server, path, problems }: CompileContext): TextedPolicies | undefined {
  const compiled = compilePolicies(cedar.policies, cedar.entities_json)
  if (!compiled.ok) {
    problems.push(...compiled.problems.map((problem) => `${path}.${problem.path}: ${problem.message}`))
    return undefined
  }
  const texts = new Map(compiled.set.policies.map(({ id }, at) => [id, cedar.policies[at] ?? '']))
  return { policies: new AccessPolicies(compiled.set, { server, ...claimMappingOf(cedar) }), texts }
}
