import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { isObject } from '../objects/served-kind.ts'

const JUNCTORS: readonly string[] = ['allOf', 'anyOf', 'oneOf', 'not']

/**
 * A node of a definition's schema as Swagger can say it. Clients take a node with properties for one that has no others, so a node with
 * unknown members loses its properties and its type; so does one that may be null, which Swagger does not know.
 */
export function swaggerNode(node: JsonObject): JsonObject {
  const isOpen = node['x-kubernetes-preserve-unknown-fields'] === true
  const isNullable = node['nullable'] === true
  const properties = isOpen || isNullable || !isObject(node['properties']) ? undefined : node['properties']
  const items = isOpen || isNullable || !isObject(node['items']) ? undefined : node['items']
  const further = node['additionalProperties']
  const untyped = isNullable || (isOpen && node['type'] === 'object') || (node['type'] === 'array' && items === undefined)
  const dropped = [...JUNCTORS, 'nullable', 'properties', 'items', 'additionalProperties', 'required', ...(untyped ? ['type'] : [])]
  return {
    ...Object.fromEntries(Object.entries(node).filter(([name]) => !dropped.includes(name))),
    ...requiredOf(node),
    ...(properties === undefined ? {} : { properties: mapped(properties) }),
    ...(items === undefined ? {} : { items: swaggerNode(items) }),
    ...(further === undefined ? {} : { additionalProperties: isObject(further) ? swaggerNode(further) : further }),
  }
}

function mapped(properties: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(properties).map(([name, member]) => [name, isObject(member) ? swaggerNode(member) : member]))
}

/** Nullable members may be absent. */
function requiredOf({ required, properties, additionalProperties }: JsonObject): JsonObject {
  if (!Array.isArray(required) || (isObject(additionalProperties) && additionalProperties['nullable'] === true)) return {}
  const isNullable = (name: Json) => {
    const member = isObject(properties) ? properties[String(name)] : undefined
    return isObject(member) && member['nullable'] === true
  }
  const left = (required as readonly Json[]).filter((name) => !isNullable(name))
  return left.length === 0 ? {} : { required: left }
}
