import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { listOf, textsOf } from '../../objects/field-checks.ts'
import { at, isObject, textAt, without } from '../../objects/served-kind.ts'

export interface DraftPort {
  readonly name: string
  readonly protocol: string
  readonly port: number
  nodePort: number
}

/** Fields that addresses and node ports of a Service depend on. Changed step by step while they are given out. */
export interface ServiceDraft {
  readonly type: string
  readonly hasSelector: boolean
  readonly trafficPolicy: string
  /** Undefined when the Service does not say. */
  readonly wantsNodePorts: boolean | undefined
  clusterIP: string
  clusterIPs: string[]
  families: string[]
  policy: string | undefined
  readonly ports: DraftPort[]
  healthCheckNodePort: number
}

export const NONE = 'None'

export function draftOf(service: JsonObject): ServiceDraft {
  const spec = specOf(service)
  const selector = spec['selector']
  const policy = spec['ipFamilyPolicy']
  const wanted = spec['allocateLoadBalancerNodePorts']
  return {
    type: textAt(spec, 'type'),
    hasSelector: isObject(selector) && Object.keys(selector).length > 0,
    trafficPolicy: textAt(spec, 'externalTrafficPolicy'),
    wantsNodePorts: typeof wanted === 'boolean' ? wanted : undefined,
    clusterIP: textAt(spec, 'clusterIP'),
    clusterIPs: textsOf(spec['clusterIPs']),
    families: textsOf(spec['ipFamilies']),
    policy: typeof policy === 'string' ? policy : undefined,
    ports: portsOf(service).map((port) => ({
      name: textAt(port, 'name'),
      protocol: textAt(port, 'protocol'),
      port: numberAt(port, 'port'),
      nodePort: numberAt(port, 'nodePort'),
    })),
    healthCheckNodePort: numberAt(spec, 'healthCheckNodePort'),
  }
}

/** The Service with what the draft has come to. */
export function withDraft(service: JsonObject, draft: ServiceDraft): JsonObject {
  const ports = portsOf(service).map((port, index) => ({ ...port, nodePort: draft.ports[index]?.nodePort ?? 0 }))
  const given: JsonObject = {
    clusterIP: draft.clusterIP,
    clusterIPs: draft.clusterIPs,
    ipFamilies: draft.families,
    ipFamilyPolicy: draft.policy ?? '',
    healthCheckNodePort: draft.healthCheckNodePort,
    ports: ports.map((port) => present(port, 'nodePort')),
  }
  return { ...service, spec: present({ ...specOf(service), ...given }, ...Object.keys(given)) }
}

/** Without those of the members that say nothing. */
export function present(object: JsonObject, ...names: readonly string[]): JsonObject {
  const empty = (value: Json | undefined) => value === '' || value === 0 || (Array.isArray(value) && value.length === 0)
  return without(object, ...names.filter((name) => empty(object[name])))
}

export function specOf(service: JsonObject): JsonObject {
  const spec = service['spec']
  return isObject(spec) ? spec : {}
}

export function portsOf(service: JsonObject): JsonObject[] {
  return listOf(at(service, 'spec', 'ports'))
}

export function numberAt(object: JsonObject | undefined, name: string): number {
  const value = object?.[name]
  return typeof value === 'number' ? value : 0
}

export const needsAddress = ({ type }: ServiceDraft): boolean => type !== 'ExternalName'

/** Ports that lead in from outside: those of node ports and load balancers. */
export const isOpen = ({ type }: ServiceDraft): boolean => type === 'NodePort' || type === 'LoadBalancer'

/** Node ports are given to it, not only kept. */
export const givesNodePorts = ({ type, wantsNodePorts = true }: ServiceDraft): boolean =>
  type === 'NodePort' || (type === 'LoadBalancer' && wantsNodePorts)

export const needsHealthCheck = ({ type, trafficPolicy }: ServiceDraft): boolean => type === 'LoadBalancer' && trafficPolicy === 'Local'

export const isHeadless = ({ clusterIPs }: ServiceDraft): boolean => clusterIPs.length === 1 && clusterIPs[0] === NONE

export function sameTexts(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, index) => text === other[index])
}
