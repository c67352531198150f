import { type CacheShape, type KubeObject, metadataOnly, type Secret, withoutManagedFields } from '@thv/kube'

/** Label of what the operator or a runner makes for a workload. */
export const MANAGED_LABEL = 'toolhive'
/** Label of the ConfigMaps that the operator makes. */
export const MANAGED_BY_LABEL = 'toolhive.stacklok.io/managed-by'
export const MANAGED_BY = 'toolhive-operator'

/**
 * Our own objects whole, those of others only by name and owner: enough to see that a name is taken, and a cluster full of strangers
 * costs little memory.
 */
export const oursWhole: CacheShape<KubeObject> = {
  name: 'ours-whole',
  transform: (object) => (isOurs(object) ? withoutManagedFields(object) : metadataOnly(object)),
}

/** Which keys a Secret has, never what is in them. */
export const secretKeys: CacheShape<Secret> = {
  name: 'secret-keys',
  transform: (secret) => {
    const data = Object.fromEntries(Object.keys(secret.data ?? {}).map((key) => [key, '']))
    return { ...metadataOnly(secret), data }
  },
}

function isOurs({ metadata }: KubeObject): boolean {
  return metadata.labels?.[MANAGED_LABEL] === 'true' || metadata.labels?.[MANAGED_BY_LABEL] === MANAGED_BY
}
