import { jsonEqual } from '@thv/kernel/json'
import { forbidden, invalid, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { MAX_INT32, rangeProblems } from '@thv/kube-schema/values/name-checks'
import { textAt, without } from '../../objects/served-kind.ts'
import { imageProblems } from './validation/container-validation.ts'
import { changedItems, numberAt, objectAt, objectsAt, withMember } from './validation/fields.ts'
import { invalidAll } from './validation/problems.ts'

const CHANGEABLE = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',')

/** Fields of a pod that an update may not change. */
export function podUpdateProblems(pod: JsonObject, old: JsonObject): FieldProblem[] {
  const [after, before] = [objectAt(pod, 'spec') ?? {}, objectAt(old, 'spec') ?? {}]
  const problems: FieldProblem[] = []
  for (const list of ['containers', 'initContainers']) {
    const containers = objectsAt(after, list)
    if (containers.length !== objectsAt(before, list).length)
      return [...problems, forbidden(`spec.${list}`, 'pod updates may not add or remove containers')]
    containers.forEach((container, index) => {
      if (textAt(container, 'image') === '') problems.push(required(`spec.${list}[${index}].image`))
      problems.push(...imageProblems(container, `spec.${list}[${index}]`))
    })
  }
  const deadline = deadlineProblems(after, before)
  problems.push(...deadline)
  if (deadline.length > 0 && after['activeDeadlineSeconds'] !== undefined) return problems
  problems.push(...addedTolerations(after, before), ...removedGates(after, before))
  const munged = withOld(after, before)
  if (!jsonEqual(munged, before))
    problems.push(forbidden('spec', `pod updates may not change fields other than ${CHANGEABLE}\n${difference(munged, before)}`))
  return problems
}

function deadlineProblems(after: JsonObject, before: JsonObject): FieldProblem[] {
  const field = 'spec.activeDeadlineSeconds'
  const [seconds, old] = [numberAt(after, 'activeDeadlineSeconds'), numberAt(before, 'activeDeadlineSeconds')]
  if (seconds === undefined) return old === undefined ? [] : [invalid(field, null, 'must not update from a positive integer to nil value')]
  const outside = invalidAll(field, seconds, rangeProblems(seconds, 0, MAX_INT32))
  if (outside.length > 0 || old === undefined || old >= seconds) return outside
  return [invalid(field, seconds, 'must be less than or equal to previous value')]
}

function addedTolerations(after: JsonObject, before: JsonObject): FieldProblem[] {
  const plain = (one: JsonObject) => without(one, 'tolerationSeconds')
  const tolerations = objectsAt(after, 'tolerations').map(plain)
  const kept = objectsAt(before, 'tolerations').every((old) => tolerations.some((one) => jsonEqual(one, plain(old))))
  return kept ? [] : [forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')]
}

function removedGates(after: JsonObject, before: JsonObject): FieldProblem[] {
  const old = new Set(objectsAt(before, 'schedulingGates').map((gate) => textAt(gate, 'name')))
  return objectsAt(after, 'schedulingGates').flatMap((gate, index) => {
    const name = textAt(gate, 'name')
    if (old.has(name)) return []
    return [forbidden(`spec.schedulingGates[${index}].name`, `only deletion is allowed, but found new scheduling gate '${name}'`)]
  })
}

/** The new spec with everything that may change put back. */
function withOld(after: JsonObject, before: JsonObject): JsonObject {
  let spec = after
  for (const list of ['containers', 'initContainers']) {
    let index = 0
    const old = objectsAt(before, list)
    spec = changedItems(spec, list, (container) => withMember(container, 'image', old[index++]?.['image']))
  }
  for (const name of ['activeDeadlineSeconds', 'schedulingGates', 'tolerations']) spec = withMember(spec, name, before[name])
  const grace = numberAt(before, 'terminationGracePeriodSeconds') ?? 0
  const isReset = grace < 0 && numberAt(spec, 'terminationGracePeriodSeconds') === 1
  if (isReset) spec = withMember(spec, 'terminationGracePeriodSeconds', grace)
  // A pod with scheduling gates may still get a node selector.
  return objectsAt(before, 'schedulingGates').length > 0 ? withMember(spec, 'nodeSelector', before['nodeSelector']) : spec
}

/** The server prints a whole diff of its structs here; the names of the members are what helps. */
function difference(after: JsonObject, before: JsonObject): string {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names
    .filter((name) => !jsonEqual(after[name], before[name]))
    .map((name) => `  spec.${name}`)
    .join('\n')
}
