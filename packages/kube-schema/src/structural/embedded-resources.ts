import { childField, keyField } from '../field-path.ts'
import { required } from '../field-problems.ts'
import type { FieldProblem, Json, JsonObject } from '../kind-schema.ts'
import { furtherOf, isMap, own, propertyOf, type SchemaNode } from '../schema-node.ts'

/** A resource inside the resource says what it is. */
export function embeddedResourceProblems(object: JsonObject, root: SchemaNode): FieldProblem[] {
  return mayEmbed(root) ? [...problemsIn(object, root, '')] : []
}

function* problemsIn(value: Json, node: SchemaNode, field: string): Generator<FieldProblem> {
  if (Array.isArray(value)) {
    if (node.items) for (const [index, item] of value.entries()) yield* problemsIn(item as Json, node.items, `${field}[${index}]`)
  } else if (isMap(value)) {
    if (node['x-kubernetes-embedded-resource']) {
      for (const name of ['apiVersion', 'kind']) {
        if (!own(value, name)) yield required(childField(field, name))
      }
    }
    const further = furtherOf(node)
    for (const [name, member] of Object.entries(value)) {
      const property = propertyOf(node, name)
      if (property) yield* problemsIn(member, property, childField(field, name))
      else if (further) yield* problemsIn(member, further, keyField(field, name))
    }
  }
}

function mayEmbed(node: SchemaNode): boolean {
  const further = furtherOf(node)
  return (
    node['x-kubernetes-embedded-resource'] === true ||
    (node.items !== undefined && mayEmbed(node.items)) ||
    (further !== undefined && mayEmbed(further)) ||
    Object.values(node.properties ?? {}).some(mayEmbed)
  )
}
