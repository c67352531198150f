import { duplicate, forbidden, invalid, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { labelNameProblems, portNameProblems, portNumberProblems } from '@thv/kube-schema/values/name-checks'
import { choiceProblems } from '../../../objects/field-checks.ts'
import { textAt } from '../../../objects/served-kind.ts'
import { envProblems } from './env-validation.ts'
import { givenText, numberAt, objectAt, objectsAt } from './fields.ts'
import { lifeProblems } from './handler-validation.ts'
import { mountProblems } from './mount-validation.ts'
import { invalidAll, notFoundValue, oneOf } from './problems.ts'
import { resourceProblems } from './resource-validation.ts'
import { securityProblems } from './security-validation.ts'

/** State that the containers of a pod share. */
export interface ContainerPlace {
  readonly spec: JsonObject
  readonly volumes: ReadonlyMap<string, JsonObject>
  readonly graceSeconds: number
  readonly hostUsers: boolean
}

export function containerProblems(place: ContainerPlace, path: string): FieldProblem[] {
  const containers = objectsAt(place.spec, 'containers')
  if (containers.length === 0) return [required(`${path}.containers`)]
  const names = new Set<string>()
  const problems = containers.flatMap((container, index) => {
    const field = `${path}.containers[${index}]`
    const name = textAt(container, 'name')
    const again = names.has(name) ? [duplicate(`${field}.name`, name)] : []
    names.add(name)
    return [...commonProblems(container, place, field), ...again, ...lifeProblems(container, field, place.graceSeconds)]
  })
  return [...problems, ...hostPortProblems(containers, `${path}.containers`)]
}

const ONLY_SIDECARS = ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe']

export function initContainerProblems(place: ContainerPlace, path: string): FieldProblem[] {
  const names = new Set(objectsAt(place.spec, 'containers').map((container) => textAt(container, 'name')))
  return objectsAt(place.spec, 'initContainers').flatMap((container, index) => {
    const field = `${path}.initContainers[${index}]`
    const name = textAt(container, 'name')
    const again = names.has(name) ? [duplicate(`${field}.name`, name)] : []
    if (name !== '') names.add(name)
    const life =
      givenText(container, 'restartPolicy') === 'Always'
        ? lifeProblems(container, field, place.graceSeconds)
        : ONLY_SIDECARS.filter((member) => container[member] !== undefined).map((member) =>
            forbidden(`${field}.${member}`, 'may not be set for init containers without restartPolicy=Always'),
          )
    return [...commonProblems(container, place, field), ...again, ...hostPortProblems([container], `${path}.initContainers`), ...life]
  })
}

const NOT_EPHEMERAL = [
  'ports',
  'resources',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
  'resizePolicy',
  'restartPolicy',
]

export function ephemeralContainerProblems(place: ContainerPlace, path: string): FieldProblem[] {
  const others = [...objectsAt(place.spec, 'containers'), ...objectsAt(place.spec, 'initContainers')].map((one) => textAt(one, 'name'))
  const names = new Set(others)
  return objectsAt(place.spec, 'ephemeralContainers').flatMap((container, index) => {
    const field = `${path}.ephemeralContainers[${index}]`
    const problems = [...commonProblems(container, place, field), ...imageProblems(container, field)]
    const name = textAt(container, 'name')
    if (names.has(name)) problems.push(duplicate(`${field}.name`, name))
    names.add(name)
    const target = textAt(container, 'targetContainerName')
    if (target !== '' && !others.includes(target)) problems.push(notFoundValue(`${field}.targetContainerName`, target))
    const cannot = 'cannot be set for an Ephemeral Container'
    for (const member of NOT_EPHEMERAL) if (isSet(container, member)) problems.push(forbidden(`${field}.${member}`, cannot))
    objectsAt(container, 'volumeMounts').forEach((mount, at) => {
      for (const member of ['subPath', 'subPathExpr'])
        if (textAt(mount, member) !== '') problems.push(forbidden(`${field}.volumeMounts[${at}].${member}`, cannot))
    })
    return problems
  })
}

/** Of a pod only: templates have always been able to hold such names. */
export function imageProblems(container: JsonObject, path: string): FieldProblem[] {
  const image = textAt(container, 'image')
  return image.trim() === image ? [] : [invalid(`${path}.image`, image, 'must not have leading or trailing whitespace')]
}

function isSet(container: JsonObject, member: string): boolean {
  const value = container[member]
  return value !== undefined && !(member === 'resources' && Object.keys(objectAt(container, member) ?? {}).length === 0)
}

function commonProblems(container: JsonObject, place: ContainerPlace, path: string): FieldProblem[] {
  const name = textAt(container, 'name')
  return [
    ...(name === '' ? [required(`${path}.name`)] : invalidAll(`${path}.name`, name, labelNameProblems(name))),
    ...(textAt(container, 'image') === '' ? [required(`${path}.image`)] : []),
    ...oneOf(`${path}.terminationMessagePolicy`, textAt(container, 'terminationMessagePolicy'), ['File', 'FallbackToLogsOnError']),
    ...portProblems(container, `${path}.ports`),
    ...envProblems(container, path),
    ...mountProblems(container, place.volumes, path),
    ...oneOf(`${path}.imagePullPolicy`, textAt(container, 'imagePullPolicy'), ['Always', 'IfNotPresent', 'Never']),
    ...resourceProblems(objectAt(container, 'resources'), `${path}.resources`),
    ...resizeProblems(container, `${path}.resizePolicy`, textAt(place.spec, 'restartPolicy')),
    ...securityProblems(objectAt(container, 'securityContext'), `${path}.securityContext`, place.hostUsers),
  ]
}

function portProblems(container: JsonObject, path: string): FieldProblem[] {
  const names = new Set<string>()
  return objectsAt(container, 'ports').flatMap((port, index) => {
    const field = `${path}[${index}]`
    const name = textAt(port, 'name')
    const problems: FieldProblem[] = []
    if (name !== '') {
      const wrong = portNameProblems(name)
      problems.push(...invalidAll(`${field}.name`, name, wrong))
      if (wrong.length === 0 && names.has(name)) problems.push(duplicate(`${field}.name`, name))
      else if (wrong.length === 0) names.add(name)
    }
    const number = numberAt(port, 'containerPort') ?? 0
    if (number === 0) problems.push(required(`${field}.containerPort`))
    else problems.push(...invalidAll(`${field}.containerPort`, number, portNumberProblems(number)))
    const host = numberAt(port, 'hostPort') ?? 0
    if (host !== 0) problems.push(...invalidAll(`${field}.hostPort`, host, portNumberProblems(host)))
    return [...problems, ...choiceProblems(`${field}.protocol`, textAt(port, 'protocol'), ['SCTP', 'TCP', 'UDP'])]
  })
}

function hostPortProblems(containers: readonly JsonObject[], path: string): FieldProblem[] {
  const taken = new Set<string>()
  return containers.flatMap((container, at) =>
    objectsAt(container, 'ports').flatMap((port, index) => {
      const number = numberAt(port, 'hostPort') ?? 0
      if (number === 0) return []
      const key = `${textAt(port, 'protocol')}/${textAt(port, 'hostIP')}/${number}`
      if (taken.has(key)) return [duplicate(`${path}[${at}].ports[${index}].hostPort`, key)]
      taken.add(key)
      return []
    }),
  )
}

function resizeProblems(container: JsonObject, path: string, podRestart: string): FieldProblem[] {
  const seen = new Set<string>()
  return objectsAt(container, 'resizePolicy').flatMap((policy, index) => {
    const name = textAt(policy, 'resourceName')
    const restart = textAt(policy, 'restartPolicy')
    const problems = seen.has(name) ? [duplicate(`${path}[${index}]`, name)] : []
    seen.add(name)
    problems.push(...choiceProblems(path, name, ['cpu', 'memory']))
    problems.push(...choiceProblems(path, restart, ['NotRequired', 'RestartContainer']))
    if (podRestart === 'Never' && restart !== 'NotRequired')
      problems.push(invalid(path, restart, "must be 'NotRequired' when `restartPolicy` is 'Never'"))
    return problems
  })
}
