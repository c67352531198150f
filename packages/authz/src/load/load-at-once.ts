import type { AuthzConfig } from '@thv/runconfig/policy-config'
import { AccessPolicies } from '../access/access-policies.ts'
import { compilePolicies } from '../compile-policies.ts'
import { checkAuthzConfig } from './authz-document.ts'
import { claimMappingOf } from './claim-mapping.ts'

export type LoadedAtOnce =
  | { readonly ok: true; readonly policies: AccessPolicies; readonly texts: ReadonlyMap<string, string> }
  | {
      readonly ok: false
      readonly problems: readonly string[]
    }

/** As `loadPolicies`, in this thread: for commands that have nothing else to do. `texts` has each policy by its id. */
export function loadPoliciesAtOnce(config: AuthzConfig, server: string): LoadedAtOnce {
  const checked = checkAuthzConfig(config)
  if (!checked.ok) return checked
  const { cedar } = checked.config
  const compiled = compilePolicies(cedar.policies, cedar.entities_json)
  if (!compiled.ok) return { ok: false, problems: compiled.problems.map(({ path, message }) => `cedar.${path}: ${message}`) }
  const texts = new Map(compiled.set.policies.map(({ id }, at) => [id, cedar.policies[at] ?? '']))
  return { ok: true, policies: new AccessPolicies(compiled.set, { server, ...claimMappingOf(cedar) }), texts }
}
