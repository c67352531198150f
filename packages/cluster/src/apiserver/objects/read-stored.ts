import { jsonEqual } from '@thv/kernel/json'
import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { StoredObject } from '../../store/stored-object.ts'
import { apiVersionOf, type ServedKind, without } from './served-kind.ts'

/** Each object as it was last read, with the schema that it was read by. */
const views = new WeakMap<StoredObject, { readonly by: object; readonly view: StoredObject }>()

/**
 * An object as its kind reads it from the store. A custom object that is older than its definition gets the defaults of the storage version,
 * and loses the fields that this no longer knows; what is stored stays as it is until the next write.
 */
export function readStored(kind: ServedKind, object: StoredObject): StoredObject {
  const { stored } = kind
  if (stored === undefined || object.revision > stored.since) return object
  const known = views.get(object)
  if (known?.by === stored.schema) return known.view
  const head = { apiVersion: apiVersionOf({ ...kind, version: stored.version }), kind: kind.kind }
  const pruned = stored.schema.prune({ ...head, ...object.body }).object
  const body = without(stored.schema.applyDefaults(pruned), 'apiVersion', 'kind') as JsonObject
  const { type, key, revision } = object
  const view = jsonEqual(body, object.body) ? object : new StoredObject({ type, key, revision }, JSON.stringify(body), body)
  views.set(object, { by: stored.schema, view })
  return view
}
