import { jsonEqual } from '@thv/kernel/json'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { plainRules } from '../../objects/kind-rules.ts'
import type { KindRules } from '../../objects/served-kind.ts'
import { invalidValue, problem } from '../../objects/status-error.ts'

/** A former state of a StatefulSet: its data never changes, only its place in the order of revisions. */
export const controllerRevisionRules: KindRules = plainRules('subdomain', {
  applyDefaults: (object) => ({ revision: 0, ...object }),
  validate,
})

function validate({ data, revision }: JsonObject, old?: JsonObject): FieldProblem[] {
  const problems: FieldProblem[] = []
  if (typeof revision === 'number' && revision < 0) problems.push(invalidValue('revision', revision, 'must be greater than or equal to 0'))
  if (data === undefined || data === null) problems.push(problem('data', 'FieldValueRequired', 'Required value: data is mandatory'))
  else if (old && !jsonEqual(data, old['data'])) problems.push(invalidValue('data', data, 'field is immutable'))
  return problems
}
