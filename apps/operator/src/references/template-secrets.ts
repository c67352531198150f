import { objectAt, objectsAt, type UnknownObject } from '@thv/kernel/json'

/** Secrets that become variables in a pod template. Those in volumes do not count: their files are refreshed by the kubelet. */
export function templateSecrets(template: UnknownObject | undefined): string[] {
  const podSpec = objectAt(template ?? {}, 'spec')
  const containers = [...objectsAt(podSpec, 'containers'), ...objectsAt(podSpec, 'initContainers')]
  const references = containers.flatMap((container) => [
    ...objectsAt(container, 'env').map((entry) => objectAt(objectAt(entry, 'valueFrom'), 'secretKeyRef')),
    ...objectsAt(container, 'envFrom').map((entry) => objectAt(entry, 'secretRef')),
  ])
  return [...new Set(references.flatMap(({ name }) => (typeof name === 'string' && name !== '' ? [name] : [])))].sort()
}
