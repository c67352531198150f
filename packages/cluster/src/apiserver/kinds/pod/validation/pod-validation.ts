import { duplicate, forbidden, invalid, notSupported, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import {
  labelNameProblems,
  MAX_INT32,
  qualifiedNameProblems,
  rangeProblems,
  searchDomainProblems,
  subdomainProblems,
} from '@thv/kube-schema/values/name-checks'
import { labelMapProblems } from '../../../objects/field-checks.ts'
import { textAt } from '../../../objects/served-kind.ts'
import { containerProblems, ephemeralContainerProblems, imageProblems, initContainerProblems } from './container-validation.ts'
import { flagAt, givenText, numberAt, objectAt, objectsAt, textsAt } from './fields.ts'
import { addressProblems, invalidAll, oneOf } from './problems.ts'
import { resourceProblems } from './resource-validation.ts'
import { affinityProblems, spreadProblems, tolerationProblems } from './scheduling-validation.ts'
import { hostUserProblems, podSecurityProblems } from './security-validation.ts'
import { checkVolumes } from './volume-validation.ts'

/** Of a new pod, and of one that is to replace another. Its name and labels are checked as those of all objects. */
export function podProblems(pod: JsonObject): FieldProblem[] {
  const spec = objectAt(pod, 'spec') ?? {}
  return [
    ...podAnnotationProblems(objectAt(pod, 'metadata', 'annotations'), spec, 'metadata.annotations'),
    ...podSpecProblems(spec, 'spec', { podName: textAt(pod, 'metadata', 'name') }),
    ...['containers', 'initContainers'].flatMap((list) =>
      objectsAt(spec, list).flatMap((container, index) => imageProblems(container, `spec.${list}[${index}]`)),
    ),
  ]
}

export interface PodSpecContext {
  /** Absent in a template. */
  readonly podName?: string
}

export function podSpecProblems(spec: JsonObject, path: string, { podName }: PodSpecContext = {}): FieldProblem[] {
  const checked = checkVolumes(objectsAt(spec, 'volumes'), `${path}.volumes`, podName)
  const place = {
    spec,
    volumes: checked.good,
    graceSeconds: numberAt(spec, 'terminationGracePeriodSeconds') ?? 0,
    hostUsers: flagAt(spec, 'hostUsers') !== false,
  }
  return [
    ...checked.problems,
    ...containerProblems(place, path),
    ...initContainerProblems(place, path),
    ...ephemeralContainerProblems(place, path),
    ...resourceProblems(objectAt(spec, 'resources'), `${path}.resources`, true),
    ...hostNetworkProblems(spec, path, podName !== undefined),
    ...oneOf(`${path}.restartPolicy`, textAt(spec, 'restartPolicy'), ['Always', 'OnFailure', 'Never']),
    ...oneOf(`${path}.dnsPolicy`, textAt(spec, 'dnsPolicy'), ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']),
    ...labelMapProblems(`${path}.nodeSelector`, objectAt(spec, 'nodeSelector')),
    ...podSecurityProblems(spec, `${path}.securityContext`),
    ...affinityProblems(objectAt(spec, 'affinity'), `${path}.affinity`),
    ...dnsProblems(spec, `${path}.dnsConfig`),
    ...gateProblems(spec, path),
    ...spreadProblems(objectsAt(spec, 'topologySpreadConstraints'), `${path}.topologySpreadConstraints`),
    ...hostUserProblems(spec, path),
    ...nameFieldProblems(spec, path),
    ...deadlineProblems(spec, `${path}.activeDeadlineSeconds`),
    ...tolerationProblems(objectsAt(spec, 'tolerations'), `${path}.tolerations`),
    ...aliasProblems(spec, `${path}.hostAliases`),
    ...preemptionProblems(spec, `${path}.preemptionPolicy`),
    ...resourceProblems({ limits: objectAt(spec, 'overhead') ?? {} }, `${path}.overhead`),
    ...osProblems(spec, `${path}.os`),
  ]
}

const MIRROR = 'kubernetes.io/config.mirror'
const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost'

export function podAnnotationProblems(annotations: JsonObject | undefined, spec: JsonObject, path: string): FieldProblem[] {
  const problems: FieldProblem[] = []
  const mirror = givenText(annotations, MIRROR)
  if (mirror !== undefined && textAt(spec, 'nodeName') === '')
    problems.push(invalid(`${path}[${MIRROR}]`, mirror, 'must set spec.nodeName if mirror pod annotation is set'))
  const cost = givenText(annotations, DELETION_COST)
  const isNumber = cost === undefined || (/^(0|-?[1-9]\d*)$/.test(cost) && Math.abs(Number(cost)) <= MAX_INT32)
  if (!isNumber) problems.push(invalid(`${path}[${DELETION_COST}]`, cost, 'must be a 32bit integer'))
  return problems
}

function hostNetworkProblems(spec: JsonObject, path: string, isPod: boolean): FieldProblem[] {
  if (flagAt(spec, 'hostNetwork') !== true) return []
  return objectsAt(spec, 'containers').flatMap((container, at) =>
    objectsAt(container, 'ports').flatMap((port, index) => {
      const host = numberAt(port, 'hostPort') ?? 0
      if ((!isPod && host === 0) || host === numberAt(port, 'containerPort')) return []
      const field = `${path}.containers[${at}].ports[${index}].hostPort`
      return [invalid(field, host, 'must match `containerPort` when `hostNetwork` is true')]
    }),
  )
}

function dnsProblems(spec: JsonObject, path: string): FieldProblem[] {
  const config = objectAt(spec, 'dnsConfig')
  const servers = textsAt(config, 'nameservers')
  if (textAt(spec, 'dnsPolicy') === 'None') {
    if (config === undefined) return [required(path, 'must provide `dnsConfig` when `dnsPolicy` is None')]
    if (servers.length === 0) return [required(`${path}.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None')]
  }
  const searches = textsAt(config, 'searches')
  const problems: FieldProblem[] = []
  if (servers.length > 3) problems.push(invalid(`${path}.nameservers`, [...servers], 'must not have more than 3 nameservers'))
  problems.push(...servers.flatMap((server, index) => addressProblems(`${path}.nameservers[${index}]`, server)))
  if (searches.length > 32) problems.push(invalid(`${path}.searches`, [...searches], 'must not have more than 32 search paths'))
  if (searches.join(' ').length > 2_048) {
    const why = 'must not have more than 2048 characters (including spaces) in the search list'
    problems.push(invalid(`${path}.searches`, [...searches], why))
  }
  searches.forEach((search, index) => {
    const name = search.replace(/\.$/, '')
    if (search !== '.') problems.push(...invalidAll(`${path}.searches[${index}]`, name, searchDomainProblems(name)))
  })
  objectsAt(config, 'options').forEach((option, index) => {
    if (textAt(option, 'name') === '') problems.push(required(`${path}.options[${index}]`, 'must not be empty'))
  })
  return problems
}

function gateProblems(spec: JsonObject, path: string): FieldProblem[] {
  const seen = new Set<string>()
  return [
    ...objectsAt(spec, 'readinessGates').flatMap((gate, index) => {
      const type = textAt(gate, 'conditionType')
      return invalidAll(`${path}.readinessGates[${index}].conditionType`, type, qualifiedNameProblems(type))
    }),
    ...objectsAt(spec, 'schedulingGates').flatMap((gate, index) => {
      const name = textAt(gate, 'name')
      const field = `${path}.schedulingGates[${index}]`
      const again = seen.has(name) ? [duplicate(field, name)] : []
      seen.add(name)
      return [...invalidAll(field, name, qualifiedNameProblems(name)), ...again]
    }),
  ]
}

/** Names of other things. */
function nameFieldProblems(spec: JsonObject, path: string): FieldProblem[] {
  const rules: [string, (name: string) => string[]][] = [
    ['serviceAccountName', subdomainProblems],
    ['nodeName', subdomainProblems],
    ['hostname', labelNameProblems],
    ['subdomain', labelNameProblems],
    ['priorityClassName', subdomainProblems],
  ]
  const problems = rules.flatMap(([field, check]) => {
    const name = textAt(spec, field)
    return name === '' ? [] : invalidAll(`${path}.${field}`, name, check(name))
  })
  const runtime = givenText(spec, 'runtimeClassName')
  return runtime === undefined ? problems : [...problems, ...invalidAll(`${path}.runtimeClassName`, runtime, subdomainProblems(runtime))]
}

function deadlineProblems(spec: JsonObject, field: string): FieldProblem[] {
  const seconds = numberAt(spec, 'activeDeadlineSeconds')
  return seconds === undefined ? [] : invalidAll(field, seconds, rangeProblems(seconds, 1, MAX_INT32))
}

function aliasProblems(spec: JsonObject, path: string): FieldProblem[] {
  return objectsAt(spec, 'hostAliases').flatMap((alias, index) => [
    ...addressProblems(`${path}[${index}].ip`, textAt(alias, 'ip')),
    ...textsAt(alias, 'hostnames').flatMap((name, at) => invalidAll(`${path}[${index}].hostnames[${at}]`, name, subdomainProblems(name))),
  ])
}

function preemptionProblems(spec: JsonObject, field: string): FieldProblem[] {
  const policy = givenText(spec, 'preemptionPolicy')
  return policy === '' ? [required(field)] : oneOf(field, policy, ['PreemptLowerPriority', 'Never'])
}

function osProblems(spec: JsonObject, path: string): FieldProblem[] {
  const os = objectAt(spec, 'os')
  if (os === undefined) return []
  const name = textAt(os, 'name')
  if (name === '') return [required(`${path}.name`)]
  return ['linux', 'windows'].includes(name) ? [] : [notSupported(path, name, ['linux', 'windows'])]
}

/** Fields that a new pod cannot have yet. */
export function newPodProblems(pod: JsonObject): FieldProblem[] {
  const problems: FieldProblem[] = []
  if (objectsAt(pod, 'spec', 'ephemeralContainers').length > 0)
    problems.push(forbidden('spec.ephemeralContainers', 'cannot be set on create'))
  if (textAt(pod, 'spec', 'nodeName') !== '' && objectsAt(pod, 'spec', 'schedulingGates').length > 0)
    problems.push(forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'))
  return problems
}
