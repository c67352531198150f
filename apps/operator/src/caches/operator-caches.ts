import type { Clock } from '@thv/kernel/clock'
import { createSingleFlight } from '@thv/kernel/single-flight'
import {
  type CacheShape,
  type ConfigMap,
  configMaps,
  createSharedCaches,
  type Deployment,
  deployments,
  events,
  formatKey,
  type KubeClient,
  type KubeEvent,
  type KubeObject,
  type NetworkPolicy,
  networkPolicies,
  type ObjectKey,
  type Pod,
  pods,
  type ResourceType,
  type Role,
  type RoleBinding,
  roleBindings,
  roles,
  type Secret,
  type Service,
  type ServiceAccount,
  type SharedCaches,
  type SharedCachesOptions,
  type StatefulSet,
  secrets,
  serviceAccounts,
  services,
  statefulSets,
} from '@thv/kube'
import { KINDS } from '@thv/resources/kinds/kinds'
import { type MCPExternalAuthConfig, mcpExternalAuthConfigType } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { type MCPGroup, mcpGroupType } from '@thv/resources/kinds/mcp-group/schema'
import { type MCPRemoteProxy, mcpRemoteProxyType } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import { type MCPServer, mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { type MCPServerEntry, mcpServerEntryType } from '@thv/resources/kinds/mcp-server-entry/schema'
import { type MCPToolConfig, mcpToolConfigType } from '@thv/resources/kinds/mcp-tool-config/schema'
import { type VirtualMCPServer, virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { resourceTypeOf } from '@thv/resources/schema/kind-definition'
import { RUNNER_CONTROLLER } from '@thv/runconfig/runner-events'
import type { ConfigMapContent } from '../references/lookup.ts'
import {
  indexValues,
  REFERENCE_INDEXES,
  type References,
  referencesOfExternalAuthConfig,
  referencesOfRemoteProxy,
  referencesOfServer,
  referencesOfServerEntry,
  referencesOfVirtualServer,
} from '../references/references.ts'
import { MANAGED_LABEL, oursWhole, secretKeys } from './cache-shapes.ts'
import { type KindCache, kindCache } from './kind-cache.ts'

/** One cache per kind for all controllers. */
export interface OperatorCaches {
  readonly servers: KindCache<MCPServer>
  readonly remoteProxies: KindCache<MCPRemoteProxy>
  readonly groups: KindCache<MCPGroup>
  readonly virtualServers: KindCache<VirtualMCPServer>
  readonly toolConfigs: KindCache<MCPToolConfig>
  readonly externalAuthConfigs: KindCache<MCPExternalAuthConfig>
  readonly serverEntries: KindCache<MCPServerEntry>
  /** Kinds that nothing is run for yet. */
  readonly notImplemented: readonly UnservedKind[]

  /** Our own whole, those of others as metadata only. */
  readonly deployments: KindCache<Deployment>
  readonly services: KindCache<Service>
  readonly serviceAccounts: KindCache<ServiceAccount>
  readonly roles: KindCache<Role>
  readonly roleBindings: KindCache<RoleBinding>
  readonly networkPolicies: KindCache<NetworkPolicy>
  readonly configMaps: KindCache<ConfigMap>
  /** Names of the keys, never what is in them. */
  readonly secrets: KindCache<Secret>
  /** Of our workloads only. */
  readonly pods: KindCache<Pod>
  readonly statefulSets: KindCache<StatefulSet>
  /** Events that runners write on their MCPServers. */
  readonly runnerEvents: KindCache<KubeEvent>

  /** What is in a ConfigMap of a user: read once per version, however many workloads use it. Undefined when there is none. */
  configMapContent(key: ObjectKey, signal?: AbortSignal): Promise<ConfigMapContent | undefined>
  readonly shared: SharedCaches
}

export interface UnservedKind {
  readonly type: ResourceType<KubeObject>
  readonly cache: KindCache<KubeObject>
}

export interface OperatorCachesOptions {
  readonly client: KubeClient
  /** Undefined: all. */
  readonly namespaces: readonly string[] | undefined
  readonly clock?: Clock
  readonly onError?: SharedCachesOptions['onError']
}

export function createOperatorCaches({ client, namespaces, clock, onError }: OperatorCachesOptions): OperatorCaches {
  const shared = createSharedCaches(client, { clock, onError })
  const scopes: readonly { namespace?: string }[] = namespaces === undefined ? [{}] : namespaces.map((namespace) => ({ namespace }))
  function cacheOf<T extends KubeObject>(
    type: ResourceType<T>,
    options: { shape?: CacheShape<T>; labelSelector?: string; fieldSelector?: string } = {},
  ): KindCache<T> {
    const { shape, ...selectors } = options
    return kindCache(new Map(scopes.map((scope) => [scope.namespace ?? '', shared.of(type, { ...scope, ...selectors }, shape)] as const)))
  }
  const ours = <T extends KubeObject>(type: ResourceType<T>) => cacheOf(type, { shape: oursWhole as unknown as CacheShape<T> })
  const labelled = { labelSelector: `${MANAGED_LABEL}=true` }

  const caches = {
    servers: cacheOf(mcpServerType),
    remoteProxies: cacheOf(mcpRemoteProxyType),
    groups: cacheOf(mcpGroupType as ResourceType<MCPGroup>),
    virtualServers: cacheOf(virtualMcpServerType),
    toolConfigs: cacheOf(mcpToolConfigType as ResourceType<MCPToolConfig>),
    externalAuthConfigs: cacheOf(mcpExternalAuthConfigType),
    serverEntries: cacheOf(mcpServerEntryType),
    deployments: ours(deployments),
    services: ours(services),
    serviceAccounts: ours(serviceAccounts),
    roles: ours(roles),
    roleBindings: ours(roleBindings),
    networkPolicies: ours(networkPolicies),
    configMaps: ours(configMaps),
    secrets: cacheOf(secrets, { shape: secretKeys }),
    pods: cacheOf(pods, labelled),
    statefulSets: cacheOf(statefulSets, labelled),
    runnerEvents: cacheOf(events, { fieldSelector: `reportingController=${RUNNER_CONTROLLER}` }),
  }
  addReferenceIndexes(caches.servers, referencesOfServer)
  addReferenceIndexes(caches.remoteProxies, referencesOfRemoteProxy)
  addReferenceIndexes(caches.serverEntries, referencesOfServerEntry)
  addReferenceIndexes(caches.virtualServers, referencesOfVirtualServer)
  addReferenceIndexes(caches.externalAuthConfigs, referencesOfExternalAuthConfig)
  caches.pods.addIndex(WORKLOAD_INDEX, workloadOf)
  caches.runnerEvents.addIndex(WORKLOAD_INDEX, ({ metadata, regarding }) => [`${metadata.namespace}/${regarding?.name}`])
  const notImplemented = KINDS.filter((kind) => kind.notImplemented).map((kind) => {
    const type = resourceTypeOf(kind) as ResourceType<KubeObject>
    return { type, cache: cacheOf(type) }
  })
  return { ...caches, notImplemented, shared, configMapContent: contentReader(client, caches.configMaps) }
}

/** `namespace/name` of the workload. Of pods by the label that proxy and server pods carry, of Events by the object they are about. */
export const WORKLOAD_INDEX = 'workload'

export function workloadOf({ metadata }: KubeObject): string[] {
  const name = metadata.labels?.['toolhive-name']
  return name === undefined ? [] : [`${metadata.namespace}/${name}`]
}

function addReferenceIndexes<T extends KubeObject>(cache: KindCache<T>, referencesOf: (object: T) => References): void {
  // Each index asks when an object comes and again when it goes, always about the same one.
  const known = new WeakMap<T, References>()
  const once = (object: T): References => {
    const found = known.get(object) ?? referencesOf(object)
    known.set(object, found)
    return found
  }
  for (const [kind, index] of Object.entries(REFERENCE_INDEXES) as [keyof References, string][]) {
    cache.addIndex(index, indexValues(once, kind))
  }
}

const MAX_CONTENTS = 2_000

function contentReader(client: KubeClient, metadata: KindCache<ConfigMap>): OperatorCaches['configMapContent'] {
  /** In the order of their last use. */
  const known = new Map<string, ConfigMapContent>()
  const flight = createSingleFlight<string, { content: ConfigMapContent | undefined }>()
  return async (key, signal) => {
    const id = formatKey(key)
    const cached = metadata.get(key)
    if (cached === undefined) return undefined
    const have = known.get(id)
    if (have !== undefined && have.uid === cached.metadata.uid && have.resourceVersion === cached.metadata.resourceVersion) {
      known.delete(id)
      known.set(id, have)
      return have
    }
    const { content } = await flight.run(`${id}@${cached.metadata.resourceVersion}`, async () => {
      const live = await client.tryGet(configMaps, key)
      return { content: live && contentOf(live) }
    })
    signal?.throwIfAborted()
    known.delete(id)
    if (content !== undefined) known.set(id, content)
    const oldest = known.keys().next().value
    if (known.size > MAX_CONTENTS && oldest !== undefined) known.delete(oldest)
    return content
  }
}

function contentOf({ metadata, data }: ConfigMap): ConfigMapContent {
  return { uid: metadata.uid ?? '', resourceVersion: metadata.resourceVersion ?? '', data: data ?? {} }
}
