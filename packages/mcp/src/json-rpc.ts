import { spliceMember } from './json-splice.ts'

export interface JsonObject {
  readonly [name: string]: unknown
}

/** A string, or an integer that a double holds exactly: others could not be sent back as they came. Never null. */
export type RequestId = string | number

export interface JsonRpcRequest {
  readonly jsonrpc: '2.0'
  readonly id: RequestId
  readonly method: string
  readonly params?: JsonObject
}

export interface JsonRpcNotification {
  readonly jsonrpc: '2.0'
  readonly method: string
  readonly params?: JsonObject
}

export interface ErrorObject {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

export interface ResultResponse {
  readonly jsonrpc: '2.0'
  readonly id: RequestId
  readonly result: unknown
}

/** Without id when the id of what it answers could not be read. */
export interface ErrorResponse {
  readonly jsonrpc: '2.0'
  readonly id?: RequestId
  readonly error: ErrorObject
}

export type JsonRpcResponse = ResultResponse | ErrorResponse
export type JsonRpcMessage = JsonRpcRequest | JsonRpcNotification | JsonRpcResponse

export function isRequestId(id: unknown): id is RequestId {
  return typeof id === 'string' || Number.isSafeInteger(id)
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isErrorResponse(message: JsonRpcResponse): message is ErrorResponse {
  return 'error' in message && isObject(message.error)
}

export function resultResponse(id: RequestId, result: unknown): ResultResponse {
  return { jsonrpc: '2.0', id, result }
}

export function errorResponse(id: RequestId | undefined, error: ErrorObject): ErrorResponse {
  return id === undefined ? { jsonrpc: '2.0', error } : { jsonrpc: '2.0', id, error }
}

/** One line of JSON. Characters stay themselves; only half a surrogate pair is escaped, so that the UTF-8 form loses nothing. */
export function serialise(message: JsonRpcMessage): string {
  return JSON.stringify(message)
}

/** Another id for a message in its text form; not one other character changes. */
export function spliceId(text: string, id: RequestId): string {
  return spliceMember(text, ['id'], JSON.stringify(id))
}

/** Another id for a parsed message; the members are shared with the given one, which stays as it is. */
export function withId<M extends JsonRpcRequest | JsonRpcResponse>(message: M, id: RequestId): M {
  return { ...message, id }
}
