import { formatKey, type KubeObject, type ObjectKey } from '@thv/kube'
import type { WorkloadKind } from '@thv/resources/shared/referencing-workloads'
import type { KindCache } from '../../caches/kind-cache.ts'
import type { OperatorCaches } from '../../caches/operator-caches.ts'
import { REFERENCE_INDEXES, type References } from '../../references/references.ts'
import type { WorkloadReference } from './status.ts'

type ReferencingCaches = Pick<OperatorCaches, 'servers' | 'remoteProxies' | 'virtualServers' | 'serverEntries'>

/** Who names the object, sorted by kind and name. One that is being deleted still uses it until it is gone. */
export function referencingWorkloads(caches: ReferencingCaches, kind: keyof References, key: ObjectKey): WorkloadReference[] {
  const of = (workload: WorkloadKind, cache: Pick<KindCache, 'byIndex'>): WorkloadReference[] =>
    cache
      .byIndex(REFERENCE_INDEXES[kind], formatKey(key))
      .map(({ metadata }: KubeObject) => ({ kind: workload, name: metadata.name }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  return [
    ...of('MCPRemoteProxy', caches.remoteProxies),
    ...of('MCPServer', caches.servers),
    ...of('MCPServerEntry', caches.serverEntries),
    ...of('VirtualMCPServer', caches.virtualServers),
  ]
}
