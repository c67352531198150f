import { isRecord } from '@thv/resources/schema/normalize'

/** Free-form JSON of a user, once its types have been checked. */
export type Value = Readonly<Record<string, unknown>>

export function objectAt(value: Value, field: string): Value {
  const member = value[field]
  return isRecord(member) ? member : {}
}

export function arrayAt(value: Value, field: string): readonly Value[] {
  const member = value[field]
  return Array.isArray(member) ? member.filter(isRecord) : []
}

/** Null stands for what nobody set, as Go writes it. */
export function withoutNulls(value: Value): Value {
  return Object.fromEntries(Object.entries(value).flatMap(([key, member]) => (member === null ? [] : [[key, deep(member)]])))
}

function deep(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(deep)
  return isRecord(value) ? withoutNulls(value) : value
}
