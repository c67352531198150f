import type { JsonObject, ListMerge, MapMerge, MergeSchema, PatchStrategy } from '../kind-schema.ts'
import { OBJECT_META_MERGE, scalarMerge } from '../meta/object-meta-merge.ts'
import { memberOf, own, propertyOf, type SchemaNode } from '../schema-node.ts'

const REPLACE: PatchStrategy = { merge: false, retainKeys: false }

/** Merge rules of a custom resource: `x-kubernetes-list-type` and `-map-type`; no strategic merge. */
export function mergeOfSchema(root: SchemaNode): MergeSchema {
  const inner = mapMerge(root)
  return {
    ...inner,
    member: (name) => own(ROOT_MEMBERS, name) ?? inner.member(name),
    isField: (name) => Object.hasOwn(ROOT_MEMBERS, name) || inner.isField(name),
  }
}

const ROOT_MEMBERS: Readonly<Record<string, MergeSchema>> = {
  apiVersion: scalarMerge({ type: 'string' }),
  kind: scalarMerge({ type: 'string' }),
  metadata: OBJECT_META_MERGE,
}

function mergeOf(node: SchemaNode): MergeSchema {
  if (node.type === 'array') return listMerge(node)
  if (node.type === 'object') return mapMerge(node)
  return node.type === undefined ? { type: 'untyped' } : scalarMerge(node)
}

function mapMerge(node: SchemaNode): MapMerge {
  return {
    type: 'map',
    atomic: node['x-kubernetes-map-type'] === 'atomic',
    strategy: REPLACE,
    isField: (name) => propertyOf(node, name) !== undefined,
    member(name) {
      const inner = memberOf(node, name)
      if (inner) return inner['x-kubernetes-embedded-resource'] ? mergeOfSchema(inner) : mergeOf(inner)
      return node['x-kubernetes-preserve-unknown-fields'] || node.additionalProperties === true ? { type: 'untyped' } : undefined
    },
  }
}

function listMerge(node: SchemaNode): ListMerge {
  const type = node['x-kubernetes-list-type']
  const keys = type === 'map' ? (node['x-kubernetes-list-map-keys'] ?? []) : []
  return {
    type: 'list',
    list: type === 'set' || type === 'map' ? type : 'atomic',
    keys,
    keyDefaults: keyDefaults(node, keys),
    item: () => (node.items ? mergeOf(node.items) : { type: 'untyped' }),
    strategy: REPLACE,
  }
}

function keyDefaults(node: SchemaNode, keys: readonly string[]): JsonObject {
  return Object.fromEntries(
    keys.flatMap((key) => {
      const value = node.items?.properties?.[key]?.default
      return value === undefined ? [] : [[key, value]]
    }),
  )
}
