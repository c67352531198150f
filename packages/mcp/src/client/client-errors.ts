import { ThvError } from '@thv/kernel/errors'
import type { ErrorObject } from '../json-rpc.ts'

/** The server answered, and the answer is an error. */
export class McpErrorResponse extends ThvError {
  readonly rpcCode: number
  readonly data: unknown
  /** 200 where it came in-band, or without HTTP. */
  readonly httpStatus: number

  constructor({ code, message, data }: ErrorObject, httpStatus = 200) {
    super('mcp_error_response', message === '' ? `error ${code}` : message, { details: { rpcCode: code, httpStatus } })
    this.rpcCode = code
    this.data = data
    this.httpStatus = httpStatus
  }
}

/** The server answered with a status where a message was due, or wants other credentials. */
export class McpHttpError extends ThvError {
  readonly status: number
  readonly retryAfterMs: number | undefined
  /** `WWW-Authenticate`, which says how to authenticate. */
  readonly challenge: string | undefined

  constructor(code: 'mcp_auth_required' | 'mcp_http_status', message: string, facts: HttpFacts) {
    const { status, retryAfterMs, challenge } = facts
    super(code, message, {
      details: { status, ...(retryAfterMs !== undefined && { retryAfterMs }), ...(challenge !== undefined && { challenge }) },
    })
    this.status = status
    this.retryAfterMs = retryAfterMs
    this.challenge = challenge
  }
}

export interface HttpFacts {
  readonly status: number
  readonly retryAfterMs?: number | undefined
  readonly challenge?: string | undefined
}

/**
 * The base of a client's call is gone: a session, or an era that the server does not speak any more. `mayRetry` says that the request was
 * provably not carried out, so that it may be sent again on a new footing.
 */
export class FootingLost extends ThvError {
  readonly mayRetry: boolean

  constructor(message: string, options: { mayRetry: boolean; cause?: unknown }) {
    super('mcp_session_lost', message, options.cause === undefined ? {} : { cause: options.cause })
    this.mayRetry = options.mayRetry
  }
}

export function protocolError(message: string, details: Record<string, unknown> = {}): ThvError {
  return new ThvError('backend_protocol_error', `the MCP server ${message}`, { details })
}

export function streamBroken(method: string, cause?: unknown): ThvError {
  const message = `the stream of the MCP server broke off before its answer to ${method}`
  return new ThvError('mcp_stream_broken', message, cause === undefined ? {} : { cause })
}
