import { forbidden, invalid } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { qualifiedNameProblems, subdomainProblems } from '@thv/kube-schema/values/name-checks'
import { at, textAt } from '../../objects/served-kind.ts'
import { statusOf } from './status-shape.ts'
import { numberAt, objectsAt } from './validation/fields.ts'
import { addressProblems, invalidAll, nonNegative } from './validation/problems.ts'

export interface CountRules {
  readonly counts: readonly string[]
  /** Not more than `status.replicas`. */
  readonly parts: readonly string[]
  /** How the server calls `readyReplicas` in its sentence. */
  readonly ready: string
}

/** Of the status of a Deployment, ReplicaSet or StatefulSet. */
export function countProblems(object: JsonObject, old: JsonObject, { counts, parts, ready }: CountRules): FieldProblem[] {
  const status = statusOf(object)
  const count = (name: string) => numberAt(status, name) ?? 0
  const problems = counts.flatMap((name) => nonNegative(`status.${name}`, count(name)))
  for (const name of parts)
    if (count(name) > count('replicas')) problems.push(invalid(`status.${name}`, count(name), 'cannot be greater than status.replicas'))
  if (count('availableReplicas') > count('readyReplicas'))
    problems.push(invalid('status.availableReplicas', count('availableReplicas'), `cannot be greater than ${ready}`))
  const before = numberAt(statusOf(old), 'collisionCount')
  if (before !== undefined && count('collisionCount') < before)
    problems.push(invalid('status.collisionCount', count('collisionCount'), 'cannot be decremented'))
  return problems
}

const KNOWN_CONDITIONS = ['PodScheduled', 'Ready', 'Initialized']

export function podStatusProblems(pod: JsonObject, old: JsonObject): FieldProblem[] {
  const [status, before] = [statusOf(pod), statusOf(old)]
  const problems = objectsAt(status, 'conditions').flatMap((condition, index) => {
    const type = textAt(condition, 'type')
    const known = KNOWN_CONDITIONS.includes(type)
    return known ? [] : invalidAll(`status.conditions[${index}].Type`, type, qualifiedNameProblems(type))
  })
  const nominated = textAt(status, 'nominatedNodeName')
  if (nominated !== '' && nominated !== textAt(before, 'nominatedNodeName'))
    problems.push(...invalidAll('status.nominatedNodeName', nominated, subdomainProblems(nominated)))
  if (textAt(status, 'qosClass') !== textAt(before, 'qosClass'))
    problems.push(invalid('status.qosClass', textAt(status, 'qosClass'), 'field is immutable'))
  for (const list of ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'])
    problems.push(...revivedProblems(list, { status, before, spec: at(old, 'spec') as JsonObject }))
  const addresses = objectsAt(status, 'podIPs').flatMap((one, index) => addressProblems(`status.podIPs[${index}]`, textAt(one, 'ip')))
  return [...problems, ...addresses]
}

interface Revival {
  readonly status: JsonObject
  readonly before: JsonObject
  readonly spec: JsonObject
}

/** A container that has ended for good does not run again. */
function revivedProblems(list: string, { status, before, spec }: Revival): FieldProblem[] {
  const policy = textAt(spec, 'restartPolicy')
  const ephemeral = list === 'ephemeralContainerStatuses'
  if (!ephemeral && policy === 'Always') return []
  const sidecars = objectsAt(spec, 'initContainers').filter((one) => textAt(one, 'restartPolicy') === 'Always')
  const now = objectsAt(status, list)
  return objectsAt(before, list).flatMap((old, index) => {
    const code = numberAt(old, 'state', 'terminated', 'exitCode')
    if (code === undefined) return []
    if (!ephemeral && code !== 0 && policy === 'OnFailure') return []
    const name = textAt(old, 'name')
    if (list === 'initContainerStatuses' && sidecars.some((one) => textAt(one, 'name') === name)) return []
    const next = now.find((one) => textAt(one, 'name') === name)
    if (next === undefined || at(next, 'state', 'terminated') !== undefined) return []
    return [forbidden(`status.${list}[${index}].state`, 'may not be transitioned to non-terminated state')]
  })
}
