import type { Exchange } from '@thv/http/exchange'
import { RequestError } from '@thv/http/http-errors'
import { readBody } from '@thv/http/read-body'
import type { Json } from './kind-schema.ts'
import { isObject, textAt } from './served-kind.ts'
import { badRequest, StatusError, unsupportedMediaType } from './status-error.ts'

const MAX_BYTES = 3 << 20
/** Far more than any manifest has, and little enough for everyone who walks the value by recursion. */
const MAX_DEPTH = 500

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

/** `kind` is what the body should hold, for the refusal; a custom one must say so itself. */
export async function readJsonInput(exchange: Exchange, { kind, custom }: { kind: string; custom: boolean }): Promise<Json> {
  const type = mediaTypeOf(exchange)
  if (type !== 'application/json') throw unsupportedMediaType(['application/json'])
  const bytes = await readInput(exchange)
  const refused = (why: string) => badRequest(`the object provided is unrecognized (must be of type ${kind}): ${why} (${summary(bytes)})`)
  const unrecognized = (why: string) => refused(`couldn't get version/kind; json parse error: ${why}`)
  const value = parseJson(bytes, unrecognized)
  if (!isObject(value))
    throw unrecognized(`json: cannot unmarshal ${Array.isArray(value) ? 'array' : typeof value} into Go value of type ${GO_TYPE}`)
  const missing = custom ? ['Kind', 'apiVersion'].find((name) => textAt(value, name === 'Kind' ? 'kind' : name) === '') : undefined
  if (missing !== undefined) throw refused(`Object '${missing}' is missing in '${bytes.toString()}'`)
  return value
}

const GO_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
const SUMMARY_BYTES = 30

export function parseJson(bytes: Buffer, failed: (why: string) => StatusError = (why) => badRequest(`json parse error: ${why}`)): Json {
  if (isTooDeep(bytes)) throw badRequest(`the object provided is nested more than ${MAX_DEPTH} levels deep`)
  try {
    return JSON.parse(bytes.toString()) as Json
  } catch (error) {
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

function isTooDeep(bytes: Buffer): boolean {
  if (bytes.length <= MAX_DEPTH) return false
  let depth = 0
  let inText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inText) {
      if (byte === 0x5c) at++
      else if (byte === 0x22) inText = false
    } else if (byte === 0x22) inText = true
    else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > MAX_DEPTH) return true
    } else if (byte === 0x7d || byte === 0x5d) depth--
  }
  return false
}
