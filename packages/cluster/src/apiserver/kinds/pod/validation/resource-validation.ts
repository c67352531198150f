import { forbidden, invalid, notSupported, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { qualifiedNameProblems } from '@thv/kube-schema/values/name-checks'
import { quantityOf, quantityText } from '@thv/kube-schema/values/quantity'
import { objectAt } from './fields.ts'
import { invalidAll } from './problems.ts'

const CONTAINER_RESOURCES: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage'])
const OTHER_RESOURCES: ReadonlySet<string> = new Set(
  [
    'storage pods services replicationcontrollers resourcequotas secrets configmaps persistentvolumeclaims services.nodeports',
    'services.loadbalancers requests.cpu requests.memory requests.storage requests.ephemeral-storage limits.cpu limits.memory',
    'limits.ephemeral-storage',
  ]
    .join(' ')
    .split(' '),
)
/** Counted in whole ones. */
const INTEGERS: ReadonlySet<string> = new Set(
  'pods services replicationcontrollers resourcequotas secrets configmaps persistentvolumeclaims services.nodeports services.loadbalancers'.split(
    ' ',
  ),
)
const NATIVE_PREFIX = 'kubernetes.io/'

/** `whole`: of a pod, which has fewer resources than a container. */
export function resourceProblems(resources: JsonObject | undefined, path: string, whole = false): FieldProblem[] {
  const limits = objectAt(resources, 'limits') ?? {}
  const requests = objectAt(resources, 'requests') ?? {}
  const nameProblems = whole ? podResourceProblems : containerResourceProblems
  const problems: FieldProblem[] = []
  for (const [name, quantity] of Object.entries(limits))
    problems.push(...nameProblems(name, `${path}.limits[${name}]`), ...amountProblems(name, quantity, `${path}.limits[${name}]`))
  for (const [name, quantity] of Object.entries(requests)) {
    const field = `${path}.requests[${name}]`
    problems.push(...nameProblems(name, field), ...amountProblems(name, quantity, field))
    problems.push(...limitProblems(name, { quantity, limit: limits[name] }, path))
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)]
  if (names.some(isHugePages) && !names.some((name) => name === 'cpu' || name === 'memory'))
    problems.push(forbidden(path, 'HugePages require cpu or memory'))
  return problems
}

function limitProblems(name: string, { quantity, limit }: { quantity: Json; limit: Json | undefined }, path: string): FieldProblem[] {
  if (limit === undefined)
    return isOvercommitted(name) ? [] : [required(`${path}.limits`, 'Limit must be set for non overcommitable resources')]
  const [asked, most] = [quantityOf(quantity), quantityOf(limit)]
  const wrong = (how: string) => [invalid(`${path}.requests`, quantityText(asked), `must be ${how} ${name} limit of ${quantityText(most)}`)]
  if (asked.nanos !== most.nanos && !isOvercommitted(name)) return wrong('equal to')
  return asked.nanos > most.nanos ? wrong('less than or equal to') : []
}

function amountProblems(name: string, value: Json, field: string): FieldProblem[] {
  const quantity = quantityOf(value)
  const text = quantityText(quantity)
  const problems: FieldProblem[] = []
  if (quantity.nanos < 0n) problems.push(invalid(field, text, 'must be greater than or equal to 0'))
  if ((INTEGERS.has(name) || isExtended(name)) && quantity.nanos % 1_000_000_000n !== 0n)
    problems.push(invalid(field, text, 'must be an integer'))
  if (isHugePages(name)) {
    const size = quantityOf(name.slice('hugepages-'.length)).nanos
    if (size === 0n || quantity.nanos % size !== 0n)
      problems.push(invalid(field, text, `${text} is not positive integer multiple of ${name}`))
  }
  return problems
}

function resourceNameProblems(name: string, field: string): FieldProblem[] {
  const problems = invalidAll(field, name, qualifiedNameProblems(name))
  if (problems.length > 0 || name.includes('/')) return problems
  const standard = CONTAINER_RESOURCES.has(name) || OTHER_RESOURCES.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-')
  return standard ? [] : [invalid(field, name, 'must be a standard resource type or fully qualified')]
}

function containerResourceProblems(name: string, field: string): FieldProblem[] {
  const problems = resourceNameProblems(name, field)
  if (!name.includes('/')) {
    if (!CONTAINER_RESOURCES.has(name) && !isHugePages(name))
      problems.push(invalid(field, name, 'must be a standard resource for containers'))
  } else if (!name.includes(NATIVE_PREFIX) && !isExtended(name))
    problems.push(invalid(field, name, "doesn't follow extended resource name standard"))
  return problems
}

function podResourceProblems(name: string, field: string): FieldProblem[] {
  const problems = resourceNameProblems(name, field)
  if (problems.length > 0 || name === 'cpu' || name === 'memory' || isHugePages(name)) return problems
  return [notSupported(field, name, ['cpu', 'hugepages-', 'memory'])]
}

function isHugePages(name: string): boolean {
  return name.startsWith('hugepages-')
}

/** Extended resources of a node: `example.com/gpu`. */
function isExtended(name: string): boolean {
  if (!name.includes('/') || name.includes(NATIVE_PREFIX) || name.startsWith('requests.')) return false
  return qualifiedNameProblems(`requests.${name}`).length === 0
}

function isOvercommitted(name: string): boolean {
  const native = !name.includes('/') || name.includes(NATIVE_PREFIX)
  return native && !isHugePages(name)
}
