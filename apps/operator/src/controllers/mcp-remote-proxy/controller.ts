import { specChanged } from '../../caches/predicates.ts'
import { proxySources } from '../../proxy/proxy-sources.ts'
import { referenceSources } from '../../references/reference-sources.ts'
import type { ControllerSpec } from '../controller-spec.ts'
import { cache } from './cache.ts'
import { reconcileMcpRemoteProxy, servingMcpRemoteProxy } from './reconcile.ts'

export const controller: ControllerSpec = {
  name: 'mcpremoteproxy',
  concurrency: 8,
  cache,
  refusedIn: 'Ready',
  serving: servingMcpRemoteProxy,
  reconcile: reconcileMcpRemoteProxy,
  sources(caches) {
    const proxies = caches.of(cache)
    return [...proxies.self(specChanged), ...proxySources(caches, 'MCPRemoteProxy', proxies), ...referenceSources(caches, proxies)]
  },
}
