import { keyOf, type ObjectKey, type Predicate, type Source } from '@thv/kube'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import type { CacheSpec } from '../caches/cache-spec.ts'
import type { KindCache } from '../caches/kind-cache.ts'
import type { OperatorCaches } from '../caches/operator-caches.ts'
import { imageListsOf } from './image-lists.ts'
import { REGISTRY_NAME_LABEL, type RegistryOfNamespace } from './judge-image.ts'

/** The registries of a namespace, by name. One that is being deleted enforces nothing any more. */
export function registriesOf(caches: OperatorCaches, cache: CacheSpec<MCPRegistry>, namespace: string): RegistryOfNamespace[] {
  return caches
    .of(cache)
    .list(namespace)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map((registry) => {
      const enforces = registry.spec.enforceServers === true
      return { name: registry.metadata.name, enforces, list: enforces ? imageListsOf(caches).get(keyOf(registry)) : undefined }
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Sources of the MCPServer controller: servers whose image may be judged in another way than before. */
export function enforcementSources(caches: OperatorCaches, cache: CacheSpec<MCPRegistry>, servers: KindCache<MCPServer>): Source[] {
  const all = (namespace: string | undefined): ObjectKey[] => servers.list(namespace ?? '').map(keyOf)
  const labelled = (namespace: string | undefined, name: string): ObjectKey[] =>
    servers
      .list(namespace ?? '')
      .filter(({ metadata }) => metadata.labels?.[REGISTRY_NAME_LABEL] === name)
      .map(keyOf)
  const registries = caches.of(cache)
  return [
    ...registries.mapped(({ metadata }) => all(metadata.namespace), enforcementChanged),
    ...registries.mapped(({ metadata }) => labelled(metadata.namespace, metadata.name), existenceChanged),
    imageListsOf(caches).source(({ namespace }) => all(namespace)),
  ]
}

const isGoing = ({ metadata }: MCPRegistry) => metadata.deletionTimestamp !== undefined

const enforcementChanged: Predicate<MCPRegistry> = ({ type, object, old }) => {
  const now = object.spec.enforceServers === true
  if (type !== 'MODIFIED' || old === undefined) return now
  return now !== (old.spec.enforceServers === true) || (now && isGoing(object) !== isGoing(old))
}

const existenceChanged: Predicate<MCPRegistry> = ({ type, object, old }) =>
  type !== 'MODIFIED' || (old !== undefined && isGoing(object) !== isGoing(old))
