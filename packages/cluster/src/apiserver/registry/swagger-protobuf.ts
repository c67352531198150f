import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { doubleField, lengthField, type Parts, varintField } from '../../encoding/protobuf/wire-writer.ts'
import { isObject } from '../objects/served-kind.ts'

/* Swagger as `openapi.v2.Document`, the messages of gnostic, which kubectl reads when a kind is in no document of version 3. */

/** The fields that a value becomes; none for a value of another type than the member has. */
type Encode = (value: Json) => Parts
type Members = Readonly<Record<string, Encode>>

const text =
  (at: number): Encode =>
  (value) =>
    typeof value === 'string' ? lengthField(at, value) : []
const double =
  (at: number): Encode =>
  (value) =>
    typeof value === 'number' ? doubleField(at, value) : []
const integer =
  (at: number): Encode =>
  (value) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? varintField(at, value) : []
const flag =
  (at: number): Encode =>
  (value) =>
    typeof value === 'boolean' ? varintField(at, value ? 1 : 0) : []
const one =
  (at: number, of: Encode): Encode =>
  (value) =>
    lengthField(at, of(value))
/** A single value is a list of one. */
const each =
  (of: Encode): Encode =>
  (value) =>
    (Array.isArray(value) ? (value as readonly Json[]) : [value]).flatMap((item) => [...of(item)])
/** A map is a list of messages with a name and a value. */
const named =
  (at: number, of: Encode): Encode =>
  (value) =>
    isObject(value)
      ? Object.entries(value).flatMap(([name, member]) => lengthField(at, [...lengthField(1, name), ...lengthField(2, of(member))]))
      : []
/** `Any` holds its value as YAML, of which JSON is a part. */
const any = (at: number): Encode => one(at, (value) => lengthField(2, JSON.stringify(value)))

function message(members: Members, extensionsAt?: number): Encode {
  return (value) =>
    isObject(value)
      ? Object.entries(value).flatMap(([name, member]): Parts => {
          if (extensionsAt !== undefined && name.startsWith('x-'))
            return lengthField(extensionsAt, [...lengthField(1, name), ...any(2)(member)])
          return Object.hasOwn(members, name) ? (members[name]?.(member) ?? []) : []
        })
      : []
}

const schema: Encode = (value) => encodeSchema(value)
const properties = named(1, schema)

const encodeSchema = message(
  {
    $ref: text(1),
    format: text(2),
    title: text(3),
    description: text(4),
    default: any(5),
    multipleOf: double(6),
    maximum: double(7),
    exclusiveMaximum: flag(8),
    minimum: double(9),
    exclusiveMinimum: flag(10),
    maxLength: integer(11),
    minLength: integer(12),
    pattern: text(13),
    maxItems: integer(14),
    minItems: integer(15),
    uniqueItems: flag(16),
    maxProperties: integer(17),
    minProperties: integer(18),
    required: each(text(19)),
    enum: each(any(20)),
    additionalProperties: one(21, (value) => (isObject(value) ? one(1, schema)(value) : flag(2)(value))),
    type: one(22, each(text(1))),
    items: one(23, each(one(1, schema))),
    allOf: each(one(24, schema)),
    properties: one(25, properties),
    discriminator: text(26),
    readOnly: flag(27),
    externalDocs: one(29, message({ description: text(1), url: text(2) }, 3)),
    example: any(30),
  },
  31,
)

const PARAMETER_MEMBERS = { required: flag(1), in: text(2), description: text(3), name: text(4) }
const queryParameter = message({ ...PARAMETER_MEMBERS, type: text(6), uniqueItems: flag(20) }, 23)
const pathParameter = message({ ...PARAMETER_MEMBERS, type: text(5), uniqueItems: flag(19) }, 22)
const bodyParameter = message({ description: text(1), name: text(2), in: text(3), required: flag(4), schema: one(5, schema) }, 6)

/** The messages differ by the place of the parameter; those of headers and forms are not used here. */
const parameter: Encode = (value) => {
  const place = isObject(value) ? value['in'] : undefined
  if (place === 'body') return one(1, bodyParameter)(value)
  return one(2, place === 'path' ? one(4, pathParameter) : one(3, queryParameter))(value)
}
const parameters = (at: number): Encode => each(one(at, one(1, parameter)))

const response = message({ description: text(1), schema: one(2, one(1, schema)) }, 5)

const operation = message(
  {
    description: text(3),
    operationId: text(5),
    produces: each(text(6)),
    consumes: each(text(7)),
    parameters: parameters(8),
    responses: one(9, named(1, one(1, response))),
  },
  13,
)

const pathItem = message(
  {
    get: one(2, operation),
    put: one(3, operation),
    post: one(4, operation),
    delete: one(5, operation),
    patch: one(8, operation),
    parameters: parameters(9),
  },
  10,
)

const encodeDocument = message(
  {
    swagger: text(1),
    info: one(2, message({ title: text(1), version: text(2) }, 7)),
    paths: one(8, named(2, pathItem)),
    definitions: one(9, properties),
  },
  16,
)

export function swaggerProtobuf(document: JsonObject): Buffer {
  return Buffer.concat([...encodeDocument(document)])
}
