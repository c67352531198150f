/** JSON-RPC 2.0 as MCP uses it: ids are strings or integers, never null; one message per frame. */
export type JsonObject = Record<string, unknown>
export type RequestId = string | number

export interface RpcRequest {
  readonly jsonrpc: '2.0'
  readonly id: RequestId
  readonly method: string
  readonly params?: JsonObject
}

export interface RpcNotification {
  readonly jsonrpc: '2.0'
  readonly method: string
  readonly params?: JsonObject
}

export interface RpcErrorBody {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** An error whose request id could not be read carries no `id` at all (never null). */
export interface RpcResponse {
  readonly jsonrpc: '2.0'
  readonly id?: RequestId
  readonly result?: JsonObject
  readonly error?: RpcErrorBody
}

export type RpcMessage = RpcRequest | RpcNotification | RpcResponse

export interface RpcErrorOptions {
  readonly data?: unknown
  /** HTTP status when the error leaves over the modern HTTP edge; 200 means in-band. */
  readonly status?: number
}

/** Thrown by handlers and checks; becomes the `error` member of the answer. */
export class RpcError extends Error {
  readonly code: number
  readonly data: unknown
  readonly status: number

  constructor(code: number, message: string, options: RpcErrorOptions = {}) {
    super(message)
    this.code = code
    this.data = options.data
    this.status = options.status ?? 200
  }
}

export const PARSE_ERROR = -32700
export const INVALID_REQUEST = -32600
export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
export const INTERNAL_ERROR = -32603

/** Returns the message when `value` is exactly one well-formed JSON-RPC message, else undefined. */
export function asMessage(value: unknown): RpcMessage | undefined {
  if (!isObject(value) || value['jsonrpc'] !== '2.0') return undefined
  const { id, method, params } = value
  if (id !== undefined && !isRequestId(id)) return undefined
  if (params !== undefined && !isObject(params)) return undefined
  if (typeof method === 'string') return value as unknown as RpcMessage
  if (method !== undefined) return undefined
  const answers = Number('result' in value) + Number('error' in value)
  return answers === 1 ? (value as unknown as RpcResponse) : undefined
}

export function isRequest(message: RpcMessage): message is RpcRequest {
  return 'method' in message && 'id' in message
}

export function isResponse(message: RpcMessage): message is RpcResponse {
  return !('method' in message)
}

export function success(id: RequestId, result: JsonObject): RpcResponse {
  return { jsonrpc: '2.0', id, result }
}

export function failure(id: RequestId | undefined, error: RpcError): RpcResponse {
  const body = { code: error.code, message: error.message, ...(error.data === undefined ? {} : { data: error.data }) }
  return { jsonrpc: '2.0', ...(id === undefined ? {} : { id }), error: body }
}

export function notification(method: string, params?: JsonObject): RpcNotification {
  return { jsonrpc: '2.0', method, ...(params ? { params } : {}) }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

export function isRequestId(value: unknown): value is RequestId {
  return typeof value === 'string' || Number.isInteger(value)
}
