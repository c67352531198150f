import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { isObject } from './served-kind.ts'

/**
 * Of a kind. The real server reads an object into structs and writes it from them, so a field with nothing in it disappears; which ones stay
 * cannot be derived from the schema.
 */
export interface EmptyFields {
  /** Names of fields that keep an empty text, a zero, a false or an empty list. */
  readonly kept: ReadonlySet<string>
  /** Names of fields whose members are data: their values are left alone, and an empty one is as good as none. */
  readonly maps: ReadonlySet<string>
}

export function withoutEmpty(object: JsonObject, fields: EmptyFields): JsonObject {
  const members = Object.entries(object).filter(([name, value]) => fields.kept.has(name) || !isEmpty(name, value, fields))
  return Object.fromEntries(members.map(([name, value]) => [name, fields.maps.has(name) ? value : inner(value, fields)]))
}

function inner(value: Json, fields: EmptyFields): Json {
  if (Array.isArray(value)) return value.map((item: Json) => inner(item, fields))
  return isObject(value) ? withoutEmpty(value, fields) : value
}

function isEmpty(name: string, value: Json, { maps }: EmptyFields): boolean {
  if (value === '' || value === 0 || value === false || value === null) return true
  if (Array.isArray(value)) return value.length === 0
  return maps.has(name) && isObject(value) && Object.keys(value).length === 0
}
