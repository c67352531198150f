import type { KubeObject } from '@thv/kube'
import type { CacheSpec } from '../../caches/cache-spec.ts'
import type { OperatorCaches } from '../../caches/operator-caches.ts'
import { REFERENCE_INDEXES } from '../../caches/reference-indexes.ts'
import { cache as remoteProxyCache } from '../mcp-remote-proxy/cache.ts'
import { cache as serverCache } from '../mcp-server/cache.ts'
import { cache as entryCache } from '../mcp-server-entry/cache.ts'
import type { GroupMembers } from './objects/group-members.ts'

/** The members of a group, through the index. */
export function membersOf(group: string | undefined, { namespace, caches }: { namespace: string; caches: OperatorCaches }): GroupMembers {
  const of = <T extends KubeObject>(cache: CacheSpec<T>): T[] =>
    group === undefined
      ? []
      : caches
          .of(cache)
          .byIndex(REFERENCE_INDEXES.groups, `${namespace}/${group}`)
          .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
          .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  return { servers: of(serverCache), remoteProxies: of(remoteProxyCache), entries: of(entryCache) }
}
