import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { without } from '../../objects/served-kind.ts'
import { changed, changedItems, objectAt } from './validation/fields.ts'

/** Fields that version 1.34 knows and drops unless their feature gate is on. */
export function withoutDisabled(spec: JsonObject): JsonObject {
  let result = without(spec, 'hostnameOverride')
  for (const list of ['containers', 'initContainers', 'ephemeralContainers'])
    result = changedItems(result, list, (container) => enabledContainer(container, list))
  return changedItems(result, 'volumes', (volume) =>
    changed(without(volume, 'image'), 'projected', (projected) =>
      changedItems(projected, 'sources', (source) => without(source, 'clusterTrustBundle', 'podCertificate')),
    ),
  )
}

/** Only a sidecar has a restart policy of its own. */
function enabledContainer(container: JsonObject, list: string): JsonObject {
  const isSidecar = list === 'initContainers' && container['restartPolicy'] === 'Always'
  const plain = without(container, 'restartPolicyRules', ...(isSidecar ? [] : ['restartPolicy']))
  const stopped = changed(plain, 'lifecycle', (lifecycle) => without(lifecycle, 'stopSignal'))
  const hooks = Object.keys(objectAt(stopped, 'lifecycle') ?? {}).length > 0 ? stopped : without(stopped, 'lifecycle')
  return changedItems(hooks, 'env', (variable) => changed(variable, 'valueFrom', (source) => without(source, 'fileKeyRef')))
}
