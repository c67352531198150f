import type { Json, JsonObject, PruneResult } from '../kind-schema.ts'
import { pruneObjectMeta } from '../meta/object-meta-fields.ts'
import { isMap, META_FIELDS, propertyOf, type SchemaNode } from '../schema-node.ts'

/** Takes out what the schema does not name; `metadata` of the resource is held against Kubernetes' own ObjectMeta. */
export function prune(object: JsonObject, root: SchemaNode): PruneResult {
  const unknown: string[] = []
  const pruned = pruneValue(object, { ...root, 'x-kubernetes-embedded-resource': true }, { path: '', unknown }) as JsonObject
  const metadata = pruned['metadata']
  const withMeta = isMap(metadata)
    ? { ...pruned, metadata: pruneObjectMeta(metadata, (field) => unknown.push(`metadata.${field}`)) }
    : pruned
  return { object: withMeta, unknown: unknown.sort() }
}

/** For values without a resource around them: a default of a schema. */
export function isPruned(value: Json, node: SchemaNode): boolean {
  const unknown: string[] = []
  pruneValue(value, node, { path: '', unknown })
  return unknown.length === 0
}

interface Place {
  readonly path: string
  readonly unknown: string[]
}

function pruneValue(value: Json, node: SchemaNode | undefined, place: Place): Json {
  if (Array.isArray(value)) return value.map((item, index) => pruneValue(item, itemNode(node), at(place, `[${index}]`)))
  if (!isMap(value)) return value
  const kept: [string, Json][] = []
  for (const [name, member] of Object.entries(value)) {
    const known = node && memberRule(node, name)
    if (known === 'untouched') kept.push([name, member])
    else if (known) kept.push([name, pruneValue(member, known === 'empty' ? undefined : known, below(place, name))])
    else place.unknown.push(below(place, name).path)
  }
  return Object.fromEntries(kept)
}

/** `empty`: kept, but nothing is known of what is inside (`additionalProperties: true`). */
function memberRule(node: SchemaNode, name: string): SchemaNode | 'untouched' | 'empty' | undefined {
  if (node['x-kubernetes-embedded-resource'] && META_FIELDS.has(name)) return 'untouched'
  const property = propertyOf(node, name)
  if (property) return property
  if (typeof node.additionalProperties === 'object') return node.additionalProperties
  if (node.additionalProperties === true) return 'empty'
  return node['x-kubernetes-preserve-unknown-fields'] ? 'untouched' : undefined
}

/** Items of a list that keeps unknown fields keep theirs. */
function itemNode(node: SchemaNode | undefined): SchemaNode | undefined {
  if (!node?.['x-kubernetes-preserve-unknown-fields']) return node?.items
  return { ...node.items, 'x-kubernetes-preserve-unknown-fields': true }
}

function below(place: Place, name: string): Place {
  return at(place, place.path === '' ? name : `.${name}`)
}

function at(place: Place, step: string): Place {
  return { path: place.path + step, unknown: place.unknown }
}
