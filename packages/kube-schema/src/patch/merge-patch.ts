import type { Json, JsonObject } from '../kind-schema.ts'
import { PatchError } from './patch-error.ts'
import { isMapValue } from './typed-value.ts'

const MAX_DEPTH = 10_000

/** RFC 7386. */
export function applyMergePatch(object: JsonObject, patch: Json): JsonObject {
  if (!isMapValue(patch)) throw new PatchError(400, 'Invalid JSON Patch')
  return mergeInto(object, patch, 0) as JsonObject
}

function mergeInto(target: Json | undefined, patch: Json, depth: number): Json {
  if (!isMapValue(patch)) return patch
  if (depth > MAX_DEPTH) throw new PatchError(400, 'the patch is nested too deeply')
  const members = new Map(Object.entries(isMapValue(target) ? target : {}))
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) members.delete(name)
    else members.set(name, mergeInto(members.get(name), value, depth + 1))
  }
  return Object.fromEntries(members)
}
