import type { Json, JsonObject } from '../kind-schema.ts'

const OBJECT_META = new Set([
  'name',
  'generateName',
  'namespace',
  'selfLink',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
])
const OWNER_REFERENCE = new Set(['apiVersion', 'kind', 'name', 'uid', 'controller', 'blockOwnerDeletion'])
const MANAGED_FIELDS = new Set(['manager', 'operation', 'apiVersion', 'time', 'fieldsType', 'fieldsV1', 'subresource'])

/** Takes out what ObjectMeta does not have; `report` gets paths below `metadata`. */
export function pruneObjectMeta(metadata: JsonObject, report: (field: string) => void): JsonObject {
  return keep(metadata, OBJECT_META, report, (name, value) => {
    if (name === 'ownerReferences') return pruneItems(value, OWNER_REFERENCE, (path) => report(`${name}${path}`))
    if (name === 'managedFields') return pruneItems(value, MANAGED_FIELDS, (path) => report(`${name}${path}`))
    return value
  })
}

function pruneItems(value: Json, known: ReadonlySet<string>, report: (path: string) => void): Json {
  if (!Array.isArray(value)) return value
  return value.map((item: Json, index) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? keep(
          item as JsonObject,
          known,
          (field) => report(`[${index}].${field}`),
          (_name, member) => member,
        )
      : item,
  )
}

function keep(
  object: JsonObject,
  known: ReadonlySet<string>,
  report: (field: string) => void,
  inside: (name: string, value: Json) => Json,
): JsonObject {
  const kept: [string, Json][] = []
  for (const [name, value] of Object.entries(object)) {
    if (known.has(name)) kept.push([name, inside(name, value)])
    else report(name)
  }
  return Object.fromEntries(kept)
}
