import { annotationsChanged, type KubeEvent, type ObjectKey, or, type Predicate } from '@thv/kube'
import { MCPServerAnnotation } from '@thv/resources/kinds/mcp-server/constants'
import { networkPolicyCache, roleBindingCache, roleCache, runnerEventCache, statefulSetCache } from '../../caches/built-in-caches.ts'
import { ownedBy, specChanged } from '../../caches/predicates.ts'
import { enforcementSources } from '../../enforcement/enforcing-registries.ts'
import { REGISTRY_NAME_LABEL } from '../../enforcement/judge-image.ts'
import { proxySources } from '../../proxy/proxy-sources.ts'
import { referenceSources } from '../../references/reference-sources.ts'
import type { ControllerSpec } from '../controller-spec.ts'
import { cache as registryCache } from '../mcp-registry/cache.ts'
import { cache } from './cache.ts'
import { reconcileMcpServer, servingMcpServer } from './reconcile.ts'

export const controller: ControllerSpec = {
  name: 'mcpserver',
  concurrency: 16,
  cache,
  refusedIn: 'Ready',
  serving: servingMcpServer,
  reconcile: reconcileMcpServer,
  sources(caches) {
    const servers = caches.of(cache)
    const owner = ownedBy('MCPServer')
    return [
      ...servers.self(or(specChanged, annotationsChanged(Object.values(MCPServerAnnotation)), registryLabelChanged)),
      ...proxySources(caches, 'MCPServer', servers),
      ...caches.of(networkPolicyCache).owned(owner),
      ...caches.of(roleCache).owned(owner),
      ...caches.of(roleBindingCache).owned(owner),
      ...caches.of(statefulSetCache).owned(owner),
      ...caches.of(runnerEventCache).mapped(ownerOfEvent, notExpired),
      ...referenceSources(caches, servers),
      ...enforcementSources(caches, registryCache, servers),
    ]
  },
}

/** Which registry the image is looked for in. */
const registryLabelChanged: Predicate = ({ type, object, old }) =>
  type !== 'MODIFIED' || object.metadata.labels?.[REGISTRY_NAME_LABEL] !== old?.metadata.labels?.[REGISTRY_NAME_LABEL]

const ownerOfEvent = ({ metadata, regarding }: KubeEvent): ObjectKey[] =>
  regarding?.kind === 'MCPServer' ? [{ namespace: metadata.namespace ?? '', name: regarding.name ?? '' }] : []

/** An Event that expires says nothing new. A repeated one may: another Event may have come in between. */
const notExpired: Predicate<KubeEvent> = ({ type }) => type !== 'DELETED'
