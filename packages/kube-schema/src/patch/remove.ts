import type { Json, JsonObject, MergeSchema } from '../kind-schema.ts'
import { type FieldSet, isEmptySet } from './field-set.ts'
import { fieldStep, itemStep, shapeOf } from './typed-value.ts'

/** The object without the members and items of the set; what becomes empty by that goes too. */
export function removeItems(object: JsonObject, set: FieldSet, schema: MergeSchema): JsonObject {
  return (removeFrom(object, set, schema) ?? {}) as JsonObject
}

function removeFrom(value: Json, set: FieldSet, schema: MergeSchema): Json | undefined {
  const shape = shapeOf(value, schema)
  if (shape.kind === 'leaf') return typeof value === 'object' && value !== null ? undefined : value
  const kept: [string, Json][] = []
  const entries: [string, string, Json][] =
    shape.kind === 'map'
      ? Object.entries(value as JsonObject).map(([name, member]) => [name, fieldStep(name), member])
      : (value as readonly Json[]).map((item) => ['', itemStep(item, shape.schema, []), item])
  for (const [name, step, member] of entries) {
    if (set.members.has(step)) continue
    const inside = set.children.get(step)
    const inner = shape.kind === 'map' ? shape.member(name) : shape.schema.item()
    // the real server leaves null where all of a member went away
    kept.push([name, inside && !isEmptySet(inside) ? (removeFrom(member, inside, inner) ?? null) : member])
  }
  if (kept.length === 0) return undefined
  return shape.kind === 'map' ? Object.fromEntries(kept) : kept.map(([, item]) => item)
}
