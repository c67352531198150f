import { RequestError } from '@thv/http/http-errors'
import type { Exchange } from '@thv/http/server/exchange'
import { readBody } from '@thv/http/server/read-body'
import type { Json } from '@thv/kube-schema/kind-schema'
import { parseMembers } from '../../encoding/duplicate-members.ts'
import { isObject, textAt } from '../objects/served-kind.ts'
import { badRequest, StatusError, unsupportedMediaType } from '../objects/status-error.ts'
import { type ExpectedKind, PROTOBUF_TYPE, parseProtobuf } from './protobuf-body.ts'
import { parseYaml, YamlError } from './yaml-body.ts'

const MAX_BYTES = 3 << 20
const YAML_TYPE = 'application/yaml'
const OBJECT_TYPES = ['application/json', YAML_TYPE, PROTOBUF_TYPE]

/** The whole body; 413 over 3 MiB, as on the real server. */
export async function readInput(exchange: Exchange): Promise<Buffer> {
  try {
    return await readBody(exchange, MAX_BYTES)
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    if (error.status === 413)
      throw new StatusError({ code: 413, reason: 'RequestEntityTooLarge', message: `Request entity too large: limit is ${MAX_BYTES}` })
    throw new StatusError({ code: error.status, reason: error.status === 415 ? 'UnsupportedMediaType' : 'Timeout', message: error.message })
  }
}

/** A header as one text; empty when it was not sent. */
export function headerOf(exchange: Exchange, name: string): string {
  const value = exchange.headers[name]
  return typeof value === 'string' ? value : (value?.join(',') ?? '')
}

/** The media type of the body in lower case, without parameters; JSON when nothing is said. */
export function mediaTypeOf(exchange: Exchange): string {
  const [type = ''] = headerOf(exchange, 'content-type').split(';')
  return type.trim().toLowerCase() || 'application/json'
}

/** The object of a body as JSON, whatever its form. A custom one must tell its kind itself. */
export async function readJsonInput(exchange: Exchange, expected: ExpectedKind & { readonly custom: boolean }): Promise<Json> {
  const type = mediaTypeOf(exchange)
  const types = expected.custom ? OBJECT_TYPES.slice(0, -1) : OBJECT_TYPES
  if (!types.includes(type)) throw unsupportedMediaType(types)
  const bytes = await readInput(exchange)
  const refused = (why: string) =>
    badRequest(`the object provided is unrecognized (must be of type ${expected.kind}): ${why} (${summary(bytes)})`)
  if (type === PROTOBUF_TYPE) return parseProtobuf(bytes, expected, refused)
  const unrecognized = (why: string) => refused(`couldn't get version/kind; json parse error: ${why}`)
  const value = type === YAML_TYPE ? readYaml(bytes, exchange, refused) : parseJson(bytes, unrecognized)
  if (!isObject(value))
    throw unrecognized(`json: cannot unmarshal ${Array.isArray(value) ? 'array' : typeof value} into Go value of type ${GO_TYPE}`)
  const missing = expected.custom ? ['Kind', 'apiVersion'].find((name) => textAt(value, name === 'Kind' ? 'kind' : name) === '') : undefined
  if (missing !== undefined) throw refused(`Object '${missing}' is missing in '${bytes.toString()}'`)
  return value
}

/** Go clients send it in the version of the object's own group. */
const DELETE_OPTIONS = { kind: 'DeleteOptions', inEveryGroup: true }

/** The options of a deletion; undefined when the body is empty. */
export async function readDeleteInput(exchange: Exchange): Promise<Json | undefined> {
  const bytes = await readInput(exchange)
  if (bytes.length === 0) return undefined
  switch (mediaTypeOf(exchange)) {
    case 'application/json':
      return parseJson(bytes)
    case YAML_TYPE:
      return readYaml(bytes, exchange, badRequest)
    case PROTOBUF_TYPE:
      return parseProtobuf(bytes, DELETE_OPTIONS, badRequest)
    default:
      throw unsupportedMediaType(OBJECT_TYPES)
  }
}

/** An empty document is an empty object. */
function readYaml(bytes: Buffer, exchange: Exchange, refused: (why: string) => StatusError): Json {
  const isStrict = new URLSearchParams(exchange.query).get('fieldValidation') === 'Strict'
  try {
    return parseYaml(bytes, isStrict) ?? {}
  } catch (error) {
    throw error instanceof YamlError ? refused(error.message) : error
  }
}

const GO_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
const SUMMARY_BYTES = 30

export function parseJson(bytes: Buffer, failed: (why: string) => StatusError = (why) => badRequest(`json parse error: ${why}`)): Json {
  try {
    return parseMembers(bytes)
  } catch (error) {
    if (typeof error === 'string') throw badRequest(`the object provided is ${error}`)
    const why = error instanceof SyntaxError ? error.message : 'not JSON'
    throw failed(why === 'Unexpected end of JSON input' ? 'unexpected end of JSON input' : why)
  }
}

/** The beginning of a body that was not understood: as text when it looks like JSON, else as hexadecimal digits. */
function summary(bytes: Buffer): string {
  if (bytes.length === 0) return '<empty>'
  const head = bytes.subarray(0, SUMMARY_BYTES)
  const text = bytes[0] === 0x7b ? head.toString() : head.toString('hex')
  return bytes.length > SUMMARY_BYTES ? `${text} ...` : text
}
