import { jsonEqual } from '@thv/kernel/json'
import type { FieldProblem, Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { nameProblems } from '@thv/kube-schema/values/object-name'
import { labelMapProblems, qualifiedNameProblems } from './field-checks.ts'
import { at, CRD_TYPE, isObject, metaOf, type ServedKind, textAt } from './served-kind.ts'
import { forbiddenValue, invalidValue, problem, requiredValue } from './status-error.ts'

const MAX_ANNOTATION_BYTES = 256 * 1024
const STANDARD_FINALIZERS = new Set(['kubernetes', 'orphan', 'foregroundDeletion'])

/** Rules for the metadata of every object. */
export function metaProblems(kind: ServedKind, object: JsonObject): FieldProblem[] {
  const metadata = metaOf(object)
  return [
    ...generateNameProblems(kind, metadata),
    ...nameFieldProblems(kind, metadata),
    ...labelMapProblems('metadata.labels', metadata['labels']),
    ...annotationProblems(metadata['annotations']),
    ...ownerProblems(metadata['ownerReferences']),
    ...finalizerProblems(kind, metadata['finalizers']),
    ...generationProblems(metadata['generation']),
  ]
}

/** Fields that an update may not change. */
export function metaUpdateProblems(object: JsonObject, old: JsonObject): FieldProblem[] {
  const [after, before] = [metaOf(object), metaOf(old)]
  const problems: FieldProblem[] = []
  for (const name of ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds'])
    if (!jsonEqual(after[name], before[name])) problems.push(invalidValue(`metadata.${name}`, after[name] ?? '', 'field is immutable'))
  if (before['deletionTimestamp'] !== undefined) {
    const had = new Set(finalizersOf(old))
    const added = finalizersOf(object).filter((finalizer) => !had.has(finalizer))
    if (added.length > 0) {
      const list = `[]string{${added.map((finalizer) => JSON.stringify(finalizer)).join(', ')}}`
      const why = `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`
      problems.push(forbiddenValue('metadata.finalizers', why))
    }
  }
  return problems
}

export function finalizersOf(object: JsonObject): string[] {
  const finalizers = at(object, 'metadata', 'finalizers')
  return Array.isArray(finalizers) ? finalizers.filter((one): one is string => typeof one === 'string') : []
}

function generateNameProblems(kind: ServedKind, metadata: JsonObject): FieldProblem[] {
  const base = textAt(metadata, 'generateName')
  if (base === '') return []
  // A dash at the end is fine: letters follow.
  return nameProblems(kind.rules.name, base.endsWith('-') ? `${base}a` : base).map((why) =>
    invalidValue('metadata.generateName', base, why),
  )
}

function nameFieldProblems(kind: ServedKind, metadata: JsonObject): FieldProblem[] {
  const name = textAt(metadata, 'name')
  if (name === '') return [requiredValue('metadata.name', 'name or generateName is required')]
  return nameProblems(kind.rules.name, name).map((why) => invalidValue('metadata.name', name, why))
}

function generationProblems(generation: Json | undefined): FieldProblem[] {
  if (typeof generation !== 'number' || generation >= 0) return []
  return [invalidValue('metadata.generation', generation, 'must be greater than or equal to 0')]
}

function annotationProblems(annotations: Json | undefined): FieldProblem[] {
  let bytes = 0
  const problems = entries(annotations).flatMap(([key, value]) => {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(String(value))
    return qualifiedNameProblems('metadata.annotations', key, key.toLowerCase())
  })
  if (bytes > MAX_ANNOTATION_BYTES)
    problems.push(problem('metadata.annotations', 'FieldValueTooLong', `Too long: may not be more than ${MAX_ANNOTATION_BYTES} bytes`))
  return problems
}

function ownerProblems(owners: Json | undefined): FieldProblem[] {
  const list = Array.isArray(owners) ? owners.filter(isObject) : []
  const field = 'metadata.ownerReferences'
  const problems: FieldProblem[] = []
  let controller: string | undefined
  for (const owner of list) {
    const version = textAt(owner, 'apiVersion')
    // More than one slash is read as no version at all.
    if (version === '' || version.endsWith('/') || version.split('/').length > 2)
      problems.push(invalidValue(`${field}.apiVersion`, version, 'version must not be empty'))
    if (version === 'v1' && textAt(owner, 'kind') === 'Event')
      problems.push(invalidValue(field, owner, '/v1, Kind=Event is disallowed from being an owner'))
    for (const name of ['kind', 'name', 'uid'])
      if (textAt(owner, name) === '') problems.push(invalidValue(`${field}.${name}`, '', 'must not be empty'))
    if (owner['controller'] !== true) continue
    const id = textAt(owner, 'name')
    if (controller !== undefined) {
      const why = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${id}`
      problems.push(invalidValue(field, list, why))
    }
    controller = id
  }
  return problems
}

/** Only the kinds of the core itself want a finalizer to be qualified or a known one. */
function finalizerProblems({ custom, type }: ServedKind, finalizers: Json | undefined): FieldProblem[] {
  const list = Array.isArray(finalizers) ? finalizers.filter((one): one is string => typeof one === 'string') : []
  const problems = list.flatMap((finalizer, index) => {
    const wrong = qualifiedNameProblems('metadata.finalizers', finalizer)
    if (finalizer.includes('/') || STANDARD_FINALIZERS.has(finalizer) || custom || type === CRD_TYPE) return wrong
    return [
      ...wrong,
      invalidValue(`metadata.finalizers[${index}]`, finalizer, 'name is neither a standard finalizer name nor is it fully qualified'),
    ]
  })
  if (list.includes('orphan') && list.includes('foregroundDeletion'))
    problems.push(invalidValue('metadata.finalizers', list, 'finalizer orphan and foregroundDeletion cannot be both set'))
  return problems
}

function entries(value: Json | undefined): [string, Json][] {
  return isObject(value) ? Object.entries(value) : []
}
