import { forbidden, invalid, notSupported } from '../schema/field-problems.ts'
import { plainRules } from './builtin-rules.ts'
import { qualifiedNameProblems } from './field-checks.ts'
import type { FieldProblem, JsonObject } from './kind-schema.ts'
import { at, isObject, type KindRules, textAt } from './served-kind.ts'

const STRATEGIES = ['OldestEmulationVersion']

export const leaseRules: KindRules = plainRules('subdomain', {
  unconditionalUpdate: false,
  createOnUpdate: true,
  applyDefaults: (lease) => ({ ...lease, spec: isObject(lease['spec']) ? lease['spec'] : {} }),
  validate: leaseProblems,
})

function leaseProblems(lease: JsonObject): FieldProblem[] {
  const problems: FieldProblem[] = []
  const [seconds, transitions, strategy] = ['leaseDurationSeconds', 'leaseTransitions', 'strategy'].map((name) => at(lease, 'spec', name))
  if (typeof seconds === 'number' && seconds <= 0) problems.push(invalid('spec.leaseDurationSeconds', seconds, 'must be greater than 0'))
  if (typeof transitions === 'number' && transitions < 0)
    problems.push(invalid('spec.leaseTransitions', transitions, 'must be greater than or equal to 0'))
  if (typeof strategy === 'string') problems.push(...strategyProblems(strategy))
  if (textAt(lease, 'spec', 'preferredHolder') !== '' && (strategy === undefined || strategy === ''))
    problems.push(forbidden('spec.preferredHolder', 'may only be specified if `strategy` is defined'))
  return problems
}

function strategyProblems(strategy: string): FieldProblem[] {
  if (strategy.includes('/')) return qualifiedNameProblems('spec.strategy', strategy)
  return STRATEGIES.includes(strategy) ? [] : [notSupported('spec.strategy', strategy, STRATEGIES)]
}
