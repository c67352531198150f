import type { JsonObject } from '../kind-schema.ts'

const META: JsonObject = {}
const TEMPLATE: JsonObject = { metadata: META, spec: { containers: null } }

/**
 * Fields that Go writes in every object of a kind, also when nothing is set. The creator of an object does not own them, so
 * managedFields are computed against them.
 */
const EMPTY: Readonly<Record<string, JsonObject>> = {
  Namespace: { metadata: META, spec: {}, status: {} },
  Node: { metadata: META, spec: {}, status: { daemonEndpoints: { kubeletEndpoint: { Port: 0 } }, nodeInfo: nodeInfo() } },
  Pod: { metadata: META, spec: { containers: null }, status: {} },
  Service: { metadata: META, spec: {}, status: { loadBalancer: {} } },
  Event: {
    metadata: META,
    involvedObject: {},
    source: {},
    firstTimestamp: null,
    lastTimestamp: null,
    eventTime: null,
    reportingComponent: '',
    reportingInstance: '',
  },
  Deployment: { metadata: META, spec: { selector: null, template: TEMPLATE, strategy: {} }, status: {} },
  ReplicaSet: { metadata: META, spec: { selector: null, template: TEMPLATE }, status: { replicas: 0 } },
  ReplicationController: { metadata: META, spec: {}, status: { replicas: 0 } },
  PodTemplate: { metadata: META, template: TEMPLATE },
  StatefulSet: {
    metadata: META,
    spec: { selector: null, template: TEMPLATE, serviceName: '', updateStrategy: {} },
    status: { replicas: 0, availableReplicas: 0 },
  },
  ControllerRevision: { metadata: META, revision: 0 },
  Role: { metadata: META, rules: null },
  ClusterRole: { metadata: META, rules: null },
  RoleBinding: { metadata: META, roleRef: { apiGroup: '', kind: '', name: '' } },
  ClusterRoleBinding: { metadata: META, roleRef: { apiGroup: '', kind: '', name: '' } },
  Lease: { metadata: META, spec: {} },
  NetworkPolicy: { metadata: META, spec: { podSelector: {} } },
  EndpointSlice: { metadata: META, addressType: '', endpoints: null, ports: null },
}

export function emptyObject(kind: string): JsonObject {
  return Object.hasOwn(EMPTY, kind) ? (EMPTY[kind] ?? {}) : { metadata: META }
}

function nodeInfo(): JsonObject {
  const names = [
    'architecture',
    'bootID',
    'containerRuntimeVersion',
    'kernelVersion',
    'kubeProxyVersion',
    'kubeletVersion',
    'machineID',
    'operatingSystem',
    'osImage',
    'systemUUID',
  ]
  return Object.fromEntries(names.map((name) => [name, '']))
}
