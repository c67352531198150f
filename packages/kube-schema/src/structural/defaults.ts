import type { Json, JsonObject } from '../kind-schema.ts'
import { isMap, memberOf, propertyOf, type SchemaNode } from '../schema-node.ts'

/**
 * Kubernetes' order: a null that is neither nullable nor has a default is dropped, then absent members and further
 * nulls get their defaults, from the outside in (so a default may itself be completed by the defaults inside it).
 */
export function applyDefaults(object: JsonObject, root: SchemaNode): JsonObject {
  return withDefaults(withoutNulls(object, root), root) as JsonObject
}

function withoutNulls(value: Json, node: SchemaNode | undefined): Json {
  if (Array.isArray(value)) return mapUnlessSame(value, (item) => withoutNulls(item, node?.items))
  if (!isMap(value)) return value
  const kept: [string, Json][] = []
  for (const [name, member] of Object.entries(value)) {
    const inner = memberOf(node, name)
    if (member === null && inner && !inner.nullable && inner.default === undefined) continue
    kept.push([name, withoutNulls(member, inner)])
  }
  return Object.fromEntries(kept)
}

function withDefaults(value: Json, node: SchemaNode | undefined): Json {
  if (!node) return value
  if (Array.isArray(value)) return mapUnlessSame(value, (item) => withDefaults(replaceNull(item, node.items), node.items))
  if (!isMap(value)) return value
  const result: Record<string, Json> = Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const inner = memberOf(node, name)
      return [name, withDefaults(replaceNull(member, inner), inner)]
    }),
  )
  for (const name of Object.keys(node.properties ?? {})) {
    const property = propertyOf(node, name)
    if (property?.default === undefined || property.default === null || Object.hasOwn(result, name)) continue
    Object.defineProperty(result, name, {
      value: withDefaults(structuredClone(property.default) as Json, property),
      ...{ enumerable: true, configurable: true, writable: true },
    })
  }
  return result
}

function replaceNull(value: Json, node: SchemaNode | undefined): Json {
  const replaces = value === null && node !== undefined && !node.nullable && node.default !== undefined
  return replaces ? (structuredClone(node.default) as Json) : value
}

function mapUnlessSame(list: readonly Json[], change: (item: Json) => Json): readonly Json[] {
  return list.length === 0 ? list : list.map(change)
}
