import { rejectionOf } from '@thv/gateway/response/backend-rejection'
import { isThvError } from '@thv/kernel/errors'
import { McpErrorResponse, McpHttpError } from '@thv/mcp/client/client-errors'
import type { ErrorObject, JsonObject } from '@thv/mcp/json-rpc'
import { errorObjectOf, type Rejection, reject } from '@thv/mcp/wire-errors'
import { MAX_MESSAGE_BYTES } from '../members/member.ts'

/** A failure as the client learns of it: in-band, because other backends still work. Names the backend, never its address. */
export interface CallFailure {
  readonly error: ErrorObject
  /** The backend's own answer; its code may need a projection. */
  readonly isAnswer: boolean
}

export interface FailedCall {
  readonly backend: string
  readonly timeoutMs: number
}

/** Undefined: a fault of this program. */
export function callFailure(error: unknown, call: FailedCall): CallFailure | undefined {
  if (error instanceof McpErrorResponse) {
    const { rpcCode: code, message, data } = error
    return { isAnswer: true, error: data === undefined ? { code, message } : { code, message, data } }
  }
  const rejection = rejectionFor(error, call)
  if (rejection === undefined) return undefined
  return { isAnswer: false, error: errorObjectOf({ ...rejection, data: { ...rejection.data, backend: call.backend } }) }
}

function tooLarge(): Rejection {
  const detail = `the answer is over the limit of ${MAX_MESSAGE_BYTES} bytes`
  return reject('backend_protocol_error', { detail, data: { mayHaveRun: true, retryable: false, limitBytes: MAX_MESSAGE_BYTES } })
}

/** The circuit is open: the call was not made. */
export function circuitOpen(backend: string, retryAfterMs: number): ErrorObject {
  const data: JsonObject = { reason: 'backend_unavailable', backend, retryAfterMs: Math.ceil(retryAfterMs), mayHaveRun: false }
  return errorObjectOf(reject('internal_error', { detail: `backend ${backend} is unavailable`, data }))
}

function rejectionFor(error: unknown, { timeoutMs }: FailedCall): Rejection | undefined {
  if (error instanceof McpHttpError) {
    const { status } = error
    if (status === 401 || status === 403) return reject('credentials_refused')
    return reject('backend_protocol_error', { detail: 'it failed', data: { mayHaveRun: true, backendStatus: status } })
  }
  if (!isThvError(error)) return undefined
  if (error.code === 'timeout') return reject('backend_timeout', { data: { timeoutMs, mayHaveRun: true } })
  if (error.code === 'mcp_auth_required') return reject('credentials_refused')
  if (error.code === 'message_too_large') return tooLarge()
  const known = rejectionOf(error)
  if (known !== undefined) return known
  switch (error.code as string) {
    case 'mcp_stream_broken':
      return reject('backend_connection_lost', { data: { mayHaveRun: true } })
    case 'mcp_session_lost':
    case 'backend_unavailable':
      return reject('backend_unavailable', { data: { mayHaveRun: false } })
    case 'backend_protocol_error':
    case 'mcp_no_common_version':
    case 'mcp_limit':
      return reject('backend_protocol_error', { data: { mayHaveRun: true } })
    default:
      return undefined
  }
}
