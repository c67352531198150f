import { jsonEqual } from '@thv/kernel/json'
import { duplicate, invalid, required, tooMany } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { type EmptyFields, withoutEmpty } from '../../objects/empty-fields.ts'
import {
  choiceProblems,
  labelValueProblems,
  listOf,
  nameValueProblems,
  qualifiedNameProblems,
  textsOf,
} from '../../objects/field-checks.ts'
import { addressProblems, parseAddress, specialAddressProblems } from '../../objects/ip-address.ts'
import { plainRules } from '../../objects/kind-rules.ts'
import { at, isObject, type KindRules, textAt, without } from '../../objects/served-kind.ts'

const TYPES = ['FQDN', 'IPv4', 'IPv6']
const PROTOCOLS = ['SCTP', 'TCP', 'UDP']
const MAX_ENDPOINTS = 1_000
const MAX_ADDRESSES = 100
const MAX_HINTS = 8

export const endpointSliceRules: KindRules = plainRules('subdomain', {
  generation: ['addressType', 'endpoints', 'ports', 'metadata.labels'],
  applyDefaults: withSliceDefaults,
  validate: sliceProblems,
})

const EMPTY: EmptyFields = {
  kept: new Set([
    'addresses',
    'appProtocol',
    'hostname',
    'name',
    'nodeName',
    'port',
    'protocol',
    'ready',
    'serving',
    'terminating',
    'zone',
  ]),
  maps: new Set(['metadata']),
}

/** Both lists are always written, as null when there is nothing in them. */
function withSliceDefaults(slice: JsonObject): JsonObject {
  const tidy = withoutEmpty(slice, EMPTY)
  const endpoints = listOf(tidy['endpoints']).map((endpoint) => ({
    ...without(endpoint, 'deprecatedTopology'),
    addresses: endpoint['addresses'] ?? null,
    conditions: isObject(endpoint['conditions']) ? endpoint['conditions'] : {},
  }))
  const ports = listOf(tidy['ports']).map((port) => ({ name: '', protocol: 'TCP', ...port }))
  return {
    ...tidy,
    addressType: textAt(tidy, 'addressType'),
    endpoints: endpoints.length === 0 ? null : endpoints,
    ports: ports.length === 0 ? null : ports,
  }
}

function sliceProblems(slice: JsonObject, old?: JsonObject): FieldProblem[] {
  const type = textAt(slice, 'addressType')
  const same = old !== undefined && jsonEqual(slice['endpoints'], old['endpoints'])
  return [
    ...choiceProblems('addressType', type, TYPES),
    ...listOf(slice['ports']).flatMap((port, index, all) => portProblems(`ports[${index}]`, port, all.slice(0, index))),
    ...(same ? [] : endpointsProblems(listOf(slice['endpoints']), type)),
    ...(old !== undefined && type !== old['addressType'] ? [invalid('addressType', type, 'field is immutable')] : []),
  ]
}

function endpointsProblems(endpoints: readonly JsonObject[], type: string): FieldProblem[] {
  if (endpoints.length > MAX_ENDPOINTS) return [tooMany('endpoints', endpoints.length, MAX_ENDPOINTS)]
  return endpoints.flatMap((endpoint, index) => endpointProblems(`endpoints[${index}]`, endpoint, type))
}

function endpointProblems(field: string, endpoint: JsonObject, type: string): FieldProblem[] {
  const addresses = textsOf(endpoint['addresses'])
  const problems: FieldProblem[] = []
  const list = `${field}.addresses`
  if (addresses.length === 0) problems.push(required(list, 'must contain at least 1 address'))
  else if (addresses.length > MAX_ADDRESSES) problems.push(tooMany(list, addresses.length, MAX_ADDRESSES))
  for (const [index, address] of addresses.entries()) problems.push(...oneAddressProblems(list, { address, index, type }))
  const [node, host] = [endpoint['nodeName'], endpoint['hostname']]
  if (typeof node === 'string') problems.push(...nameValueProblems(`${field}.nodeName`, node, 'subdomain'))
  if (typeof host === 'string') problems.push(...nameValueProblems(`${field}.hostname`, host, 'label'))
  const zones = listOf(at(endpoint, 'hints', 'forZones')).map((zone) => textAt(zone, 'name'))
  const nodes = listOf(at(endpoint, 'hints', 'forNodes')).map((one) => textAt(one, 'name'))
  return [
    ...problems,
    ...hintProblems(`${field}.hints.forZones`, zones, labelValueProblems),
    ...hintProblems(`${field}.hints.forNodes`, nodes, (name, value) => nameValueProblems(name, value, 'subdomain')),
  ]
}

function hintProblems(field: string, names: readonly string[], check: (field: string, value: string) => FieldProblem[]): FieldProblem[] {
  if (names.length > MAX_HINTS) return [tooMany(field, names.length, MAX_HINTS)]
  return names.flatMap((name, index) => [
    ...(names.indexOf(name) < index ? [duplicate(`${field}[${index}].name`, name)] : []),
    ...check(`${field}[${index}].name`, name),
  ])
}

interface OneAddress {
  readonly address: string
  readonly index: number
  readonly type: string
}

/**
 * As on the real server, but for one thing: an address of the loopback network is fine, because the pods of this platform live there.
 */
function oneAddressProblems(list: string, { address, index, type }: OneAddress): FieldProblem[] {
  const field = `${list}[${index}]`
  if (type === 'FQDN') return domainProblems(field, address)
  if (type !== 'IPv4' && type !== 'IPv6') return []
  const malformed = addressProblems(field, address)
  if (malformed.length > 0) return malformed
  if (type === 'IPv6') {
    const shape = canonicalProblems(field, address)
    if (shape.length > 0) return shape
  }
  const family = `IPv${parseAddress(address)?.family}`
  return [
    ...(family === type ? [] : [invalid(list, address, `must be an ${type} address`)]),
    ...specialAddressProblems(field, address, { loopback: true }),
  ]
}

/** A host of a URL is written in the canonical form of RFC 5952. */
function canonicalProblems(field: string, address: string): FieldProblem[] {
  if (!address.includes(':')) return []
  if (parseAddress(address)?.family === 4) return [invalid(field, address, 'must not be an IPv4-mapped IPv6 address')]
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  return canonical === address ? [] : [invalid(field, address, `must be in canonical form (${JSON.stringify(canonical)})`)]
}

function domainProblems(field: string, name: string): FieldProblem[] {
  if (name === '') return [required(field)]
  const wrong = nameValueProblems(field, name.replace(/\.$/, ''), 'subdomain')
  if (wrong.length > 0) return wrong
  if (name.replace(/\.$/, '').includes('.')) return []
  return [invalid(field, name, 'should be a domain with at least two segments separated by dots')]
}

function portProblems(field: string, port: JsonObject, before: readonly JsonObject[]): FieldProblem[] {
  const name = textAt(port, 'name')
  const application = port['appProtocol']
  return [
    ...(name === '' ? [] : nameValueProblems(`${field}.name`, name, 'label')),
    ...(before.some((other) => textAt(other, 'name') === name) ? [duplicate(`${field}.name`, name)] : []),
    ...choiceProblems(`${field}.protocol`, port['protocol'], PROTOCOLS),
    ...(typeof application === 'string' ? qualifiedNameProblems(`${field}.appProtocol`, application) : []),
  ]
}
