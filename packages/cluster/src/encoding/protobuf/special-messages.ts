import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { boundsProblem } from '../json-bounds.ts'
import { ProtobufError, wireFields } from './wire-reader.ts'

/** Reads a message by its place in the table. */
export type DecodeMessage = (message: string, bytes: Buffer) => JsonObject

type Reader = (bytes: Buffer, decode: DecodeMessage) => Json | undefined

const SCHEMA = 'apiextensions.v1.JSONSchemaProps'

/** Messages that are something else than an object in JSON, or an object of other members. Undefined is null. */
export const specialMessages: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['apiextensions.v1.JSON', (bytes) => parse(partsOf(bytes).last(1))],
  [
    'apiextensions.v1.JSONSchemaPropsOrArray',
    (bytes, decode) => {
      const { last, all } = partsOf(bytes)
      const list = all(2).map((one) => decode(SCHEMA, one))
      return list.length > 0 ? list : schema(last(1), decode)
    },
  ],
  [
    'apiextensions.v1.JSONSchemaPropsOrBool',
    (bytes, decode) => {
      const { last, number } = partsOf(bytes)
      return schema(last(2), decode) ?? number(1) !== 0
    },
  ],
  [
    'apiextensions.v1.JSONSchemaPropsOrStringArray',
    (bytes, decode) => {
      const { last, all } = partsOf(bytes)
      const list = all(2).map((one) => one.toString())
      return list.length > 0 ? list : schema(last(1), decode)
    },
  ],
  [
    'intstr.IntOrString',
    (bytes) => {
      const { last, number } = partsOf(bytes)
      return number(1) === 0 ? number(2) | 0 : (last(3)?.toString() ?? '')
    },
  ],
  ['meta.v1.FieldsV1', (bytes) => parse(partsOf(bytes).last(1))],
  [
    'meta.v1.MicroTime',
    (bytes) => {
      const { number } = partsOf(bytes)
      const [seconds, nanos] = [number(1), number(2)]
      if (seconds === 0 && nanos === 0) return undefined
      const micros = String(Math.floor(nanos / 1_000)).padStart(6, '0')
      return timeText(seconds).replace('Z', `.${micros}Z`)
    },
  ],
  [
    'meta.v1.Time',
    (bytes) => {
      const seconds = partsOf(bytes).number(1)
      return seconds === 0 ? undefined : timeText(seconds)
    },
  ],
  ['resource.Quantity', (bytes) => partsOf(bytes).last(1)?.toString() || '0'],
  ['runtime.RawExtension', (bytes) => parse(partsOf(bytes).last(1))],
])

interface Parts {
  last(number: number): Buffer | undefined
  all(number: number): Buffer[]
  number(number: number): number
}

function partsOf(bytes: Buffer): Parts {
  const fields = [...wireFields(bytes)]
  const all = (number: number) => fields.filter((field) => field.number === number && field.wire === 2).map((field) => field.bytes)
  return {
    all,
    last: (number) => all(number).at(-1),
    number: (number) => fields.findLast((field) => field.number === number && field.wire === 0)?.value ?? 0,
  }
}

function schema(bytes: Buffer | undefined, decode: DecodeMessage): JsonObject | undefined {
  return bytes === undefined ? undefined : decode(SCHEMA, bytes)
}

/** JSON that is carried as it is. */
function parse(bytes: Buffer | undefined): Json | undefined {
  if (bytes === undefined || bytes.length === 0) return undefined
  const excess = boundsProblem(bytes)
  if (excess !== undefined) throw new ProtobufError(excess)
  try {
    return JSON.parse(bytes.toString()) as Json
  } catch {
    throw new ProtobufError('json: the raw value is not JSON')
  }
}

function timeText(seconds: number): string {
  const time = new Date(seconds * 1_000)
  if (Number.isNaN(time.getTime()) || Math.abs(time.getUTCFullYear()) > 9_999) throw new ProtobufError('a time is out of range')
  return time.toISOString().replace(/\.\d+Z$/, 'Z')
}
