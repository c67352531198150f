import type { KubeObject } from '@thv/kube'
import type { References } from '../references/references.ts'
import type { KindCache } from './kind-cache.ts'

/** Names of the indexes over the referencing kinds; a value is `namespace/name` of the referenced object. */
export const REFERENCE_INDEXES = {
  groups: 'group',
  toolConfigs: 'toolConfig',
  externalAuthConfigs: 'externalAuthConfig',
  configMaps: 'configMap',
  secrets: 'secret',
  compositeTools: 'compositeTool',
} as const satisfies Record<keyof References, string>

/** `namespace/name` of what an object references, for an index. An object without a readable spec references nothing. */
export function indexValues<T extends KubeObject>(
  referencesOf: (object: T) => References,
  kind: keyof References,
): (object: T) => readonly string[] {
  return (object) => (referencesOf(object)[kind] ?? []).map((name) => `${object.metadata.namespace}/${name}`)
}

export function addReferenceIndexes<T extends KubeObject>(cache: KindCache<T>, referencesOf: (object: T) => References): void {
  // Each index reads the references when an object is added and again when it is removed.
  const known = new WeakMap<T, References>()
  const once = (object: T): References => {
    const found = known.get(object) ?? referencesOf(object)
    known.set(object, found)
    return found
  }
  for (const [kind, index] of Object.entries(REFERENCE_INDEXES) as [keyof References, string][]) {
    cache.addIndex(index, indexValues(once, kind))
  }
}
