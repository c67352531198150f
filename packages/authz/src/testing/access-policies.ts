import { type AccessOptions, AccessPolicies } from '../access/access-policies.ts'
import { compilePolicies } from '../compile-policies.ts'

/** Policies of a server called `test`. Throws where a policy is wrong. */
export function accessPolicies(policies: readonly string[], entities: unknown = [], options: Partial<AccessOptions> = {}): AccessPolicies {
  const compiled = compilePolicies(policies, JSON.stringify(entities))
  if (!compiled.ok) throw new TypeError(compiled.problems.map(({ path, message }) => `${path}: ${message}`).join('; '))
  return new AccessPolicies(compiled.set, { server: 'test', ...options })
}
