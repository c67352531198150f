import type { CanonicalMCPRegistrySpec } from '@thv/resources/kinds/mcp-registry/normalise'
import type { ExportScope } from '../../../export/export-scope.ts'
import { sourceFolder } from './registry-place.ts'
import { STORAGE_ENTRY } from './storage-entry.ts'

const EXPORT_SOURCE = 'cluster'

/** Name of the source with the servers of the cluster: the same in both modes, so that a change of the mode keeps its entries. */
export function exportSourceName(spec: CanonicalMCPRegistrySpec): string {
  const taken = new Set('registries' in spec ? spec.registries.map(({ name }) => name) : [STORAGE_ENTRY])
  let name = EXPORT_SOURCE
  for (let index = 1; taken.has(name); index++) name = `${EXPORT_SOURCE}-${index}`
  return name
}

/** Of the replica that reads the cluster. */
export function exportLease(registry: string): string {
  return `toolhive-registry-kubernetes-source-${registry}`
}

/**
 * The source in the configuration of the registry server. Replicas that share a database elect the one that reads the cluster. A server
 * with a store of its own is alone but for the moment of an update, when the new pod must fill its store before the old one goes.
 */
export function exportSource(registry: string, spec: CanonicalMCPRegistrySpec, scope: ExportScope) {
  const name = exportSourceName(spec)
  if (scope.mode === 'operator') return { name, format: 'upstream', file: { path: sourceFolder(name) } }
  const isShared = spec.databaseConfig !== undefined
  return {
    name,
    syncPolicy: { interval: '5m' },
    kubernetes: {
      namespaces: scope.namespaces === 'all' ? [] : scope.namespaces,
      crossNamespaceGateway: scope.crossNamespaceGateway,
      watch: { enabled: true, debounceInterval: '1s' },
      leaderElection: isShared ? { enabled: true, id: exportLease(registry) } : { enabled: false },
    },
  }
}
