import { invalid } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { plainRules } from '../../objects/kind-rules.ts'
import { at, isObject, type KindRules, without } from '../../objects/served-kind.ts'

export const leaseRules: KindRules = plainRules('subdomain', {
  unconditionalUpdate: false,
  createOnUpdate: true,
  applyDefaults: (lease) => ({ ...lease, spec: specOf(lease) }),
  prepareCreate: withoutCoordination,
  prepareUpdate: withoutCoordination,
  validate: leaseProblems,
})

/** Members of a feature that is off by default on the real server, too. */
function withoutCoordination(lease: JsonObject): JsonObject {
  return { ...lease, spec: without(specOf(lease), 'strategy', 'preferredHolder') }
}

function specOf(lease: JsonObject): JsonObject {
  const spec = lease['spec']
  return isObject(spec) ? spec : {}
}

function leaseProblems(lease: JsonObject): FieldProblem[] {
  const problems: FieldProblem[] = []
  const seconds = at(lease, 'spec', 'leaseDurationSeconds')
  const transitions = at(lease, 'spec', 'leaseTransitions')
  if (typeof seconds === 'number' && seconds <= 0) problems.push(invalid('spec.leaseDurationSeconds', seconds, 'must be greater than 0'))
  if (typeof transitions === 'number' && transitions < 0)
    problems.push(invalid('spec.leaseTransitions', transitions, 'must be greater than or equal to 0'))
  return problems
}
