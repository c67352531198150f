import type { PolicyBundle } from '@thv/authz/load/load-policies'
import { accessPolicies } from '@thv/authz/testing/access-policies'
import type { AuthorizeDeps } from '../authorize/authorize.ts'

export interface TestPolicies {
  readonly policies: readonly string[]
  readonly candidate?: readonly string[]
  readonly entities?: unknown
}

export function policyBundle({ policies, candidate, entities }: TestPolicies): PolicyBundle {
  return {
    hash: 'test',
    enforced: accessPolicies(policies, entities),
    candidate: candidate && accessPolicies(candidate, entities),
  }
}

/** For a server whose tools have no other names and no hints in the configuration. */
export function authorizeDeps(policies: TestPolicies, more: Partial<AuthorizeDeps> = {}): AuthorizeDeps {
  return { policies: { current: policyBundle(policies) }, visibleName: (name) => name, hintOverrides: () => undefined, ...more }
}
