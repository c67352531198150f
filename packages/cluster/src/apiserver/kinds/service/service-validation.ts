import { duplicate, forbidden, invalid, notSupported, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import {
  choiceProblems,
  labelMapProblems,
  listOf,
  nameValueProblems,
  portNumberProblems,
  portProblems,
  qualifiedNameProblems,
  textsOf,
} from '../../objects/field-checks.ts'
import { addressProblems, parseAddress, rangeProblems, specialAddressProblems } from '../../objects/ip-address.ts'
import { at, textAt } from '../../objects/served-kind.ts'
import { problem } from '../../objects/status-error.ts'
import { familyProblems } from './service-families.ts'
import { draftOf, isHeadless, isOpen, needsHealthCheck, numberAt, portsOf, type ServiceDraft, specOf } from './service-spec.ts'

const PROTOCOLS = ['SCTP', 'TCP', 'UDP']
const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
const DAY_SECONDS = 86_400

export function serviceProblems(service: JsonObject, old?: JsonObject): FieldProblem[] {
  const draft = draftOf(service)
  const spec = specOf(service)
  return [
    ...(old === undefined ? [] : changeProblems(draft, draftOf(old), { spec, before: specOf(old) })),
    ...typeProblems(draft, spec),
    ...portsOf(service).flatMap((port, index, all) => onePortProblems(port, index, all)),
    ...labelMapProblems('spec.selector', spec['selector']),
    ...affinityProblems(spec),
    ...familyProblems(draft, old === undefined ? [] : draftOf(old).clusterIPs),
    ...externalAddressProblems(textsOf(spec['externalIPs']), textsOf(at(old, 'spec', 'externalIPs'))),
    ...choiceProblems('spec.type', spec['type'], TYPES),
    ...nodePortProblems(service, draft),
    ...samePortProblems(service),
    ...loadBalancerProblems(spec, draft),
    ...trafficProblems(spec, draft),
  ]
}

/** Of a write of the status alone. */
export function serviceStatusProblems(service: JsonObject, old: JsonObject): FieldProblem[] {
  const field = 'status.loadBalancer.ingress'
  const ingress = listOf(at(service, 'status', 'loadBalancer', 'ingress'))
  if (ingress.length > 0 && textAt(service, 'spec', 'type') !== 'LoadBalancer')
    return [forbidden(field, "may only be used when `spec.type` is 'LoadBalancer'")]
  const known = new Set(listOf(at(old, 'status', 'loadBalancer', 'ingress')).map((one) => textAt(one, 'ip')))
  return ingress.flatMap((one, index) => ingressProblems(`${field}[${index}]`, one, known))
}

function ingressProblems(field: string, ingress: JsonObject, known: ReadonlySet<string>): FieldProblem[] {
  const [ip, mode, host] = [textAt(ingress, 'ip'), ingress['ipMode'], textAt(ingress, 'hostname')]
  const problems = ip === '' || known.has(ip) ? [] : addressProblems(`${field}.ip`, ip)
  if (mode === undefined) {
    if (ip !== '') problems.push(required(`${field}.ipMode`, 'must be specified when `ip` is set'))
  } else if (ip === '') problems.push(forbidden(`${field}.ipMode`, 'may not be specified when `ip` is not set'))
  else if (mode !== 'VIP' && mode !== 'Proxy') problems.push(notSupported(`${field}.ipMode`, mode, ['Proxy', 'VIP']))
  if (host === '') return problems
  problems.push(...nameValueProblems(`${field}.hostname`, host, 'subdomain'))
  if (parseAddress(host) !== undefined) problems.push(invalid(`${field}.hostname`, host, 'must be a DNS name, not an IP address'))
  return problems
}

function typeProblems(draft: ServiceDraft, spec: JsonObject): FieldProblem[] {
  const problems: FieldProblem[] = []
  const { type } = draft
  if (draft.ports.length === 0 && !isHeadless(draft) && type !== 'ExternalName') problems.push(required('spec.ports'))
  if (isOpen(draft) && isHeadless(draft))
    problems.push(invalid('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${type} services`))
  if (type !== 'ExternalName') return problems
  const why = 'may not be set for ExternalName services'
  if (draft.clusterIPs.length > 0) problems.push(forbidden('spec.clusterIPs', why))
  if (draft.families.length > 0) problems.push(forbidden('spec.ipFamilies', why))
  if (draft.policy !== undefined) problems.push(forbidden('spec.ipFamilyPolicy', why))
  const name = textAt(spec, 'externalName').replace(/\.$/, '')
  if (name === '') return [...problems, required('spec.externalName')]
  return [...problems, ...nameValueProblems('spec.externalName', name, 'subdomain')]
}

function onePortProblems(port: JsonObject, index: number, all: readonly JsonObject[]): FieldProblem[] {
  const field = `spec.ports[${index}]`
  const name = textAt(port, 'name')
  const problems: FieldProblem[] = []
  if (name !== '') {
    problems.push(...nameValueProblems(`${field}.name`, name, 'label'))
    if (all.findIndex((other) => textAt(other, 'name') === name) < index) problems.push(duplicate(`${field}.name`, name))
  } else if (all.length > 1) problems.push(required(`${field}.name`))
  const application = port['appProtocol']
  return [
    ...problems,
    ...portNumberProblems(`${field}.port`, port['port']),
    ...choiceProblems(`${field}.protocol`, port['protocol'], PROTOCOLS),
    ...portProblems(`${field}.targetPort`, port['targetPort']),
    ...(typeof application === 'string' ? qualifiedNameProblems(`${field}.appProtocol`, application) : []),
  ]
}

function affinityProblems(spec: JsonObject): FieldProblem[] {
  const wrong = choiceProblems('spec.sessionAffinity', spec['sessionAffinity'], ['ClientIP', 'None'])
  if (spec['sessionAffinity'] !== 'ClientIP') return wrong
  const seconds = at(spec, 'sessionAffinityConfig', 'clientIP', 'timeoutSeconds')
  if (typeof seconds === 'number' && seconds > 0 && seconds <= DAY_SECONDS) return wrong
  const why = `must be greater than 0 and less than ${DAY_SECONDS}`
  return [...wrong, invalid('spec.sessionAffinityConfig.clientIP.timeoutSeconds', seconds ?? 0, why)]
}

function externalAddressProblems(addresses: readonly string[], known: readonly string[]): FieldProblem[] {
  return addresses.flatMap((address, index) => {
    const field = `spec.externalIPs[${index}]`
    const malformed = known.includes(address) ? [] : addressProblems(field, address)
    return malformed.length > 0 ? malformed : specialAddressProblems(field, address)
  })
}

function nodePortProblems(service: JsonObject, { type }: ServiceDraft): FieldProblem[] {
  const seen = new Set<string>()
  return portsOf(service).flatMap((port, index) => {
    const nodePort = numberAt(port, 'nodePort')
    if (nodePort === 0) return []
    const field = `spec.ports[${index}].nodePort`
    const key = `${textAt(port, 'protocol')} ${nodePort}`
    const problems = type === 'ClusterIP' ? [forbidden(field, "may not be used when `type` is 'ClusterIP'")] : []
    if (seen.has(key)) problems.push(duplicate(field, nodePort))
    seen.add(key)
    return problems
  })
}

function samePortProblems(service: JsonObject): FieldProblem[] {
  const seen = new Set<string>()
  return portsOf(service).flatMap((port, index) => {
    const [protocol, number] = [textAt(port, 'protocol'), numberAt(port, 'port')]
    const key = `${protocol} ${number}`
    if (!seen.has(key)) {
      seen.add(key)
      return []
    }
    // The real server shows what it compares by.
    const shown = JSON.stringify({ Name: '', Protocol: protocol, AppProtocol: null, Port: number, TargetPort: 0, NodePort: 0 })
    return [problem(`spec.ports[${index}]`, 'FieldValueDuplicate', `Duplicate value: ${shown}`)]
  })
}

function loadBalancerProblems(spec: JsonObject, { type }: ServiceDraft): FieldProblem[] {
  const only = "may only be used when `type` is 'LoadBalancer'"
  const balanced = type === 'LoadBalancer'
  const ranges = textsOf(spec['loadBalancerSourceRanges'])
  const problems: FieldProblem[] = []
  if (ranges.length > 0 && !balanced) problems.push(forbidden('spec.LoadBalancerSourceRanges', only))
  for (const [index, range] of ranges.entries()) problems.push(...rangeProblems(`spec.LoadBalancerSourceRanges[${index}]`, range.trim()))
  if (spec['allocateLoadBalancerNodePorts'] !== undefined && !balanced) problems.push(forbidden('spec.allocateLoadBalancerNodePorts', only))
  const name = spec['loadBalancerClass']
  if (typeof name !== 'string') return problems
  return [...problems, ...(balanced ? qualifiedNameProblems('spec.loadBalancerClass', name) : [forbidden('spec.loadBalancerClass', only)])]
}

function trafficProblems(spec: JsonObject, draft: ServiceDraft): FieldProblem[] {
  const problems: FieldProblem[] = []
  const policy = textAt(spec, 'externalTrafficPolicy')
  const reachable = isOpen(draft) || (draft.type === 'ClusterIP' && textsOf(spec['externalIPs']).length > 0)
  if (reachable) problems.push(...choiceProblems('spec.externalTrafficPolicy', policy, ['Cluster', 'Local']))
  else if (policy !== '') problems.push(invalid('spec.externalTrafficPolicy', policy, 'may only be set for externally-accessible services'))
  const port = draft.healthCheckNodePort
  const field = 'spec.healthCheckNodePort'
  if (needsHealthCheck(draft)) problems.push(...(port === 0 ? [required(field)] : portNumberProblems(field, port)))
  else if (port !== 0)
    problems.push(invalid(field, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
  const inside = spec['internalTrafficPolicy']
  if (inside !== undefined) problems.push(...supported('spec.internalTrafficPolicy', inside, ['Cluster', 'Local']))
  const distribution = spec['trafficDistribution']
  const close = ['PreferClose', 'PreferSameZone', 'PreferSameNode']
  return distribution === undefined ? problems : [...problems, ...supported('spec.trafficDistribution', distribution, close)]
}

function supported(field: string, value: unknown, values: readonly string[]): FieldProblem[] {
  const text = typeof value === 'string' ? value : ''
  return values.includes(text) ? [] : [notSupported(field, text, values)]
}

/** Fields that a Service keeps once they are set. */
function changeProblems(
  draft: ServiceDraft,
  old: ServiceDraft,
  { spec, before }: { spec: JsonObject; before: JsonObject },
): FieldProblem[] {
  const problems: FieldProblem[] = []
  const once = 'may not change once set'
  if (draft.type !== 'ExternalName' && old.type !== 'ExternalName') {
    const ips = 'spec.clusterIPs'
    if (!(isHeadless(draft) && isHeadless(old))) {
      if (draft.clusterIPs.length === 0 && old.clusterIPs.length > 0)
        problems.push(invalid(`${ips}[0]`, null, 'primary clusterIP can not be unset'))
      for (const [index, address] of draft.clusterIPs.entries())
        if (index < old.clusterIPs.length && address !== old.clusterIPs[index])
          problems.push(invalid(`${ips}[${index}]`, draft.clusterIPs, once))
    }
    if (!isHeadless(draft) && !isHeadless(old) && draft.families[0] !== old.families[0])
      problems.push(invalid('spec.ipFamilies[0]', draft.families, once))
  }
  if (draft.type === 'LoadBalancer' && old.type === 'LoadBalancer' && spec['loadBalancerClass'] !== before['loadBalancerClass'])
    problems.push(invalid('spec.loadBalancerClass', spec['loadBalancerClass'] ?? null, once))
  if (needsHealthCheck(draft) && needsHealthCheck(old) && draft.healthCheckNodePort !== old.healthCheckNodePort)
    problems.push(forbidden('spec.healthCheckNodePort', 'field is immutable'))
  return problems
}
