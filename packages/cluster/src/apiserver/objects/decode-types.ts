import { type BuiltinNode, builtinSchemas } from '@thv/kube-schema/builtin/builtin-schema'
import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { MICROS_LAYOUT, SECONDS_LAYOUT, timeProblem } from '@thv/kube-schema/values/go-time'
import { parseQuantity } from '@thv/kube-schema/values/quantity'
import { apiVersionOf, isObject, type ServedKind } from './served-kind.ts'

const MICRO_TIME = 'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime'
const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'
const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity'
const INT_OR_STRING = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString'
const INT32: BuiltinNode = { type: 'integer', format: 'int32' }

/**
 * Why the real server could not even read the object: the first value of another type than its field's, in the words of Go's decoder.
 * Custom kinds have their own check for all but the metadata.
 */
export function typeProblem(kind: ServedKind, object: JsonObject): string | undefined {
  const metadata = builtinSchemas().schemas[OBJECT_META]
  if (kind.custom) {
    const value = object['metadata']
    if (value === undefined || value === null || metadata === undefined) return undefined
    if (!isObject(value)) return `json: cannot unmarshal ${jsonType(value)} into Go value of type v1.ObjectMeta`
    return memberProblem(value, metadata, { struct: 'ObjectMeta', path: [] })
  }
  const id = builtinSchemas().kinds[`${apiVersionOf(kind)} ${kind.kind}`]
  const root = id === undefined ? undefined : builtinSchemas().schemas[id]
  return root && memberProblem(object, root, { struct: kind.kind, path: [] })
}

/**
 * As Go reads an object of a built-in kind: null is as good as nothing to a field, and in a list or a map it is an item with nothing in it.
 * Members that the schema does not know are left alone; they are pruned later.
 */
export function withoutNulls(kind: ServedKind, object: JsonObject): JsonObject {
  const id = builtinSchemas().kinds[`${apiVersionOf(kind)} ${kind.kind}`]
  return id === undefined ? object : (nullsRead(object, { $ref: id }) as JsonObject)
}

/** The same for the metadata of a custom object. */
export function metadataWithoutNulls(object: JsonObject): JsonObject {
  const metadata = object['metadata']
  return isObject(metadata) ? { ...object, metadata: nullsRead(metadata, { $ref: OBJECT_META }) } : object
}

function nullsRead(value: Json, node: BuiltinNode): Json {
  const { items, properties, additionalProperties } = resolved(node)
  if (Array.isArray(value)) return items ? value.map((item: Json) => nullsRead(item ?? nothingOf(items), items)) : value
  if (!isObject(value)) return value
  if (additionalProperties)
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, nullsRead(member ?? nothingOf(additionalProperties), additionalProperties)]),
    )
  if (!properties) return value
  const members: [string, Json][] = []
  for (const [name, member] of Object.entries(value)) {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (field === undefined) members.push([name, member])
    else if (member !== null) members.push([name, nullsRead(member, field)])
  }
  return Object.fromEntries(members)
}

/** Zero values, as in Go. */
function nothingOf(node: BuiltinNode): Json {
  if (node.$ref === QUANTITY) return '0'
  switch (resolved(node).type) {
    case 'string':
      return ''
    case 'integer':
    case 'number':
      return 0
    case 'boolean':
      return false
    case 'array':
      return []
    default:
      return {}
  }
}

/** Where the decoder is: the innermost struct, and the fields that lead there. */
interface Place {
  readonly struct: string
  readonly path: readonly string[]
}

function memberProblem(object: JsonObject, node: BuiltinNode, place: Place): string | undefined {
  for (const [name, value] of Object.entries(object)) {
    const field = node.properties !== undefined && Object.hasOwn(node.properties, name) ? node.properties[name] : undefined
    const problem = field && valueProblem(value, field, { ...place, path: [...place.path, name] })
    if (problem !== undefined) return problem
  }
  return undefined
}

function valueProblem(value: Json, node: BuiltinNode, place: Place): string | undefined {
  if (value === null) return undefined
  const known = resolved(node)
  const wrong = (what = jsonType(value)) =>
    `json: cannot unmarshal ${what} into Go struct field ${place.struct}.${place.path.join('.')} of type ${goType(node)}`
  switch (known.type) {
    case 'string':
      if (typeof value !== 'string')
        return known.format === 'date-time' ? `json: cannot unmarshal ${jsonType(value)} into Go value of type string` : wrong()
      if (known.format === 'date-time') return timeProblem(value, node.$ref === MICRO_TIME ? MICROS_LAYOUT : SECONDS_LAYOUT)
      return known.format === 'byte' ? base64Problem(value) : undefined
    case 'boolean':
      return typeof value === 'boolean' ? undefined : wrong()
    case 'number':
      return typeof value === 'number' ? undefined : wrong()
    case 'integer':
      if (typeof value !== 'number') return wrong()
      return Number.isInteger(value) && Math.abs(value) < (known.format === 'int64' ? 2 ** 63 : 2 ** 31)
        ? undefined
        : wrong(`number ${value}`)
    case 'array':
      if (!Array.isArray(value)) return wrong()
      return known.items && firstProblem(value as readonly Json[], known.items, place)
    case 'object': {
      if (!isObject(value)) return wrong()
      if (known.additionalProperties) return firstProblem(Object.values(value), known.additionalProperties, place)
      return memberProblem(value, known, { ...place, struct: structName(node) ?? place.struct })
    }
    default:
      if (node.$ref === INT_OR_STRING) return typeof value === 'string' ? undefined : valueProblem(value, INT32, place)
      return node.$ref === QUANTITY ? quantityProblem(value) : undefined // other types read themselves as they like
  }
}

function firstProblem(values: readonly Json[], node: BuiltinNode, place: Place): string | undefined {
  for (const value of values) {
    const problem = valueProblem(value, node, place)
    if (problem !== undefined) return problem
  }
  return undefined
}

function resolved(node: BuiltinNode): BuiltinNode {
  const target = node.$ref === undefined ? undefined : builtinSchemas().schemas[node.$ref]
  return target ?? node
}

function structName(node: BuiltinNode): string | undefined {
  return node.$ref?.split('.').at(-1)
}

function goType(node: BuiltinNode): string {
  if (node.$ref !== undefined) return node.$ref.split('.').slice(-2).join('.')
  switch (node.type) {
    case 'boolean':
      return 'bool'
    case 'number':
      return 'float64'
    case 'integer':
      return node.format ?? 'int64'
    case 'array':
      return `[]${node.items ? goType(node.items) : 'interface {}'}`
    case 'object':
      return `map[string]${node.additionalProperties ? goType(node.additionalProperties) : 'interface {}'}`
    default:
      return node.format === 'byte' ? '[]uint8' : 'string'
  }
}

function jsonType(value: Json): string {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

function quantityProblem(value: Json): string | undefined {
  const parsed = parseQuantity(typeof value === 'string' ? value : JSON.stringify(value))
  return 'problem' in parsed ? parsed.problem : undefined
}

function base64Problem(text: string): string | undefined {
  const at = text.search(/[^A-Za-z0-9+/\r\n]/)
  // The error of a truncated end names the start of its group of four.
  const end = at < 0 ? text.length - (text.length % 4) : at
  const rest = text.slice(end).replaceAll(/[\r\n]/g, '')
  const good = /^={0,2}$/.test(rest) && text.replaceAll(/[\r\n]/g, '').length % 4 === 0
  return good ? undefined : `illegal base64 data at input byte ${end}`
}
