import { randomUUID } from 'node:crypto'
import { jsonEqual } from '@thv/kernel/json'
import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { objectKey } from '../store/stored-object.ts'
import { type ApiEnv, timestamp } from './http/request-context.ts'
import { endpointSliceRules } from './kinds/service/endpoint-slice-rules.ts'
import { serviceRules } from './kinds/service/service-rules.ts'
import { formatFour, parseRange } from './objects/ip-address.ts'
import { namespaceRules } from './objects/kind-rules.ts'
import { textAt } from './objects/served-kind.ts'

const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/** The namespaces that every cluster has from its start. */
export function ensureNamespaces({ store, clock }: ApiEnv): void {
  for (const name of NAMESPACES) {
    if (store.get('namespaces', name)) continue
    const body = { metadata: { name, uid: randomUUID(), creationTimestamp: timestamp(clock) }, spec: {} }
    const labelled = namespaceRules.applyDefaults?.(body) ?? body
    store.create('namespaces', name, namespaceRules.prepareCreate?.(labelled) ?? labelled)
  }
}

const SERVER = 'kubernetes'

/**
 * The Service and EndpointSlice `default/kubernetes`, by which clients know that there is a cluster and where its API server is. The slice
 * follows the address of the server. Nothing listens on the Service's own address: pods receive the server's in KUBERNETES_SERVICE_HOST.
 */
export function ensureServerService(env: ApiEnv, { host, port }: { host: string; port: number }): void {
  const key = objectKey('default', SERVER)
  if (env.store.get('services', key) === undefined) env.store.create('services', key, serverService(env))
  const wanted = endpointSliceRules.applyDefaults?.({
    addressType: 'IPv4',
    endpoints: [{ addresses: [host], conditions: { ready: true } }],
    ports: [{ name: 'https', port, protocol: 'TCP' }],
  })
  const found = env.store.get(SLICES, key)
  const labels = { 'kubernetes.io/service-name': SERVER }
  if (found === undefined) env.store.create(SLICES, key, { metadata: metadata(env, labels, { generation: 1 }), ...wanted })
  else if (!['endpoints', 'ports'].every((name) => jsonEqual(found.body[name], wanted?.[name])))
    env.store.update(found, { ...found.body, ...wanted })
}

const SLICES = 'endpointslices.discovery.k8s.io'

/** With the first address of the range, unless another Service has it already. */
function serverService(env: ApiEnv): JsonObject {
  const range = parseRange(env.serviceRange)
  const first = range === undefined ? '' : formatFour(range.first + 1n)
  const page = env.store.list({ type: 'services' })
  const isTaken = page !== 'expired' && page.objects.some(({ body }) => textAt(body, 'spec', 'clusterIP') === first)
  const service = {
    metadata: metadata(env, { component: 'apiserver', provider: SERVER }),
    spec: {
      type: 'ClusterIP',
      ...(isTaken ? {} : { clusterIP: first, clusterIPs: [first] }),
      ports: [{ name: 'https', protocol: 'TCP', port: 443, targetPort: 6443 }],
      sessionAffinity: 'None',
    },
  }
  const filled = serviceRules.applyDefaults?.(service) ?? service
  const equipped = serviceRules.allocate?.(filled, env) ?? filled
  return serviceRules.prepareCreate?.(equipped) ?? equipped
}

function metadata({ clock }: ApiEnv, labels: JsonObject, more: JsonObject = {}): JsonObject {
  return { name: SERVER, namespace: 'default', uid: randomUUID(), creationTimestamp: timestamp(clock), labels, ...more }
}
