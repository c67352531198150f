import { Duration } from '@marcbachmann/cel-js/evaluator'
import { tryParseDuration } from '@thv/kernel/duration'
import type { Json } from '../kind-schema.ts'
import { isMap, type SchemaNode } from '../schema-node.ts'

/** The CEL type of a scalar node, by type and format. */
export function scalarValue(node: SchemaNode): { type: string; value(json: Json): unknown } | undefined {
  switch (node.type) {
    case 'boolean':
      return { type: 'bool', value: anyValue }
    case 'integer':
      return { type: 'int', value: anyValue }
    case 'number':
      return { type: 'double', value: (json) => json }
    case 'string':
      return textValue(node.format)
    default:
      return undefined
  }
}

function textValue(format: string | undefined): { type: string; value(json: Json): unknown } {
  switch (format) {
    case 'byte':
      return { type: 'bytes', value: (json) => Uint8Array.from(Buffer.from(String(json), 'base64')) }
    case 'duration':
      return { type: 'google.protobuf.Duration', value: (json) => Duration.fromMilliseconds(tryParseDuration(String(json)) ?? 0) }
    case 'date':
    case 'date-time':
      return { type: 'google.protobuf.Timestamp', value: (json) => new Date(String(json)) }
    default:
      return { type: 'string', value: anyValue }
  }
}

/** Without a schema: whole numbers are ints, as the JSON decoder of the real server has them. */
export function anyValue(json: Json): unknown {
  if (typeof json === 'number') return Number.isInteger(json) ? BigInt(json) : json
  if (Array.isArray(json)) return json.map((item: Json) => anyValue(item))
  if (isMap(json)) return new Map(Object.entries(json).map(([key, member]) => [key, anyValue(member)]))
  return json
}
