import { emptyObject } from '@thv/kube-schema/builtin/empty-objects'
import { forbidden, invalid } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { type EmptyFields, withoutEmpty } from '../../objects/empty-fields.ts'
import { choiceProblems, labelValueProblems, listOf, qualifiedNameProblems, textsOf } from '../../objects/field-checks.ts'
import { parseRange, rangeProblems } from '../../objects/ip-address.ts'
import { plainRules } from '../../objects/kind-rules.ts'
import { at, isObject, type KindRules, textAt, without } from '../../objects/served-kind.ts'
import { problem } from '../../objects/status-error.ts'

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

/** A new node gets no taint here: it is there to run pods at once, and no controller would remove the taint. */
export const nodeRules: KindRules = plainRules('subdomain', {
  applyDefaults: withNodeDefaults,
  validate: (node, old) => [
    ...taintProblems(node),
    ...podRangeProblems(textsOf(at(node, 'spec', 'podCIDRs'))),
    ...(old === undefined ? [] : changeProblems(node, old)),
  ],
  validateStatus: changeProblems,
  selectable: { 'spec.unschedulable': (node) => String(at(node, 'spec', 'unschedulable') === true) },
})

const EMPTY: EmptyFields = {
  kept: new Set(['address', 'effect', 'key', 'Port', 'status', 'type', ...Object.keys(infoOf(emptyObject('Node')))]),
  maps: new Set(['metadata', 'capacity', 'allocatable']),
}

function withNodeDefaults(node: JsonObject): JsonObject {
  const tidy = withoutEmpty(node, EMPTY)
  const spec = isObject(tidy['spec']) ? tidy['spec'] : {}
  const status = isObject(tidy['status']) ? tidy['status'] : {}
  const empty = emptyObject('Node')['status']
  const capacity = status['capacity']
  return {
    ...tidy,
    spec: { ...without(spec, 'podCIDR', 'podCIDRs', 'configSource'), ...podRanges(spec), ...taints(spec) },
    status: {
      ...(isObject(empty) ? empty : {}),
      ...(isObject(capacity) ? { allocatable: capacity } : {}),
      ...status,
      ...conditions(status),
      nodeInfo: { ...infoOf(emptyObject('Node')), ...infoOf(tidy) },
    },
  }
}

function infoOf(node: JsonObject): JsonObject {
  const info = at(node, 'status', 'nodeInfo')
  return isObject(info) ? info : {}
}

/** Both times are always written. */
function conditions(status: JsonObject): JsonObject {
  const list = listOf(status['conditions']).map((condition) => ({ lastHeartbeatTime: null, lastTransitionTime: null, ...condition }))
  return list.length === 0 ? {} : { conditions: list }
}

/** The single value is the first of the list; where both differ, the single value counts. */
function podRanges(spec: JsonObject): JsonObject {
  const one = textAt(spec, 'podCIDR')
  const many = textsOf(spec['podCIDRs'])
  const ranges = one !== '' && many[0] !== one ? [one] : many
  return ranges.length === 0 ? {} : { podCIDR: ranges[0] ?? '', podCIDRs: ranges }
}

function taints(spec: JsonObject): JsonObject {
  const list = listOf(spec['taints']).map((taint) => ({ key: '', effect: '', ...taint }))
  return list.length === 0 ? {} : { taints: list }
}

/** The real server says of them that they were in the metadata. */
function taintProblems(node: JsonObject): FieldProblem[] {
  const seen = new Set<string>()
  return listOf(at(node, 'spec', 'taints')).flatMap((taint, index) => {
    const field = `metadata.taints[${index}]`
    const [key, value, effect] = ['key', 'value', 'effect'].map((name) => textAt(taint, name))
    const id = `${key} ${effect}`
    const twice = seen.has(id)
    seen.add(id)
    const shown = JSON.stringify({ Key: key, Value: value, Effect: effect, TimeAdded: taint['timeAdded'] ?? null })
    const unique = 'taints must be unique by key and effect pair'
    return [
      ...qualifiedNameProblems(`${field}.key`, key ?? ''),
      ...labelValueProblems(`${field}.value`, value ?? ''),
      ...choiceProblems(`${field}.effect`, effect, EFFECTS),
      ...(twice ? [problem(field, 'FieldValueDuplicate', `Duplicate value: ${shown}: ${unique}`)] : []),
    ]
  })
}

function podRangeProblems(ranges: readonly string[]): FieldProblem[] {
  const field = 'spec.podCIDRs'
  const malformed = ranges.flatMap((range, index) => rangeProblems(`${field}[${index}]`, range))
  if (ranges.length < 2 || malformed.length > 0) return malformed
  const families = new Set(ranges.map((range) => parseRange(range)?.family))
  if (families.size === ranges.length) return []
  return [invalid(field, ranges, 'may specify no more than one CIDR for each IP family')]
}

/** Fields that a node keeps once they are set. Also on a write of its status. */
function changeProblems(node: JsonObject, old: JsonObject): FieldProblem[] {
  const problems: FieldProblem[] = []
  const seen = new Set<string>()
  for (const [index, address] of listOf(at(node, 'status', 'addresses')).entries()) {
    const shown = JSON.stringify({ Type: textAt(address, 'type'), Address: textAt(address, 'address') })
    if (seen.has(shown)) problems.push(problem(`status.addresses[${index}]`, 'FieldValueDuplicate', `Duplicate value: ${shown}`))
    seen.add(shown)
  }
  const [before, after] = [textsOf(at(old, 'spec', 'podCIDRs')), textsOf(at(node, 'spec', 'podCIDRs'))]
  if (before.length > 0 && before.join() !== after.join())
    problems.push(forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'))
  const provider = textAt(old, 'spec', 'providerID')
  if (provider !== '' && provider !== textAt(node, 'spec', 'providerID'))
    problems.push(forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'))
  return problems
}
