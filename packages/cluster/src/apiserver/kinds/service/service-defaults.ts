import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { type EmptyFields, withoutEmpty } from '../../objects/empty-fields.ts'
import { listOf } from '../../objects/field-checks.ts'
import { at, isObject, textAt, without } from '../../objects/served-kind.ts'
import { portsOf, specOf } from './service-spec.ts'

const CLIENT_SECONDS = 10_800

/** Defaults of a Service. */
export function withServiceDefaults(service: JsonObject): JsonObject {
  const tidy = withoutEmpty(without(service, 'metadata'), EMPTY)
  const spec = specOf(tidy)
  const type = textAt(spec, 'type') || 'ClusterIP'
  const ports = portsOf(tidy)
  const filled: JsonObject = {
    ...spec,
    type,
    ...(ports.length === 0 ? {} : { ports: ports.map(withPortDefaults) }),
    ...affinity(spec),
    ...trafficPolicies(spec, type),
    ...(type === 'LoadBalancer' ? { allocateLoadBalancerNodePorts: spec['allocateLoadBalancerNodePorts'] ?? true } : {}),
  }
  const whole = textAt(filled, 'sessionAffinity') === 'None' ? without(filled, 'sessionAffinityConfig') : filled
  return { ...tidy, metadata: service['metadata'] ?? {}, spec: whole, ...status(tidy, type) }
}

/** Pointers, which may point to nothing much. */
const EMPTY: EmptyFields = {
  kept: new Set([
    'allocateLoadBalancerNodePorts',
    'appProtocol',
    'clusterIPs',
    'internalTrafficPolicy',
    'ipFamilyPolicy',
    'loadBalancerClass',
    'port',
    'targetPort',
    'timeoutSeconds',
    'trafficDistribution',
    // Of conditions and their like, where all are always written.
    'lastTransitionTime',
    'message',
    'reason',
    'status',
    'type',
  ]),
  maps: new Set(['selector']),
}

function withPortDefaults(port: JsonObject): JsonObject {
  const target = port['targetPort']
  const unset = target === undefined || target === 0 || target === ''
  return {
    ...port,
    port: port['port'] ?? 0,
    protocol: textAt(port, 'protocol') || 'TCP',
    targetPort: unset ? (port['port'] ?? 0) : (target as Json),
  }
}

function affinity(spec: JsonObject): JsonObject {
  const sessionAffinity = textAt(spec, 'sessionAffinity') || 'None'
  const given = at(spec, 'sessionAffinityConfig', 'clientIP', 'timeoutSeconds')
  if (sessionAffinity !== 'ClientIP' || given !== undefined) return { sessionAffinity }
  return { sessionAffinity, sessionAffinityConfig: { clientIP: { timeoutSeconds: CLIENT_SECONDS } } }
}

function trafficPolicies(spec: JsonObject, type: string): JsonObject {
  const open = type === 'NodePort' || type === 'LoadBalancer' || (type === 'ClusterIP' && listed(spec['externalIPs']))
  const inside = ['ClusterIP', 'NodePort', 'LoadBalancer'].includes(type)
  return {
    ...(open ? { externalTrafficPolicy: textAt(spec, 'externalTrafficPolicy') || 'Cluster' } : {}),
    ...(inside ? { internalTrafficPolicy: spec['internalTrafficPolicy'] ?? 'Cluster' } : {}),
  }
}

function status(service: JsonObject, type: string): JsonObject {
  const found = service['status']
  const ingress = listOf(at(found, 'loadBalancer', 'ingress'))
  if (!isObject(found) || type !== 'LoadBalancer' || ingress.length === 0) return {}
  const modes = ingress.map((one) => (textAt(one, 'ip') === '' ? one : { ipMode: 'VIP', ...one }))
  const loadBalancer = at(found, 'loadBalancer')
  return { status: { ...found, loadBalancer: { ...(isObject(loadBalancer) ? loadBalancer : {}), ingress: modes } } }
}

function listed(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length > 0
}
