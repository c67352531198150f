import type { ExportOptions } from '@thv/catalog/discover/objects/export-options'
import type { KubernetesSource } from '@thv/catalog/sources/fetch/kubernetes-source'

export function exportOptionsOf(
  { crossNamespaceGateway = 'accepted', clusterName }: KubernetesSource,
  toolsOf?: ExportOptions['toolsOf'],
): ExportOptions {
  return {
    mode: 'server',
    crossNamespaceGateway,
    ...(clusterName === undefined ? {} : { clusterName }),
    ...(toolsOf === undefined ? {} : { toolsOf }),
  }
}
