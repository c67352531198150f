import type { JsonObject } from './kind-schema.ts'
import type { NameRule } from './object-name.ts'
import { at, isObject, type KindRules, metaOf, textAt } from './served-kind.ts'

/** Rules of a kind that has nothing special. */
export function plainRules(name: NameRule = 'subdomain', more: Partial<KindRules> = {}): KindRules {
  return { name, generation: [], unconditionalUpdate: true, returnsDeleted: false, ...more }
}

export const customRules: KindRules = plainRules('subdomain', { generation: ['*'], unconditionalUpdate: false })

export const namespaceRules: KindRules = plainRules('label', {
  returnsDeleted: true,
  applyDefaults: labelled,
  prepareCreate: (object) => ({
    ...object,
    spec: { ...objectAt(object, 'spec'), finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  }),
  prepareUpdate: (object, old) => ({ ...object, spec: old['spec'] ?? {} }),
  beginDeletion: (object) => ({ ...object, status: { ...objectAt(object, 'status'), phase: 'Terminating' } }),
  held: (object) => {
    const finalizers = at(object, 'spec', 'finalizers')
    return Array.isArray(finalizers) && finalizers.length > 0
  },
  selectable: { 'status.phase': (object) => textAt(object, 'status', 'phase') },
})

function labelled(namespace: JsonObject): JsonObject {
  const metadata = metaOf(namespace)
  const labels = { ...objectAt(metadata, 'labels'), 'kubernetes.io/metadata.name': textAt(metadata, 'name') }
  return { ...namespace, metadata: { ...metadata, labels } }
}

function objectAt(object: JsonObject, name: string): JsonObject {
  const value = object[name]
  return isObject(value) ? value : {}
}
