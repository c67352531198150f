import { jsonEqual } from '@thv/kernel/json'
import { childField, keyField } from '../field-path.ts'
import { duplicate, invalid } from '../field-problems.ts'
import type { FieldProblem, Json, JsonObject } from '../kind-schema.ts'
import { furtherOf, isMap, own, propertyOf, type SchemaNode } from '../schema-node.ts'
import { goJson } from '../values/go-text.ts'

/** Lists that are sets or maps hold every element once. */
export function listTypeProblems(object: JsonObject, root: SchemaNode): FieldProblem[] {
  return [...problemsIn(object, root, '')]
}

function* problemsIn(value: Json, node: SchemaNode, field: string): Generator<FieldProblem> {
  if (Array.isArray(value)) {
    if (node['x-kubernetes-list-type'] === 'set') yield* repeatedIn(value, field, (index) => value[index] as Json)
    if (node['x-kubernetes-list-type'] === 'map') yield* mapProblems(value, node, field)
    if (node.items) for (const [index, item] of value.entries()) yield* problemsIn(item as Json, node.items, `${field}[${index}]`)
  } else if (isMap(value)) {
    const further = furtherOf(node)
    for (const [name, member] of Object.entries(value)) {
      const property = propertyOf(node, name)
      if (property) yield* problemsIn(member, property, childField(field, name))
      else if (further) yield* problemsIn(member, further, keyField(field, name))
    }
  }
}

function* mapProblems(list: readonly Json[], node: SchemaNode, field: string): Generator<FieldProblem> {
  const odd = list.findIndex((item) => item !== null && !isMap(item))
  if (odd >= 0) {
    yield invalid(`${field}[${odd}]`, list[odd] as Json, 'must be an object for an array of list-type map')
    return
  }
  const keys = node['x-kubernetes-list-map-keys'] ?? []
  const keyOf = (item: Json): JsonObject =>
    Object.fromEntries(keys.flatMap((key) => (isMap(item) && own(item, key) !== undefined ? [[key, own(item, key) as Json]] : [])))
  yield* repeatedIn(list.map(keyOf), field, (index) => keyOf(list[index] as Json))
}

/** Only the first repetition of an element is reported. */
function* repeatedIn(list: readonly Json[], field: string, shown: (index: number) => Json): Generator<FieldProblem> {
  const seen = new Map<string, { first: Json; reported: boolean }>()
  for (const [index, item] of list.entries()) {
    const text = goJson(item)
    const before = seen.get(text)
    if (!before) seen.set(text, { first: item, reported: false })
    else if (!before.reported && jsonEqual(before.first, item)) {
      before.reported = true
      yield duplicate(`${field}[${index}]`, shown(index))
    }
  }
}
