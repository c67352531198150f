/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [name: string]: Json
}

/** A JSON object whose members have not been checked. */
export type UnknownObject = Readonly<Record<string, unknown>>

/** Arrays and null are none. */
export function isObject(value: unknown): value is UnknownObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The member if it is an object, an empty object otherwise. */
export function objectAt(value: UnknownObject, name: string): UnknownObject {
  const member = value[name]
  return isObject(member) ? member : {}
}

/** The objects of the member if it is a list, none otherwise. */
export function objectsAt(value: UnknownObject, name: string): readonly UnknownObject[] {
  const member = value[name]
  return Array.isArray(member) ? member.filter(isObject) : []
}

/** Drops null members at every depth: Go writes null for what is not set. */
export function withoutNulls(value: UnknownObject): UnknownObject {
  return Object.fromEntries(Object.entries(value).flatMap(([key, member]) => (member === null ? [] : [[key, deep(member)]])))
}

function deep(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(deep)
  return isObject(value) ? withoutNulls(value) : value
}
/** Whether two values are the same JSON: members that are undefined count as absent, the order of members does not matter. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, index) => jsonEqual(item, b[index]))
  }
  const left = present(a)
  const right = new Map(present(b))
  return left.length === right.size && left.every(([key, value]) => right.has(key) && jsonEqual(value, right.get(key)))
}

function present(object: object): [string, unknown][] {
  return Object.entries(object).filter(([, value]) => value !== undefined)
}
