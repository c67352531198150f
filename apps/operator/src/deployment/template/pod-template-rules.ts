import { objectAt, objectsAt, type UnknownObject } from '@thv/kernel/json'
import { readQuantity } from '@thv/kube-schema/values/quantity'
import { isRecord } from '@thv/resources/schema/normalize'
import { fieldsOf } from './pod-schema.ts'
import type { Report } from './pod-template-spec.ts'
import { isInnerPath, isLabelValue, isQualifiedName } from './scalars.ts'

type Rule = (value: UnknownObject, at: string, report: Report) => void

interface Place {
  readonly type: string
  readonly at: string
  readonly report: Report
}

/** Goes through a value whose types are right and applies the rules of each type in it. */
export function applyRules(value: unknown, { type, at, report }: Place): void {
  const fields = fieldsOf(type)
  if (fields === undefined || !isRecord(value)) return
  RULES[type]?.(value, at, report)
  for (const [name, member] of Object.entries(value)) {
    const field = fields.get(name)
    if (field === undefined || member === null) continue
    if (Array.isArray(member)) {
      for (const [index, item] of member.entries()) applyRules(item, { type: field.type, at: `${at}.${name}[${index}]`, report })
    } else if (field.shape === 'one') applyRules(member, { type: field.type, at: `${at}.${name}`, report })
  }
}

/** Checks of the API server across several fields, as far as people run into them. */
const RULES: Readonly<Record<string, Rule>> = {
  TemplateMeta: (meta, at, report) => {
    checkLabels(objectAt(meta, 'labels'), `${at}.labels`, report)
    for (const key of Object.keys(objectAt(meta, 'annotations'))) {
      if (!isQualifiedName(key.toLowerCase())) report(`${at}.annotations[${key}]`, 'is not a key that an annotation can have')
    }
  },
  PodSpec: (spec, at, report) => {
    checkLabels(objectAt(spec, 'nodeSelector'), `${at}.nodeSelector`, report)
    checkContainerNames(spec, at, report)
    checkMounts(spec, at, report)
    if (spec['hostUsers'] === false && ['hostNetwork', 'hostPID', 'hostIPC'].some((field) => spec[field] === true)) {
      report(`${at}.hostUsers`, 'cannot be false together with hostNetwork, hostPID or hostIPC')
    }
    if (spec['shareProcessNamespace'] === true && spec['hostPID'] === true) {
      report(`${at}.shareProcessNamespace`, 'cannot be true together with hostPID')
    }
    if (spec['dnsPolicy'] === 'None' && listOf(objectAt(spec, 'dnsConfig')['nameservers']).length === 0) {
      report(`${at}.dnsConfig.nameservers`, 'must be set, because dnsPolicy is None')
    }
  },
  Container: (container, at, report) => {
    const image = container['image']
    if (typeof image !== 'string' || image === '') report(`${at}.image`, 'must be set')
    else if (image.trim() !== image) report(`${at}.image`, 'must not begin or end with a space')
    const names = objectsAt(container, 'ports').flatMap((port) =>
      typeof port['name'] === 'string' && port['name'] !== '' ? [port['name']] : [],
    )
    if (new Set(names).size < names.length) report(`${at}.ports`, 'has the same name twice')
    for (const probe of ['livenessProbe', 'startupProbe']) {
      if (Number(objectAt(container, probe)['successThreshold'] ?? 1) > 1) report(`${at}.${probe}.successThreshold`, 'must be 1')
    }
    if (isPresent(objectAt(container, 'readinessProbe')['terminationGracePeriodSeconds'])) {
      report(`${at}.readinessProbe.terminationGracePeriodSeconds`, 'cannot be set for a readiness probe')
    }
  },
  EnvVar: (variable, at, report) => {
    if (isPresent(variable['valueFrom']) && variable['value']) report(at, 'has both value and valueFrom: keep one of them')
  },
  EnvVarSource: (source, at, report) => {
    atMostOneOf(source, ['configMapKeyRef', 'fieldRef', 'fileKeyRef', 'resourceFieldRef', 'secretKeyRef'], { at, report, least: 1 })
  },
  EnvFromSource: (source, at, report) => atMostOneOf(source, ['configMapRef', 'secretRef'], { at, report, least: 1 }),
  LifecycleHandler: (handler, at, report) => atMostOneOf(handler, ['exec', 'httpGet', 'sleep', 'tcpSocket'], { at, report, least: 1 }),
  Probe: (probe, at, report) => {
    atMostOneOf(probe, ['exec', 'grpc', 'httpGet', 'tcpSocket'], { at, report, least: 1 })
    if (probe['terminationGracePeriodSeconds'] === 0) report(`${at}.terminationGracePeriodSeconds`, 'must be at least 1')
  },
  ExecAction: (action, at, report) => {
    if (listOf(action['command']).length === 0) report(`${at}.command`, 'must be set')
  },
  ResourceRequirements: checkResources,
  SecurityContext: (context, at, report) => {
    if (context['allowPrivilegeEscalation'] !== false) return
    const added = listOf(objectAt(context, 'capabilities')['add'])
    if (context['privileged'] === true) report(at, 'cannot deny escalation to a privileged container')
    if (added.includes('SYS_ADMIN') || added.includes('CAP_SYS_ADMIN')) report(at, 'cannot deny escalation to a container with SYS_ADMIN')
  },
  SeccompProfile: checkLocalhostProfile,
  AppArmorProfile: checkLocalhostProfile,
  Toleration: (toleration, at, report) => {
    const { key, operator, value, effect, tolerationSeconds } = toleration
    if (!key && operator !== 'Exists') report(`${at}.operator`, 'must be Exists, because there is no key')
    if (key && !isQualifiedName(String(key))) report(`${at}.key`, 'is not a key that a taint can have')
    if (operator === 'Exists' && value) report(`${at}.value`, 'must be empty, because operator is Exists')
    if (isPresent(tolerationSeconds) && effect !== 'NoExecute')
      report(`${at}.effect`, 'must be NoExecute, because tolerationSeconds is set')
  },
  TopologySpreadConstraint: (constraint, at, report) => {
    if (isPresent(constraint['minDomains']) && constraint['whenUnsatisfiable'] !== 'DoNotSchedule') {
      report(`${at}.minDomains`, 'needs whenUnsatisfiable to be DoNotSchedule')
    }
  },
  NodeSelector: (selector, at, report) => {
    if (listOf(selector['nodeSelectorTerms']).length === 0) report(`${at}.nodeSelectorTerms`, 'needs at least one item')
  },
  NodeSelectorRequirement: checkExpression,
  LabelSelectorRequirement: checkExpression,
  LabelSelector: (selector, at, report) => checkLabels(objectAt(selector, 'matchLabels'), `${at}.matchLabels`, report),
  Volume: (volume, at, report) => {
    const sources = Object.keys(volume).filter((field) => field !== 'name')
    atMostOneOf(volume, sources, { at, report, least: 0 })
  },
  VolumeMount: (mount, at, report) => {
    if (mount['subPath'] && mount['subPathExpr']) report(at, 'has both subPath and subPathExpr: keep one of them')
    for (const field of ['subPath', 'subPathExpr']) {
      if (mount[field] && !isInnerPath(String(mount[field]))) report(`${at}.${field}`, 'expects a relative path without ..')
    }
  },
  HostPathVolume: (source, at, report) => {
    if (String(source['path']).split('/').includes('..')) report(`${at}.path`, 'must not contain ..')
  },
  SecretVolume: (source, at, report) => {
    if (!source['secretName']) report(`${at}.secretName`, 'must be set')
  },
  ConfigMapVolume: checkNamed,
  ConfigMapProjection: checkNamed,
  SecretProjection: checkNamed,
  KeySelector: checkNamed,
  EnvSource: checkNamed,
  ImageVolume: (source, at, report) => {
    if (!source['reference']) report(`${at}.reference`, 'must be set')
  },
  VolumeProjection: (source, at, report) => atMostOneOf(source, Object.keys(source), { at, report, least: 0 }),
  DownwardAPIFile: (file, at, report) => atMostOneOf(file, ['fieldRef', 'resourceFieldRef'], { at, report, least: 1 }),
  EphemeralVolume: (source, at, report) => {
    if (!isRecord(source['volumeClaimTemplate'])) report(`${at}.volumeClaimTemplate`, 'must be set')
  },
}

function checkNamed(value: UnknownObject, at: string, report: Report): void {
  if (!value['name']) report(`${at}.name`, 'must be set')
}

/** Labels, and what selects by them. */
export function checkLabels(labels: UnknownObject, at: string, report: Report): void {
  for (const [key, value] of Object.entries(labels)) {
    if (!isQualifiedName(key)) report(`${at}[${key}]`, 'is not a key that a label can have')
    else if (typeof value !== 'string' || !isLabelValue(value)) report(`${at}[${key}]`, 'is not a value that a label can have')
  }
}

function checkContainerNames(spec: UnknownObject, at: string, report: Report): void {
  const first = new Set(objectsAt(spec, 'initContainers').map(({ name }) => name))
  objectsAt(spec, 'containers').forEach(({ name }, index) => {
    if (first.has(name)) report(`${at}.containers[${index}].name`, 'is also the name of an init container')
  })
  if (objectsAt(spec, 'containers').length === 0) report(`${at}.containers`, 'needs at least one container')
}

function checkMounts(spec: UnknownObject, at: string, report: Report): void {
  const volumes = new Set(objectsAt(spec, 'volumes').map(({ name }) => name))
  for (const list of ['containers', 'initContainers']) {
    objectsAt(spec, list).forEach((container, index) => {
      objectsAt(container, 'volumeMounts').forEach(({ name }, mount) => {
        if (!volumes.has(name)) report(`${at}.${list}[${index}].volumeMounts[${mount}].name`, 'names no volume of the pod')
      })
    })
  }
}

const STANDARD_RESOURCES = ['cpu', 'memory', 'ephemeral-storage']

export function checkResources(resources: UnknownObject, at: string, report: Report): void {
  const limits = objectAt(resources, 'limits')
  for (const list of ['limits', 'requests']) {
    for (const [name, value] of Object.entries(objectAt(resources, list))) {
      const path = `${at}.${list}[${name}]`
      if (!STANDARD_RESOURCES.includes(name) && !name.startsWith('hugepages-') && !(name.includes('/') && isQualifiedName(name))) {
        report(path, 'is not a resource that a container can have')
      } else if ((readQuantity(value)?.nanos ?? 0n) < 0n) report(path, 'must not be negative')
    }
  }
  for (const [name, value] of Object.entries(objectAt(resources, 'requests'))) {
    const limit = readQuantity(limits[name])
    if (limit !== undefined && (readQuantity(value)?.nanos ?? 0n) > limit.nanos)
      report(`${at}.requests[${name}]`, 'must not be above the limit')
  }
}

function checkLocalhostProfile(profile: UnknownObject, at: string, report: Report): void {
  const isLocal = profile['type'] === 'Localhost'
  if (isLocal !== Boolean(profile['localhostProfile'])) report(`${at}.localhostProfile`, 'must be set if and only if type is Localhost')
}

function checkExpression(expression: UnknownObject, at: string, report: Report): void {
  const count = listOf(expression['values']).length
  const operator = String(expression['operator'])
  if (!isQualifiedName(String(expression['key']))) report(`${at}.key`, 'is not a key that a label can have')
  if (['In', 'NotIn'].includes(operator) && count === 0) report(`${at}.values`, `must be set, because operator is ${operator}`)
  if (['Exists', 'DoesNotExist'].includes(operator) && count > 0) report(`${at}.values`, `must be empty, because operator is ${operator}`)
  if (['Gt', 'Lt'].includes(operator) && count !== 1) report(`${at}.values`, `needs exactly one value, because operator is ${operator}`)
}

function atMostOneOf(value: UnknownObject, fields: readonly string[], options: { at: string; report: Report; least: 0 | 1 }): void {
  const { at, report, least } = options
  const given = fields.filter((field) => isPresent(value[field]))
  if (given.length > 1) report(at, `has ${given.join(' and ')}: keep one of them`)
  if (given.length < least) report(at, `needs one of ${fields.join(', ')}`)
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
