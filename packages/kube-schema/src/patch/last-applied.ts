import type { JsonObject, MergeSchema } from '../kind-schema.ts'
import { compare } from './compare.ts'
import { difference, EMPTY_SET, type FieldSet } from './field-set.ts'
import { fieldSetOf } from './field-set-of.ts'
import { isMapValue } from './typed-value.ts'

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/**
 * A user who moves from client-side to server-side apply meets no conflict in the fields that kubectl itself had set and
 * that have not changed since.
 */
export function allowedByLastApplied(live: JsonObject, schema: MergeSchema): FieldSet {
  const annotations = isMapValue(live['metadata']) ? live['metadata']['annotations'] : undefined
  const text = isMapValue(annotations) ? annotations[LAST_APPLIED] : undefined
  const last = typeof text === 'string' ? parsed(text) : undefined
  if (!last) return EMPTY_SET
  const { added, modified, removed } = compare(last, live, schema)
  return [modified, added, removed].reduce(difference, fieldSetOf(last, schema))
}

function parsed(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isMapValue(value as JsonObject) ? (value as JsonObject) : undefined
  } catch {
    return undefined // an annotation is anybody's text
  }
}
