import type { Json, JsonObject, ListMerge, MergeSchema } from '../apiserver/kind-schema.ts'
import { pathText } from './field-set.ts'

/** The object does not fit the schema it is to be merged by. */
export class TypedValueError extends Error {
  constructor(path: readonly string[], what: string) {
    super(`${pathText(path)}: ${what}`)
    this.name = 'TypedValueError'
  }
}

/** How a value is to be treated: as one leaf, as members or as items with an identity. */
export type Shape =
  | { readonly kind: 'leaf' }
  | { readonly kind: 'map'; member(name: string): MergeSchema; isField(name: string): boolean }
  | { readonly kind: 'list'; readonly schema: ListMerge }

const LEAF: Shape = { kind: 'leaf' }
const UNTYPED: MergeSchema = { type: 'untyped' }

export function isMapValue(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `null` and absent values take the shape of their counterpart, which the caller passes instead. */
export function shapeOf(value: Json | undefined, schema: MergeSchema): Shape {
  if (isMapValue(value)) {
    if (schema.type === 'untyped') return { kind: 'map', member: () => UNTYPED, isField: () => false }
    if (schema.type !== 'map' || schema.atomic) return LEAF
    return { kind: 'map', member: (name) => schema.member(name) ?? UNTYPED, isField: (name) => schema.isField(name) }
  }
  if (Array.isArray(value) && schema.type === 'list' && schema.list !== 'atomic') return { kind: 'list', schema }
  return LEAF
}

export function fieldStep(name: string): string {
  return `f:${name}`
}

/** What makes an item the same item: its value in a set, its keys in a list map. */
export function itemStep(item: Json, schema: ListMerge, path: readonly string[]): string {
  if (schema.list === 'set') return `v:${sortedJson(item)}`
  if (!isMapValue(item)) throw new TypedValueError(path, 'associative list with keys may not have non-map elements')
  const keys = [...schema.keys].sort().map((key): [string, Json] => {
    const value = Object.hasOwn(item, key) ? item[key] : schema.keyDefaults[key]
    if (value === undefined) {
      throw new TypedValueError(
        path,
        `associative list with keys has an element that omits key field ${JSON.stringify(key)} (and doesn't have default value)`,
      )
    }
    return [key, value]
  })
  return `k:${sortedJson(Object.fromEntries(keys))}`
}

function sortedJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`
  if (!isMapValue(value)) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${sortedJson(member)}`).join(',')}}`
}

/** Items by their identity. */
export function itemsByStep(list: readonly Json[], schema: ListMerge, path: readonly string[]): Map<string, readonly Json[]> {
  const items = new Map<string, Json[]>()
  for (const item of list) {
    const step = itemStep(item, schema, path)
    const same = items.get(step)
    if (same) same.push(item)
    else items.set(step, [item])
  }
  return items
}

/** What an applied object must not have: members that the schema does not know, and items that cannot be told apart. */
export function checkTyped(value: Json, schema: MergeSchema, path: readonly string[] = []): void {
  if (isMapValue(value) && schema.type === 'map') {
    for (const [name, member] of Object.entries(value)) {
      const inner = schema.member(name)
      if (!inner) throw new TypedValueError([...path, fieldStep(name)], 'field not declared in schema')
      checkTyped(member, inner, [...path, fieldStep(name)])
    }
  }
  if (!Array.isArray(value) || schema.type !== 'list') return
  for (const item of value as readonly Json[]) {
    const step = schema.list === 'atomic' ? 'i:0' : itemStep(item, schema, path)
    checkTyped(item, schema.item(), [...path, step])
  }
  if (schema.list === 'atomic') return
  for (const [step, same] of itemsByStep(value, schema, path)) {
    if (same.length > 1) throw new TypedValueError(path, `duplicate entries for key ${pathText([step])}`)
  }
}
