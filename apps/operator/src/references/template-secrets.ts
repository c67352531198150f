import { arrayAt, objectAt, type Value } from '../workload/pod/values.ts'

/** Secrets that become variables in a pod template. Those in volumes do not count: their files are refreshed by the kubelet. */
export function templateSecrets(template: Value | undefined): string[] {
  const podSpec = objectAt(template ?? {}, 'spec')
  const containers = [...arrayAt(podSpec, 'containers'), ...arrayAt(podSpec, 'initContainers')]
  const references = containers.flatMap((container) => [
    ...arrayAt(container, 'env').map((entry) => objectAt(objectAt(entry, 'valueFrom'), 'secretKeyRef')),
    ...arrayAt(container, 'envFrom').map((entry) => objectAt(entry, 'secretRef')),
  ])
  return [...new Set(references.flatMap(({ name }) => (typeof name === 'string' && name !== '' ? [name] : [])))].sort()
}
