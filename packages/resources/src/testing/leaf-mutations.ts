import { isLeaf, type SchemaNode } from '../schema/schema-walk.ts'

/** One place in an object where a leaf of its schema is set. */
export interface SetLeaf {
  /** In the notation of `walkSchema`. */
  readonly path: string
  /** Where it really is. */
  readonly at: readonly (string | number)[]
  readonly node: SchemaNode
  readonly value: unknown
  /** May be left out, as far as the schema says. */
  readonly removable: boolean
}

/** Every leaf that the object sets. */
export function* setLeaves(value: unknown, root: SchemaNode, path: string): Generator<SetLeaf> {
  yield* visit({ path, at: [], node: root, value, removable: false })
}

function* visit(place: SetLeaf): Generator<SetLeaf> {
  const { path, at, node, value } = place
  if (value === undefined || value === null) return
  if (isLeaf(node)) {
    yield place
  } else if (Array.isArray(value)) {
    const removable = value.length > Number(node['minItems'] ?? 0)
    for (const [index, item] of value.entries()) {
      if (node.items) yield* visit({ path: `${path}[]`, at: [...at, index], node: node.items, value: item, removable })
    }
  } else if (typeof value === 'object') {
    for (const [name, child] of Object.entries(value)) {
      const property = node.properties?.[name]
      const further = typeof node.additionalProperties === 'object' ? node.additionalProperties : undefined
      if (property) {
        const removable = !(node.required?.includes(name) ?? false)
        yield* visit({ path: `${path}.${name}`, at: [...at, name], node: property, value: child, removable })
      } else if (further) yield* visit({ path: `${path}.<key>`, at: [...at, name], node: further, value: child, removable: true })
    }
  }
}

/** Copies of the object in which only this leaf differs: without it, and with other values that the schema takes. */
export function withLeafChanged<T>(object: T, leaf: SetLeaf): T[] {
  return [...(leaf.removable ? [changed(object, leaf, undefined)] : []), ...otherValues(leaf).map((value) => changed(object, leaf, value))]
}

function changed<T>(object: T, { at }: SetLeaf, value: unknown): T {
  const copy = structuredClone(object)
  const last = at.at(-1)
  const parent = at.slice(0, -1).reduce<unknown>((node, key) => (node as Record<string | number, unknown>)[key], copy)
  if (last === undefined) return value as T
  if (value !== undefined) (parent as Record<string | number, unknown>)[last] = value
  else if (Array.isArray(parent)) parent.splice(Number(last), 1)
  else delete (parent as Record<string | number, unknown>)[last]
  return copy
}

function otherValues({ node, value }: SetLeaf): unknown[] {
  if (node.enum) return node.enum.filter((other) => other !== value)
  if (node['x-kubernetes-int-or-string']) return [3, '7']
  if (typeof value === 'boolean') return [!value]
  if (typeof value === 'number') return [value + 1, value - 1].filter((other) => isBetween(other, node))
  if (typeof value === 'string') return otherTexts(value).filter((text) => text !== value && isTaken(text, node))
  return []
}

/** One of them fits wherever one of its sort does: a longer name, another URL, a duration, a number, a document. */
function otherTexts(text: string): string[] {
  return [`${text}x`, `${text}/x`, `x${text}`, '7m', '0.5', '[]', ENTITIES, text.replace('permit', 'forbid'), text.replace('1', '2')]
}

const ENTITIES = '[{"uid": {"type": "THVGroup", "id": "other"}, "attrs": {}, "parents": []}]'

function isBetween(value: number, { minimum, maximum }: SchemaNode): boolean {
  return value >= Number(minimum ?? Number.NEGATIVE_INFINITY) && value <= Number(maximum ?? Number.POSITIVE_INFINITY)
}

function isTaken(text: string, { pattern, maxLength }: SchemaNode): boolean {
  return (typeof pattern !== 'string' || new RegExp(pattern).test(text)) && text.length <= Number(maxLength ?? Number.POSITIVE_INFINITY)
}
