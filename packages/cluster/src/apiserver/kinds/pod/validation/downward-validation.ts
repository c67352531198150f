import { invalid, notSupported, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { qualifiedNameProblems } from '@thv/kube-schema/values/name-checks'
import { quantityOf, quantityText } from '@thv/kube-schema/values/quantity'
import { textAt } from '../../../objects/served-kind.ts'
import { invalidAll } from './problems.ts'

/* References to fields of the pod itself. Lists are in the order in which the server shows them. */

export const ENV_FIELDS: readonly string[] = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]
export const VOLUME_FIELDS: readonly string[] = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
]
const FIELDS: ReadonlySet<string> = new Set([
  ...ENV_FIELDS,
  ...VOLUME_FIELDS,
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
  'spec.host',
])

export function fieldRefProblems(ref: JsonObject, path: string, supported: readonly string[]): FieldProblem[] {
  const version = textAt(ref, 'apiVersion')
  const field = textAt(ref, 'fieldPath')
  if (field === '') return [required(`${path}.fieldPath`)]
  const unreadable = (why: string) => [invalid(`${path}.fieldPath`, field, `error converting fieldPath: ${why}`)]
  if (version !== 'v1') return unreadable(`unsupported pod version: ${version}`)
  const [, map, key] = /^([^[\]]*)\['(.*)'\]$/s.exec(field) ?? []
  if (map !== undefined && key !== undefined) {
    if (map === 'metadata.annotations') return invalidAll(path, key.toLowerCase(), qualifiedNameProblems(key.toLowerCase()))
    if (map === 'metadata.labels') return invalidAll(path, key, qualifiedNameProblems(key))
    return unreadable(`field label does not support subscript: ${field}`)
  }
  if (!FIELDS.has(field)) return unreadable(`field label not supported: ${field}`)
  const known = field === 'spec.host' ? 'spec.nodeName' : field
  return supported.includes(known) ? [] : [notSupported(`${path}.fieldPath`, known, supported)]
}

const RESOURCES = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
]
const HUGE_PAGES = /^(limits|requests)\.hugepages-/

/** `inVolume`: a file has to say which container it means; a variable means its own. */
export function resourceRefProblems(ref: JsonObject, path: string, inVolume: boolean): FieldProblem[] {
  const resource = textAt(ref, 'resource')
  const problems: FieldProblem[] = []
  if (inVolume && textAt(ref, 'containerName') === '') problems.push(required(`${path}.containerName`))
  else if (resource === '') problems.push(required(`${path}.resource`))
  else if (!RESOURCES.includes(resource) && !HUGE_PAGES.test(resource)) problems.push(notSupported(`${path}.resource`, resource, RESOURCES))
  return [...problems, ...divisorProblems(resource, textAt(ref, 'divisor'), path)]
}

const UNITS = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei']

function divisorProblems(resource: string, given: string, path: string): FieldProblem[] {
  const divisor = quantityText(quantityOf(given === '' ? '0' : given))
  if (divisor === '0') return []
  const wrong = (units: string, what: string) => [
    invalid(`${path}.divisor`, resource, `only divisor's values ${units} are supported with the ${what} resource`),
  ]
  if (resource.endsWith('.cpu')) return ['1m', '1'].includes(divisor) ? [] : wrong('1m and 1', 'cpu')
  if (UNITS.includes(divisor)) return []
  if (resource.endsWith('.memory')) return wrong(UNITS.join(', '), 'memory')
  if (resource.endsWith('.ephemeral-storage')) return wrong(UNITS.join(', '), 'local ephemeral storage')
  return HUGE_PAGES.test(resource) ? wrong(UNITS.join(', '), 'hugepages') : []
}
