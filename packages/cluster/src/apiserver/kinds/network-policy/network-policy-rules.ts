import { forbidden, invalid, notSupported, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { type EmptyFields, withoutEmpty } from '../../objects/empty-fields.ts'
import { labelSelectorProblems, listOf, portNameProblems, portNumberProblems, textsOf } from '../../objects/field-checks.ts'
import { inRange, parseRange, rangeProblems } from '../../objects/ip-address.ts'
import { plainRules } from '../../objects/kind-rules.ts'
import { at, isObject, type KindRules, textAt } from '../../objects/served-kind.ts'

const PROTOCOLS = ['TCP', 'UDP', 'SCTP']
const TYPES = ['Ingress', 'Egress']

/** Stored for a network plugin that enforces them; the platform itself does not. */
export const networkPolicyRules: KindRules = plainRules('subdomain', {
  generation: ['spec'],
  applyDefaults: withPolicyDefaults,
  validate: policyProblems,
})

const EMPTY: EmptyFields = {
  kept: new Set(['port', 'endPort', 'protocol', 'cidr', 'key', 'operator']),
  maps: new Set(['metadata', 'matchLabels']),
}

function withPolicyDefaults(policy: JsonObject): JsonObject {
  const tidy = withoutEmpty(policy, EMPTY)
  const spec = isObject(tidy['spec']) ? tidy['spec'] : {}
  const types = textsOf(spec['policyTypes'])
  const egress = listOf(spec['egress'])
  const implied = egress.length > 0 ? TYPES : ['Ingress']
  return {
    ...tidy,
    spec: {
      ...spec,
      podSelector: spec['podSelector'] ?? {},
      ...withPorts('ingress', spec),
      ...withPorts('egress', spec),
      policyTypes: types.length === 0 ? implied : types,
    },
  }
}

function withPorts(way: string, spec: JsonObject): JsonObject {
  if (spec[way] === undefined) return {}
  const rules = listOf(spec[way]).map((rule) => {
    const ports = listOf(rule['ports']).map((port) => ({ protocol: 'TCP', ...port }))
    return ports.length === 0 ? rule : { ...rule, ports }
  })
  return { [way]: rules }
}

function policyProblems(policy: JsonObject): FieldProblem[] {
  const spec = at(policy, 'spec')
  return [
    ...labelSelectorProblems('spec.podSelector', at(spec, 'podSelector')),
    ...listOf(at(spec, 'ingress')).flatMap((rule, index) => ruleProblems(`spec.ingress[${index}]`, rule, 'from')),
    ...listOf(at(spec, 'egress')).flatMap((rule, index) => ruleProblems(`spec.egress[${index}]`, rule, 'to')),
    ...typeProblems(textsOf(at(spec, 'policyTypes'))),
  ]
}

function ruleProblems(field: string, rule: JsonObject, peers: string): FieldProblem[] {
  return [
    ...listOf(rule['ports']).flatMap((port, index) => portProblems(`${field}.ports[${index}]`, port)),
    ...listOf(rule[peers]).flatMap((peer, index) => peerProblems(`${field}.${peers}[${index}]`, peer)),
  ]
}

function portProblems(field: string, { protocol, port, endPort }: JsonObject): FieldProblem[] {
  const problems: FieldProblem[] = []
  if (protocol !== undefined && !PROTOCOLS.includes(String(protocol))) problems.push(notSupported(`${field}.protocol`, protocol, PROTOCOLS))
  const end = typeof endPort === 'number' ? endPort : undefined
  const refuseEnd = (value: Json, why: string) => problems.push(invalid(`${field}.endPort`, value, why))
  if (typeof port === 'string') {
    if (end !== undefined) refuseEnd(end, 'may not be specified when `port` is non-numeric')
    return [...problems, ...portNameProblems(`${field}.port`, port)]
  }
  if (port === undefined) {
    if (end !== undefined) refuseEnd(end, 'may not be specified when `port` is not specified')
    return problems
  }
  problems.push(...portNumberProblems(`${field}.port`, port))
  if (end === undefined) return problems
  // The real server shows the beginning of the range here.
  if (end < Number(port)) refuseEnd(port, 'must be greater than or equal to `port`')
  return [...problems, ...portNumberProblems(`${field}.endPort`, end)]
}

function peerProblems(field: string, peer: JsonObject): FieldProblem[] {
  const names = ['podSelector', 'namespaceSelector', 'ipBlock'].filter((name) => isObject(peer[name]))
  const problems = ['podSelector', 'namespaceSelector'].flatMap((name) => labelSelectorProblems(`${field}.${name}`, peer[name]))
  const block = peer['ipBlock']
  if (isObject(block)) problems.push(...blockProblems(`${field}.ipBlock`, block))
  if (names.length === 0) problems.push(required(field, 'must specify a peer'))
  else if (names.length > 1 && isObject(block)) problems.push(forbidden(field, 'may not specify both ipBlock and another peer'))
  return problems
}

function blockProblems(field: string, block: JsonObject): FieldProblem[] {
  const cidr = textAt(block, 'cidr')
  if (cidr === '') return [required(`${field}.cidr`)]
  const range = parseRange(cidr)
  if (range === undefined) return rangeProblems(`${field}.cidr`, cidr)
  return textsOf(block['except']).flatMap((text, index) => {
    const except = parseRange(text)
    if (except === undefined) return rangeProblems(`${field}.except[${index}]`, text)
    const within = inRange(range, { family: except.family, value: except.first }) && except.bits > range.bits
    return within ? [] : [invalid(`${field}.except[${index}]`, text, 'must be a strict subset of `cidr`')]
  })
}

function typeProblems(types: readonly string[]): FieldProblem[] {
  if (types.length > TYPES.length) return [invalid('spec.policyTypes', types, 'may not specify more than two policyTypes')]
  return types.flatMap((type, index) => (TYPES.includes(type) ? [] : [notSupported(`spec.policyTypes[${index}]`, type, TYPES)]))
}
