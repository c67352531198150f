import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import { type CrdVersions, crdSchemaProblems } from '@thv/kube-schema/structural/crd-schemas'
import { plainRules } from '../../objects/kind-rules.ts'
import { at, isObject, type KindRules, metaOf, textAt } from '../../objects/served-kind.ts'
import { invalidValue, requiredValue } from '../../objects/status-error.ts'

/** Holds a deleted definition until all its objects are gone. */
export const CRD_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io'

/** Other definitions of a group may have taken a name: only the registry knows, so `status` is filled in by it. */
export const crdRules: KindRules = plainRules('subdomain', {
  generation: ['spec'],
  unconditionalUpdate: false,
  applyDefaults: withDefaults,
  prepareCreate: withFinalizer,
  validate: crdProblems,
})

/** Names and conversion as the real server fills them in. */
function withDefaults(crd: JsonObject): JsonObject {
  const spec = objectAt(crd, 'spec')
  const names = objectAt(spec, 'names')
  const kind = textAt(names, 'kind')
  const filled = {
    ...names,
    ...(kind !== '' && textAt(names, 'listKind') === '' ? { listKind: `${kind}List` } : {}),
    ...(kind !== '' && textAt(names, 'singular') === '' ? { singular: kind.toLowerCase() } : {}),
  }
  return { ...crd, spec: { ...spec, names: filled, conversion: spec['conversion'] ?? { strategy: 'None' } } }
}

function withFinalizer(crd: JsonObject): JsonObject {
  const metadata = metaOf(crd)
  const finalizers = Array.isArray(metadata['finalizers']) ? metadata['finalizers'] : []
  return { ...crd, metadata: { ...metadata, finalizers: [...finalizers, CRD_FINALIZER] } }
}

function crdProblems(crd: JsonObject, old?: JsonObject): FieldProblem[] {
  const problems: FieldProblem[] = []
  const [group, plural, kind] = [textAt(crd, 'spec', 'group'), textAt(crd, 'spec', 'names', 'plural'), textAt(crd, 'spec', 'names', 'kind')]
  const name = textAt(crd, 'metadata', 'name')
  if (name !== `${plural}.${group}`) problems.push(invalidValue('metadata.name', name, 'must be spec.names.plural+"."+spec.group'))
  if (group === '') problems.push(requiredValue('spec.group'))
  if (plural === '') problems.push(requiredValue('spec.names.plural'))
  if (kind === '') problems.push(requiredValue('spec.names.kind'))
  const versions = at(crd, 'spec', 'versions')
  const list = Array.isArray(versions) ? versions.filter(isObject) : []
  if (list.filter((version) => version['storage'] === true).length !== 1)
    problems.push(invalidValue('spec.versions', list, 'must have exactly one version marked as storage version'))
  if (old !== undefined)
    for (const path of [
      ['spec', 'group'],
      ['spec', 'names', 'plural'],
      ['spec', 'names', 'kind'],
      ['spec', 'scope'],
    ])
      if (textAt(crd, ...path) !== textAt(old, ...path))
        problems.push(invalidValue(path.join('.'), textAt(crd, ...path), 'field is immutable'))
  const named = list.length > 0 && list.every((version) => textAt(version, 'name') !== '')
  return named ? [...problems, ...crdSchemaProblems(crd as unknown as CrdVersions)] : [...problems, requiredValue('spec.versions')]
}

function objectAt(object: JsonObject, name: string): JsonObject {
  const value = object[name]
  return isObject(value) ? value : {}
}
