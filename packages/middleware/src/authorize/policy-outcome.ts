import type { AccessPolicies } from '@thv/authz/access/access-policies'
import type { Subject } from '@thv/authz/access/principal'
import type { Decision, PolicyFailure } from '@thv/authz/evaluator/policy-set'
import type { PolicyError, PolicyOutcome } from '../pipeline/request-context.ts'
import type { Judged } from './judged-message.ts'

/** The decision of one set of policies, in the words of the request context. */
export function outcomeOf(policies: AccessPolicies, subject: Subject | undefined, judged: Judged): PolicyOutcome {
  const { allowed, policies: deciding, failures } = decide(policies, subject, judged)
  return {
    decision: allowed ? 'allow' : 'deny',
    policies: deciding.map(idOf),
    errors: failures.length === 0 ? NONE : failures.map(errorOf),
  }
}

const NONE: readonly never[] = []
const ALLOWED: Decision = { allowed: true, policies: NONE, failures: NONE }

function decide(policies: AccessPolicies, subject: Subject | undefined, judged: Judged): Decision {
  switch (judged.by) {
    case 'decision':
      return policies.decide(subject, judged.operation)
    case 'forbid':
      return policies.decideForbids(subject, judged.operation)
    case 'possibility':
      return { allowed: policies.mayAllow(subject, judged.operation), policies: NONE, failures: NONE }
    case 'decisions': {
      let decision = ALLOWED
      for (const operation of judged.operations) {
        decision = policies.decide(subject, operation)
        if (!decision.allowed) return decision
      }
      return decision
    }
  }
}

function idOf({ id }: { readonly id: string }): string {
  return id
}

function errorOf({ policy, message }: PolicyFailure): PolicyError {
  return { policy: policy.id, message }
}
