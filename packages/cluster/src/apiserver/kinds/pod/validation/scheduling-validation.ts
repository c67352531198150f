import { duplicate, forbidden, invalid, notSupported, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { labelNameProblems, labelValueProblems, qualifiedNameProblems, subdomainProblems } from '@thv/kube-schema/values/name-checks'
import { labelSelectorProblems, requirementProblems } from '../../../objects/field-checks.ts'
import { textAt } from '../../../objects/served-kind.ts'
import { givenText, numberAt, objectAt, objectsAt, textsAt } from './fields.ts'
import { invalidAll, oneOf } from './problems.ts'

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

export function tolerationProblems(tolerations: readonly JsonObject[], path: string): FieldProblem[] {
  return tolerations.flatMap((toleration, index) => {
    const field = `${path}[${index}]`
    const [key, operator, value, effect] = ['key', 'operator', 'value', 'effect'].map((name) => textAt(toleration, name)) as [
      string,
      string,
      string,
      string,
    ]
    const problems = key === '' ? [] : invalidAll(`${field}.key`, key, qualifiedNameProblems(key))
    if (key === '' && operator !== 'Exists') {
      const why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
      problems.push(invalid(`${field}.operator`, operator, why))
    }
    if (numberAt(toleration, 'tolerationSeconds') !== undefined && effect !== 'NoExecute')
      problems.push(invalid(`${field}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
    if (operator === '' || operator === 'Equal') {
      const wrong = labelValueProblems(value)
      if (wrong.length > 0) problems.push(invalid(`${field}.operator`, value, wrong.join(';')))
    } else if (operator === 'Exists') {
      if (value !== '') problems.push(invalid(`${field}.operator`, value, "value must be empty when `operator` is 'Exists'"))
    } else problems.push(notSupported(`${field}.operator`, operator, ['Equal', 'Exists']))
    return [...problems, ...(effect === '' ? [] : oneOf(`${field}.effect`, effect, EFFECTS))]
  })
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution'
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution'

export function affinityProblems(affinity: JsonObject | undefined, path: string): FieldProblem[] {
  const node = objectAt(affinity, 'nodeAffinity')
  return [
    ...(node ? nodeAffinityProblems(node, `${path}.nodeAffinity`) : []),
    ...['podAffinity', 'podAntiAffinity'].flatMap((name) => {
      const field = `${path}.${name}`
      return [
        ...objectsAt(affinity, name, REQUIRED).flatMap((term, index) => podTermProblems(term, `${field}.${REQUIRED}[${index}]`)),
        ...objectsAt(affinity, name, PREFERRED).flatMap((term, index) => [
          ...weightProblems(term, `${field}.${PREFERRED}[${index}]`),
          ...podTermProblems(objectAt(term, 'podAffinityTerm') ?? {}, `${field}.${PREFERRED}[${index}].podAffinityTerm`),
        ]),
      ]
    }),
  ]
}

function nodeAffinityProblems(affinity: JsonObject, path: string): FieldProblem[] {
  const problems: FieldProblem[] = []
  const needed = objectAt(affinity, REQUIRED)
  if (needed !== undefined) {
    const field = `${path}.${REQUIRED}.nodeSelectorTerms`
    const terms = objectsAt(needed, 'nodeSelectorTerms')
    if (terms.length === 0) problems.push(required(field, 'must have at least one node selector term'))
    problems.push(...terms.flatMap((term, index) => nodeTermProblems(term, `${field}[${index}]`)))
  }
  const liked = objectsAt(affinity, PREFERRED).flatMap((term, index) => {
    const field = `${path}.${PREFERRED}[${index}]`
    return [...weightProblems(term, field), ...nodeTermProblems(objectAt(term, 'preference') ?? {}, `${field}.preference`, true)]
  })
  return [...problems, ...liked]
}

function weightProblems(term: JsonObject, path: string): FieldProblem[] {
  const weight = numberAt(term, 'weight') ?? 0
  return weight > 0 && weight <= 100 ? [] : [invalid(`${path}.weight`, weight, 'must be in the range 1-100')]
}

function nodeTermProblems(term: JsonObject, path: string, anyValue = false): FieldProblem[] {
  return [
    ...objectsAt(term, 'matchExpressions').flatMap((one, index) =>
      requirementProblems(`${path}.matchExpressions[${index}]`, one, { ordered: true, anyValue }),
    ),
    ...objectsAt(term, 'matchFields').flatMap((one, index) => nodeFieldProblems(one, `${path}.matchFields[${index}]`)),
  ]
}

function nodeFieldProblems(requirement: JsonObject, path: string): FieldProblem[] {
  const operator = textAt(requirement, 'operator')
  const key = textAt(requirement, 'key')
  const values = textsAt(requirement, 'values')
  const problems: FieldProblem[] = []
  if (!['In', 'NotIn'].includes(operator)) problems.push(invalid(`${path}.operator`, operator, 'not a valid selector operator'))
  else if (values.length !== 1)
    problems.push(required(`${path}.values`, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
  if (key !== 'metadata.name') return [...problems, invalid(`${path}.key`, key, 'not a valid field selector key')]
  return [...problems, ...values.flatMap((value, index) => invalidAll(`${path}.values[${index}]`, value, subdomainProblems(value)))]
}

function podTermProblems(term: JsonObject, path: string): FieldProblem[] {
  const key = textAt(term, 'topologyKey')
  return [
    ...labelSelectorProblems(`${path}.labelSelector`, objectAt(term, 'labelSelector')),
    ...labelSelectorProblems(`${path}.namespaceSelector`, objectAt(term, 'namespaceSelector')),
    ...textsAt(term, 'namespaces').flatMap((name) => invalidAll(`${path}.namespace`, name, labelNameProblems(name))),
    ...labelKeyProblems(term, path),
    ...(key === '' ? [required(`${path}.topologyKey`, 'can not be empty')] : []),
    ...invalidAll(`${path}.topologyKey`, key, qualifiedNameProblems(key)),
  ]
}

/** Keys whose values are taken from the pod itself. */
function labelKeyProblems(term: JsonObject, path: string): FieldProblem[] {
  const [match, mismatch] = [textsAt(term, 'matchLabelKeys'), textsAt(term, 'mismatchLabelKeys')]
  const all = { matchLabelKeys: match, mismatchLabelKeys: mismatch }
  const selector = objectAt(term, 'labelSelector')
  return Object.entries(all).flatMap(([name, keys]) => [
    ...(keys.length > 0 && selector === undefined
      ? [forbidden(`${path}.${name}`, 'must not be specified when labelSelector is not set')]
      : []),
    ...keys.flatMap((key, index) => invalidAll(`${path}.${name}[${index}]`, key, qualifiedNameProblems(key))),
  ])
}

const ACTIONS = ['DoNotSchedule', 'ScheduleAnyway']

export function spreadProblems(constraints: readonly JsonObject[], path: string): FieldProblem[] {
  return constraints.flatMap((constraint, index) => {
    const field = `${path}[${index}]`
    const skew = numberAt(constraint, 'maxSkew') ?? 0
    const [key, action] = [textAt(constraint, 'topologyKey'), textAt(constraint, 'whenUnsatisfiable')]
    const domains = numberAt(constraint, 'minDomains')
    const problems: FieldProblem[] = []
    if (skew <= 0) problems.push(invalid(`${field}.maxSkew`, skew, 'must be greater than zero'))
    if (key === '') problems.push(required(`${field}.topologyKey`, 'can not be empty'))
    problems.push(...oneOf(`${field}.whenUnsatisfiable`, action, ACTIONS))
    const same = (other: JsonObject) => textAt(other, 'topologyKey') === key && textAt(other, 'whenUnsatisfiable') === action
    if (constraints.slice(index + 1).some(same))
      problems.push(duplicate(`${field}.{topologyKey, whenUnsatisfiable}`, `{${key}, ${action}}`))
    if (domains !== undefined && domains <= 0) problems.push(invalid(`${field}.minDomains`, domains, 'must be greater than zero'))
    if (domains !== undefined && action !== 'DoNotSchedule') {
      const why = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`
      problems.push(invalid(`${field}.minDomains`, domains, why))
    }
    for (const name of ['nodeAffinityPolicy', 'nodeTaintsPolicy'])
      problems.push(...oneOf(`${field}.${name}`, givenText(constraint, name), ['Honor', 'Ignore']))
    return [
      ...problems,
      ...labelKeyProblems(constraint, field),
      ...labelSelectorProblems(`${field}.labelSelector`, objectAt(constraint, 'labelSelector')),
    ]
  })
}
