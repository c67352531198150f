import type { WireErrorCode } from '@thv/kernel/error-registry'
import {
  isObject,
  isRequestId,
  type JsonObject,
  type JsonRpcNotification,
  type JsonRpcRequest,
  type JsonRpcResponse,
  type RequestId,
} from './json-rpc.ts'
import { type JsonScan, scanJson } from './json-scan.ts'
import { lookalikesOf } from './lookalike-names.ts'

export interface ParsedRequest {
  readonly kind: 'request'
  readonly message: JsonRpcRequest
  readonly id: RequestId
  readonly method: string
  readonly text: string
}

export interface ParsedNotification {
  readonly kind: 'notification'
  readonly message: JsonRpcNotification
  readonly id: undefined
  readonly method: string
  readonly text: string
}

export interface ParsedResponse {
  readonly kind: 'response'
  readonly message: JsonRpcResponse
  readonly id: RequestId | undefined
  readonly method: undefined
  readonly text: string
}

/** `not_json_rpc` stands for every fault of shape. */
export type InvalidReason = 'too_large' | 'not_utf8' | 'not_json' | 'batch' | 'too_deep' | 'not_json_rpc'

export interface InvalidBody {
  readonly kind: 'invalid'
  readonly error: WireErrorCode
  readonly reason: InvalidReason
  /** Safe to show to the sender; holds nothing of the body. */
  readonly detail: string
  /** To be repeated in the error response; undefined when it cannot be read. */
  readonly id: RequestId | undefined
  readonly method: undefined
}

/** `text` is what was parsed, to be forwarded or spliced; `message` is its one parse, shared by all who look at it, so it is never changed. */
export type ParsedMessage = ParsedRequest | ParsedNotification | ParsedResponse
export type ParsedBody = ParsedMessage | InvalidBody

export interface ParseLimits {
  readonly maxBytes: number
  /** Levels of nesting. Code that walks or serializes the message later may recurse. */
  readonly maxDepth: number
}

export const DEFAULT_PARSE_LIMITS: ParseLimits = { maxBytes: 8 * 1024 * 1024, maxDepth: 128 }

/** Strict UTF-8; a byte order mark is kept, which JSON then refuses. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Reads one JSON-RPC message. Never throws, whatever the bytes: what is wrong with them is a value. */
export function parseBody(bytes: Uint8Array, limits: ParseLimits = DEFAULT_PARSE_LIMITS): ParsedBody {
  if (bytes.length > limits.maxBytes) return invalid('too_large', `over ${limits.maxBytes} bytes`)
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return invalid('not_utf8', 'the body is not UTF-8')
  }
  return parseText(text, limits.maxDepth)
}

/** As `parseBody`, for what is decoded already, such as the data of an SSE event. Its length is for the caller to bound. */
export function parseText(text: string, maxDepth: number = DEFAULT_PARSE_LIMITS.maxDepth): ParsedBody {
  const start = firstCharacter(text)
  if (start === undefined) return invalid('not_json', 'the body is empty')
  if (start === '[') return invalid('batch', 'batches are not accepted')
  const scan = scanJson(text, maxDepth)
  if (scan.tooDeep) return invalid('too_deep', `nested deeper than ${maxDepth} levels`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return invalid('not_json', 'the body is not JSON')
  }
  return isObject(value) ? shapeOf(value, text, scan) : invalid('not_json_rpc', 'the body is not an object')
}

/** The id that an error answer to this body must repeat. Answers to notifications and responses have none. */
export function echoId(body: ParsedBody): RequestId | undefined {
  return body.kind === 'request' || body.kind === 'invalid' ? body.id : undefined
}

/** Batches must be found whatever white space stands before them, so all that Unicode calls a space is skipped. */
function firstCharacter(text: string): string | undefined {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x20 || (code >= 0x09 && code <= 0x0d)) continue
    return code < 0x80 ? text[i] : text.slice(i).trimStart()[0]
  }
  return undefined
}

function shapeOf(value: JsonObject, text: string, scan: JsonScan): ParsedBody {
  const id = isRequestId(value['id']) ? value['id'] : undefined
  if (value['jsonrpc'] !== '2.0') return invalid('not_json_rpc', 'member jsonrpc must be "2.0"', id)
  if (hasEnvelopeLookalike(value)) return invalid('not_json_rpc', LOOKALIKE)
  return value['method'] === undefined ? responseOf(value, text, id) : callOf(value, text, { id, scan })
}

function callOf(value: JsonObject, text: string, { id, scan }: { id: RequestId | undefined; scan: JsonScan }): ParsedBody {
  const { method, params } = value
  // Which of two equal names counts differs from parser to parser: a call must not be judged by one and carried out by the other.
  if (hasRepeatedNames(value, scan)) return invalid('not_json_rpc', 'a member name is repeated')
  if (typeof method !== 'string' || method === '') return invalid('not_json_rpc', 'member method must be a string', id)
  if (params !== undefined && !isObject(params)) return invalid('not_json_rpc', 'member params must be an object', id)
  if (params !== undefined && hasParamLookalike(params)) return invalid('not_json_rpc', LOOKALIKE, id)
  if ('result' in value || 'error' in value) return invalid('not_json_rpc', 'both a call and a response', id)
  if (!('id' in value)) return { kind: 'notification', message: value as unknown as JsonRpcNotification, id: undefined, method, text }
  if (id === undefined) return invalid('not_json_rpc', BAD_ID)
  return { kind: 'request', message: value as unknown as JsonRpcRequest, id, method, text }
}

/** JSON-RPC wants an id of null where it could not be read; MCP leaves it out. Some servers write the unused one of result and error as null. */
function responseOf(value: JsonObject, text: string, id: RequestId | undefined): ParsedBody {
  const error = value['error'] ?? undefined
  if (error === undefined) {
    if (!('result' in value)) return invalid('not_json_rpc', 'neither a call nor a response', id)
    if (id === undefined) return invalid('not_json_rpc', BAD_ID)
  } else {
    if (!isErrorObject(error)) return invalid('not_json_rpc', 'member error must have a code and a message', id)
    if ((value['result'] ?? undefined) !== undefined) return invalid('not_json_rpc', 'both a result and an error', id)
    if (id === undefined && (value['id'] ?? undefined) !== undefined) return invalid('not_json_rpc', BAD_ID)
  }
  return { kind: 'response', message: value as unknown as JsonRpcResponse, id, method: undefined, text }
}

const LOOKALIKE = 'a member name differs from one of the protocol only in case'
const hasEnvelopeLookalike = lookalikesOf(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
/** Those that decide what a call does. */
const hasParamLookalike = lookalikesOf(['name', 'arguments', 'uri', 'ref', 'notifications', '_meta'])

const BAD_ID = 'member id must be a string or an integer'

function isErrorObject(error: unknown): boolean {
  return isObject(error) && Number.isSafeInteger(error['code']) && typeof error['message'] === 'string'
}

/** Compares what was written with what the parser kept, down to the members of `arguments` and `_meta`: all that a policy may look at. */
function hasRepeatedNames(root: JsonObject, scan: JsonScan): boolean {
  let firsts = 0
  let seconds = 0
  let thirds = 0
  // Results of JSON.parse inherit no enumerable names, and this way nothing is allocated.
  for (const name in root) {
    firsts++
    const first = root[name]
    if (Array.isArray(first)) for (const second of first) thirds += memberCount(second)
    else if (isObject(first)) {
      for (const inner in first) {
        seconds++
        thirds += memberCount(first[inner])
      }
    }
  }
  const [written, writtenSeconds, writtenThirds] = scan.members
  return firsts !== written || seconds !== writtenSeconds || thirds !== writtenThirds
}

function memberCount(value: unknown): number {
  let count = 0
  if (!isObject(value)) return count
  for (const _ in value) count++
  return count
}

const REASON_ERRORS: Readonly<Record<InvalidReason, WireErrorCode>> = {
  too_large: 'body_too_large',
  not_utf8: 'parse_error',
  not_json: 'parse_error',
  batch: 'invalid_request',
  too_deep: 'invalid_request',
  not_json_rpc: 'invalid_request',
}

function invalid(reason: InvalidReason, detail: string, id?: RequestId): InvalidBody {
  return { kind: 'invalid', error: REASON_ERRORS[reason], reason, detail, id, method: undefined }
}
