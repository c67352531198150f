import { jsonEqual } from '@thv/kernel/json'
import type { Json } from '../kind-schema.ts'
import { isMap, memberOf, own, type SchemaNode } from '../schema-node.ts'

/**
 * A value of the new object beside the one it replaces. What did not change is not refused again on update
 * ("ratcheting"), and transition rules compare the two.
 */
export interface Correlation {
  readonly node: SchemaNode
  readonly value: Json
  readonly old: Json
}

export function correlatedMember(correlation: Correlation | undefined, name: string): Correlation | undefined {
  if (!correlation || !isMap(correlation.value) || !isMap(correlation.old)) return undefined
  const node = memberOf(correlation.node, name)
  const value = own(correlation.value, name)
  const old = own(correlation.old, name)
  return node && value !== undefined && old !== undefined ? { node, value, old } : undefined
}

/** Only items of a list map can be recognised again. */
export function correlatedItem(correlation: Correlation | undefined, index: number): Correlation | undefined {
  const { node, value, old } = correlation ?? {}
  if (!node?.items || !Array.isArray(value) || !Array.isArray(old)) return undefined
  const item = value[index] as Json
  const before = oldItem(node, item, old)
  return before === undefined ? undefined : { node: node.items, value: item, old: before }
}

/** The item of the old list with the same map keys. */
export function oldItem(node: SchemaNode, item: Json, old: readonly Json[]): Json | undefined {
  if (node['x-kubernetes-list-type'] !== 'map' || !isMap(item)) return undefined
  const keys = node['x-kubernetes-list-map-keys'] ?? []
  return old.find((candidate) => isMap(candidate) && keys.every((key) => jsonEqual(own(candidate, key), own(item, key))))
}

export function isUnchanged(correlation: Correlation | undefined): boolean {
  if (!correlation) return false
  const { node, value, old } = correlation
  if (Array.isArray(value) && Array.isArray(old)) {
    if (node['x-kubernetes-list-type'] !== 'map') return jsonEqual(value, old)
    return value.length === old.length && value.every((_item, index) => isUnchanged(correlatedItem(correlation, index)))
  }
  if (isMap(value) && isMap(old)) {
    const names = Object.keys(value)
    return names.length === Object.keys(old).length && names.every((name) => isUnchanged(correlatedMember(correlation, name)))
  }
  return jsonEqual(value, old)
}
