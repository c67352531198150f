import type { Environment } from '@marcbachmann/cel-js'
import type { Json } from '../kind-schema.ts'
import { furtherOf, isMap, type SchemaNode } from '../schema-node.ts'
import { anyValue, scalarValue } from './cel-values.ts'
import { celName } from './escape.ts'
import { asUnordered, celEqual } from './library/cel-equality.ts'

/** CEL's view of one schema node: the name of its type, and how a JSON value becomes one of that type. */
export interface CelType {
  readonly name: string
  readonly node: SchemaNode
  value(json: Json): unknown
  /** By name in the rule; only objects with named fields. */
  readonly fields?: ReadonlyMap<string, CelType>
  /** By name in the schema. */
  readonly properties?: ReadonlyMap<string, CelType>
  readonly element?: CelType
}

/** A map, so that fields may have any name. */
class ObjectValue extends Map<string, unknown> {}

interface ObjectClass {
  readonly name: string
  readonly Value: typeof ObjectValue
}

const TEXT: SchemaNode = { type: 'string' }
const RESOURCE_FIELDS: Readonly<Record<string, SchemaNode>> = {
  apiVersion: TEXT,
  kind: TEXT,
  metadata: { type: 'object', properties: { name: TEXT, generateName: TEXT } },
}

/** Declares types as they are needed; every object node is a type of its own, as on the real server. */
export function createTypes(environment: Environment): {
  of(node: SchemaNode, isResource: boolean): CelType | undefined
  fieldsOf: FieldsOf
} {
  const declared = new Map<string, ReadonlyMap<string, CelType>>()
  const classes = new Map<string, ObjectClass>()

  function of(node: SchemaNode, isResource: boolean): CelType | undefined {
    if (node['x-kubernetes-int-or-string']) return { name: 'dyn', node, value: anyValue }
    if (node.type === 'array') return listType(node)
    if (node.type === 'object') return furtherOf(node) ? mapType(node) : objectType(node, isResource)
    const scalar = scalarValue(node)
    return scalar && { name: scalar.type, node, value: (json) => (json === null ? null : scalar.value(json)) }
  }

  function listType(node: SchemaNode): CelType | undefined {
    const element = node.items && of(node.items, node.items['x-kubernetes-embedded-resource'] === true)
    if (!element) return undefined
    const isUnordered = node['x-kubernetes-list-type'] === 'set' || node['x-kubernetes-list-type'] === 'map'
    const value = (json: Json) => {
      if (!Array.isArray(json)) return anyValue(json)
      const items = json.map((item: Json) => element.value(item))
      return isUnordered ? asUnordered(items) : items
    }
    return { name: `list<${nameOf(element)}>`, node, element, value }
  }

  function mapType(node: SchemaNode): CelType | undefined {
    const further = furtherOf(node)
    const element = further && of(further, further['x-kubernetes-embedded-resource'] === true)
    if (!element) return undefined
    const value = (json: Json) =>
      isMap(json) ? new Map(Object.entries(json).map(([key, member]) => [key, element.value(member)])) : anyValue(json)
    return { name: `map<string, ${nameOf(element)}>`, node, element, value }
  }

  function objectType(node: SchemaNode, isResource: boolean): CelType {
    const fields = new Map<string, CelType>()
    const properties = new Map<string, CelType>()
    for (const [name, property] of Object.entries({ ...node.properties, ...(isResource && RESOURCE_FIELDS) })) {
      const type = of(property, property['x-kubernetes-embedded-resource'] === true)
      const escaped = celName(name)
      if (!type) continue
      properties.set(name, type)
      if (escaped !== undefined) fields.set(escaped, type)
    }
    const { name, Value } = classOf(fields)
    const value = (json: Json) => {
      if (!isMap(json)) return anyValue(json)
      const members = new Value()
      for (const [property, member] of Object.entries(json)) {
        const type = properties.get(property)
        const escaped = celName(property)
        if (type && escaped !== undefined) members.set(escaped, type.value(member))
      }
      return members
    }
    return { name, node, fields, properties, value }
  }

  /** Objects with the same fields are of one type: rules compare them with each other. */
  function classOf(fields: ReadonlyMap<string, CelType>): ObjectClass {
    const signature = [...fields].map(([field, type]): [string, string] => [field, nameOf(type)])
    const key = JSON.stringify(signature.toSorted(([a], [b]) => (a < b ? -1 : 1)))
    const known = classes.get(key)
    if (known) return known
    const name = `object.t${declared.size}`
    declared.set(name, fields)
    const Value = class extends ObjectValue {}
    environment.registerType(name, { ctor: Value, fields: Object.fromEntries(signature) })
    environment.registerOperator(`${name} == ${name}`, celEqual)
    classes.set(key, { name, Value })
    return { name, Value }
  }

  return { of, fieldsOf: (name) => declared.get(name) }
}

export type FieldsOf = (typeName: string) => ReadonlyMap<string, CelType> | undefined

/** A value that may be null cannot have a static type in this CEL implementation. */
function nameOf(type: CelType): string {
  return type.node.nullable ? 'dyn' : type.name
}
