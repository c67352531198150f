import { gateways, httpRoutes, mcpKinds, referenceGrants } from '@thv/catalog/cluster/cluster-kinds'
import type { ClusterObjects } from '@thv/catalog/discover/objects/cluster-objects'
import { type Gateway, gatewayOf } from '@thv/catalog/discover/objects/gateway'
import { type HttpRoute, httpRouteOf } from '@thv/catalog/discover/objects/http-route'
import { type McpResource, mcpResourceOf, resourceKinds } from '@thv/catalog/discover/objects/mcp-resource'
import { type ReferenceGrant, referenceGrantOf } from '@thv/catalog/discover/objects/reference-grant'
import { type BackendService, backendServiceOf } from '@thv/catalog/discover/objects/service'
import type { KubernetesSource } from '@thv/catalog/sources/fetch/kubernetes-source'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { services as serviceType } from '@thv/kube/objects/resource-types'
import { KindReader, readable } from './kind-reader.ts'

export interface ClusterReading {
  readonly objects: ClusterObjects
  /** Whether HTTPRoutes could be listed. */
  readonly routesReadable: boolean
  /** Kinds that the cluster does not have, and rights that are missing; for the log. */
  readonly notes: readonly string[]
}

export interface ClusterReaderOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly source: KubernetesSource
  /** HTTPRoutes could be listed before: if they no longer can, the reading fails. */
  readonly routesWereReadable: boolean
}

const PARALLEL = 8

/**
 * Everything that the export of a cluster needs, read once. Lists MCP resources and HTTPRoutes; reads the Services and Gateways that
 * annotated routes name one by one, and the grants of namespaces that they refer to.
 */
export async function readCluster(options: ClusterReaderOptions): Promise<ClusterReading> {
  const { client, clock, signal, source } = options
  const namespaces = source.namespaces?.length ? source.namespaces : undefined
  const reader = new KindReader({ client, clock, signal, namespaces })
  const notes: string[] = []

  const resources: McpResource[] = []
  for (const kind of resourceKinds) {
    const list = await reader.list(mcpKinds[kind], source.labelSelector ? { labelSelector: source.labelSelector } : {})
    if (list.found === 'absent') notes.push(`the cluster has no kind ${kind}`)
    resources.push(...readable(list).flatMap((object) => mcpResourceOf(kind, object) ?? []))
  }

  const list = await reader.list(httpRoutes)
  if (list.found === 'absent') notes.push('the cluster has no kind HTTPRoute; routes are not exported')
  if (list.found === 'forbidden') {
    if (options.routesWereReadable) throw new ThvError('source_failed', `${list.problem}; they could be listed before`)
    notes.push(`${list.problem}; routes are not exported`)
  }
  const routes = list.found === 'objects' ? list.objects.flatMap((object) => httpRouteOf(object) ?? []) : []
  const referred = await readReferred(reader, routes, source.crossNamespaceGateway === 'referenceGrant')
  return { objects: { resources, routes, ...referred }, routesReadable: list.found === 'objects', notes }
}

type Referred = Pick<ClusterObjects, 'services' | 'gateways' | 'grants' | 'unreadable'>

async function readReferred(reader: KindReader, routes: readonly HttpRoute[], gatewaysNeedGrants: boolean): Promise<Referred> {
  const names = referredNames(routes, gatewaysNeedGrants)
  const services: BackendService[] = []
  const found: Gateway[] = []
  const grants: ReferenceGrant[] = []
  const unreadable: string[] = []
  await eachOf(names.services, async ([namespace = '', name = '']) => {
    const object = await reader.get([serviceType], { namespace, name })
    if (object === 'unreadable') unreadable.push(`Service/${namespace}/${name}`)
    else if (object !== undefined) services.push(backendServiceOf(object))
  })
  await eachOf(names.gateways, async ([namespace = '', name = '']) => {
    const object = await reader.get(gateways, { namespace, name })
    if (object === 'unreadable') unreadable.push(`Gateway/${namespace}/${name}`)
    else if (object !== undefined) found.push(gatewayOf(object))
  })
  for (const namespace of names.grantNamespaces) {
    const list = await reader.list(referenceGrants, { namespace })
    // Without the right to read them nothing is granted.
    if (list.found === 'objects') grants.push(...list.objects.map(referenceGrantOf))
  }
  return { services, gateways: found, grants, unreadable }
}

/** The objects that annotated routes name, each once. */
function referredNames(routes: readonly HttpRoute[], gatewaysNeedGrants: boolean) {
  const services = new Set<string>()
  const gatewayNames = new Set<string>()
  const grantNamespaces = new Set<string>()
  for (const route of routes) {
    for (const { kind, namespace, name } of route.parents) {
      if (kind !== 'Gateway') continue
      gatewayNames.add(`${namespace}/${name}`)
      if (gatewaysNeedGrants && namespace !== route.namespace) grantNamespaces.add(namespace)
    }
    for (const { kind, group, namespace, name } of route.rules.flatMap((rule) => rule.backends)) {
      if (kind !== 'Service' || group !== '') continue
      services.add(`${namespace}/${name}`)
      if (namespace !== route.namespace) grantNamespaces.add(namespace)
    }
  }
  return { services: parts(services), gateways: parts(gatewayNames), grantNamespaces }
}

function parts(keys: ReadonlySet<string>): readonly string[][] {
  return [...keys].map((key) => key.split('/'))
}

/** A few at a time; rejects with the first failure. */
async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < items.length) await work(items[next++] as T)
  }
  await Promise.all(Array.from({ length: Math.min(PARALLEL, items.length) }, lane))
}
