import { type ConfigMap, type Deployment, isControlledBy } from '@thv/kube'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { aggregateName, COMPONENT_LABEL, registryNames } from '../objects/names.ts'
import type { RegistryPlan } from './plan.ts'

/** Names of the registry's data ConfigMaps that no part of the plan, and no pod of `live`, needs any more. Pure. */
export function ownedDataMaps(
  maps: readonly ConfigMap[],
  { registry, plan, live }: { readonly registry: MCPRegistry; readonly plan: RegistryPlan; readonly live: Deployment | undefined },
): string[] {
  const { name } = registry.metadata
  const unwanted = new Set(plan.data.unwanted)
  const wanted = new Set(plan.data.wanted.map(({ metadata }) => metadata.name))
  /** Data of an entry whose merge was refused, and those that the operator's own sync writes, stay. */
  const kept = [
    ...plan.aggregates.filter(({ texts }) => texts === undefined).map(({ entry }) => aggregateName(name, entry)),
    ...('source' in plan.spec ? [registryNames(name).storage] : []),
    // Until the cluster has been read, and when it exports too much.
    ...(plan.exported?.mode === 'operator' ? [registryNames(name).export] : []),
    // Pods of the other mode serve from it until those of this one are ready.
    ...(plan.exported?.mode === 'server' && live !== undefined && !isRolledOut(live) ? [registryNames(name).export] : []),
  ]
  return maps
    .filter((map) => isData(map) && isControlledBy(map, registry))
    .map(({ metadata }) => metadata.name)
    .filter((each) => !wanted.has(each) && (unwanted.has(each) || !kept.some((first) => isShardOf(each, first))))
}

function isData({ metadata }: ConfigMap): boolean {
  const component = metadata.labels?.[COMPONENT_LABEL]
  return component === 'registry-storage' || component === 'registry-aggregate' || component === 'registry-export'
}

function isShardOf(name: string, first: string): boolean {
  return name === first || (name.startsWith(`${first}-`) && /^\d{1,2}$/.test(name.slice(first.length + 1)))
}

function isRolledOut({ metadata, spec, status }: Deployment): boolean {
  const wanted = spec?.replicas ?? 1
  const isSeen = status?.observedGeneration === metadata.generation
  return isSeen && (status?.updatedReplicas ?? 0) === wanted && (status?.replicas ?? 0) === wanted && (status?.readyReplicas ?? 0) >= wanted
}
