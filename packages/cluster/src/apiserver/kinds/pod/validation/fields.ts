import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { at, isObject, without } from '../../../objects/served-kind.ts'

/* Reading of objects whose types were checked when they came in; what is absent reads as nothing. */

export function objectAt(object: JsonObject | undefined, ...path: readonly string[]): JsonObject | undefined {
  const value = at(object, ...path)
  return isObject(value) ? value : undefined
}

export function objectsAt(object: JsonObject | undefined, ...path: readonly string[]): readonly JsonObject[] {
  const value = at(object, ...path)
  return Array.isArray(value) ? value.filter(isObject) : []
}

export function textsAt(object: JsonObject | undefined, ...path: readonly string[]): readonly string[] {
  const value = at(object, ...path)
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
}

export function numberAt(object: JsonObject | undefined, ...path: readonly string[]): number | undefined {
  const value = at(object, ...path)
  return typeof value === 'number' ? value : undefined
}

export function flagAt(object: JsonObject | undefined, ...path: readonly string[]): boolean | undefined {
  const value = at(object, ...path)
  return typeof value === 'boolean' ? value : undefined
}

/** A text, or undefined where it is not even there: an empty one is something else for some fields. */
export function givenText(object: JsonObject | undefined, ...path: readonly string[]): string | undefined {
  const value = at(object, ...path)
  return typeof value === 'string' ? value : undefined
}

/** Members that are absent get these values. */
export function withDefaults(object: JsonObject, defaults: JsonObject): JsonObject {
  return { ...defaults, ...object }
}

/** The member changed where it is an object, otherwise the same object. */
export function changed(object: JsonObject, name: string, change: (value: JsonObject) => JsonObject): JsonObject {
  const value = object[name]
  return isObject(value) ? { ...object, [name]: change(value) } : object
}

export function changedItems(object: JsonObject, name: string, change: (item: JsonObject) => JsonObject): JsonObject {
  const value = object[name]
  return Array.isArray(value) ? { ...object, [name]: value.map((item: Json) => (isObject(item) ? change(item) : item)) } : object
}

/** The member set, or taken away. */
export function withMember(object: JsonObject, name: string, value: Json | undefined): JsonObject {
  return value === undefined ? without(object, name) : { ...object, [name]: value }
}
