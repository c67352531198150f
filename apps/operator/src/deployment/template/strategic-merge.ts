import type { JsonObject, MapMerge, MergeSchema, PatchStrategy } from '@thv/kube-schema/kind-schema'
import { applyStrategicMergePatch } from '@thv/kube-schema/patch/strategic-merge'
import { type FieldType, fieldsOf } from './pod-schema.ts'

/**
 * Applies a strategic merge patch to a pod template. Follows the API server, except that ports of one number and different protocols are
 * different ports. Pure. Throws a PatchError for directives that contradict the patch.
 */
export function strategicMerge(base: object, patch: object, type = 'PodTemplateSpec'): Record<string, unknown> {
  return applyStrategicMergePatch(base as JsonObject, patch as JsonObject, schemaOf(type))
}

const REPLACE: PatchStrategy = { merge: false, retainKeys: false }
const known = new Map<string, MapMerge>()

function schemaOf(type: string): MergeSchema {
  const fields = fieldsOf(type)
  if (fields === undefined) return type === 'any' ? { type: 'untyped' } : { type: 'scalar' }
  let schema = known.get(type)
  if (schema === undefined) {
    schema = {
      type: 'map',
      atomic: false,
      strategy: REPLACE,
      isField: () => true,
      member: (name) => {
        const field = fields.get(name)
        return field && schemaOfField(field)
      },
    }
    known.set(type, schema)
  }
  return schema
}

function schemaOfField({ type, shape, keys }: FieldType): MergeSchema {
  if (shape === 'one') return schemaOf(type)
  if (shape === 'map') return { type: 'map', atomic: false, strategy: REPLACE, isField: () => false, member: () => schemaOf(type) }
  return {
    type: 'list',
    list: keys.length > 0 ? 'map' : 'atomic',
    keys,
    keyDefaults: { protocol: 'TCP' },
    item: () => schemaOf(type),
    strategy: keys.length > 0 ? { merge: true, retainKeys: false, mergeKeys: mergeKeysOf(keys) } : REPLACE,
  }
}

/** Ports are identified by number and protocol; other lists with two keys merge by the first, as on the server. */
function mergeKeysOf(keys: readonly string[]): readonly string[] {
  return keys.includes('protocol') ? keys : keys.slice(0, 1)
}
