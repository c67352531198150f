import { annotationsChanged, type ConfigMap, type KubeObject, keyOf, type ObjectKey, or } from '@thv/kube'
import { SYNC_TRIGGER_ANNOTATION } from '@thv/resources/kinds/mcp-registry/constants'
import {
  configMapCache,
  deploymentCache,
  podCache,
  roleBindingCache,
  roleCache,
  secretCache,
  serviceAccountCache,
  serviceCache,
} from '../../caches/built-in-caches.ts'
import type { OperatorCaches } from '../../caches/operator-caches.ts'
import { ownedBy, specChanged } from '../../caches/predicates.ts'
import { exportSource } from '../../export/follower-of.ts'
import { referrersIn } from '../../references/reference-sources.ts'
import type { ControllerSpec } from '../controller-spec.ts'
import { selectsLabels } from './aggregate/selected-maps.ts'
import { cache } from './cache.ts'
import { COMPONENT_LABEL } from './objects/names.ts'
import { reconcileMcpRegistry } from './reconcile.ts'
import { servingMcpRegistry } from './status/serving-registry.ts'
import { syncSource } from './sync/sync-source.ts'

const KIND = 'MCPRegistry'

export const controller: ControllerSpec = {
  name: 'mcpregistry',
  concurrency: 4,
  cache,
  refusedIn: 'Ready',
  serving: servingMcpRegistry,
  reconcile: reconcileMcpRegistry,
  sources(caches) {
    const registries = caches.of(cache)
    return [
      ...registries.self(or(specChanged, annotationsChanged([SYNC_TRIGGER_ANNOTATION]))),
      ...caches.of(deploymentCache).owned(ownedBy(KIND)),
      ...caches.of(serviceCache).owned(ownedBy(KIND)),
      ...caches.of(serviceAccountCache).owned(ownedBy(KIND)),
      ...caches.of(roleCache).owned(ownedBy(KIND)),
      ...caches.of(roleBindingCache).owned(ownedBy(KIND)),
      ...caches.of(configMapCache).owned(ownedBy(KIND)),
      ...caches.of(podCache).mapped(registryOfPod(caches)),
      ...caches.of(configMapCache).mapped(referrersIn(registries, 'configMaps')),
      ...caches.of(configMapCache).mapped(selectingRegistries(caches)),
      ...caches.of(secretCache).mapped(referrersIn(registries, 'secrets')),
      syncSource(caches),
      exportSource(caches, KIND),
    ]
  },
}

/** Registries of the namespace with a selector that matches. A change is asked about before and after, so a lost label counts too. */
function selectingRegistries(caches: OperatorCaches): (map: ConfigMap) => ObjectKey[] {
  return (map) =>
    caches
      .of(cache)
      .list(map.metadata.namespace)
      .filter((registry) => selectsLabels(registry, map))
      .map(keyOf)
}

function registryOfPod(caches: OperatorCaches): (pod: KubeObject) => ObjectKey[] {
  return ({ metadata: { namespace = '', labels } }) => {
    const key = { namespace, name: labels?.['toolhive-name'] ?? '' }
    return labels?.[COMPONENT_LABEL] === 'registry-api' && caches.of(cache).get(key) !== undefined ? [key] : []
  }
}
