import type { DocumentProblem } from '@thv/catalog/catalog-entry'
import { RequestError } from '@thv/http/http-errors'
import type { Exchange } from '@thv/http/server/exchange'
import { type HeaderPairs, sendJson } from '@thv/http/server/respond'
import { type ErrorCode, isThvError, ThvError } from '@thv/kernel/errors'

/** The `code` that goes with a status unless a more exact one is known. Part of the API: clients decide by it. */
export const statusCodes = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'request_timeout',
  409: 'conflict',
  413: 'body_too_large',
  415: 'unsupported_media_type',
  422: 'document_invalid',
  500: 'internal_error',
  501: 'not_implemented',
  503: 'unavailable',
} as const

export type ErrorStatus = keyof typeof statusCodes

export interface ApiErrorOptions {
  /** More exact than the status. */
  readonly code?: string
  readonly problems?: readonly DocumentProblem[]
  readonly headers?: HeaderPairs
  readonly cause?: unknown
}

/** An error answer. The message is for clients: no secrets, no names of what they may not see. */
export class ApiError extends ThvError {
  readonly status: ErrorStatus
  readonly options: ApiErrorOptions

  constructor(status: ErrorStatus, message: string, options: ApiErrorOptions = {}) {
    super(KINDS[status] ?? 'bad_request', message, 'cause' in options ? { cause: options.cause } : {})
    this.status = status
    this.options = options
  }
}

const KINDS: Partial<Record<ErrorStatus, ErrorCode>> = {
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  500: 'internal_error',
  503: 'store_unavailable',
}

/** `{"error","code","problems"?}`, the one shape of errors. Headers that every answer carries are the caller's to set before. */
export function sendApiError(exchange: Exchange, status: ErrorStatus, answer: { error: string } & ApiErrorOptions): void {
  const { error, code = statusCodes[status], problems, headers = [] } = answer
  const body = { error, code, ...(problems !== undefined && problems.length > 0 && { problems }) }
  sendJson(exchange, body, { status, headers: ['Cache-Control', 'no-store', ...headers] })
}

const RETRY_AFTER_SECONDS = 1

/** An error as an answer. Undefined: neither a mistake of the client nor temporary; 500. */
export function apiErrorOf(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error
  if (error instanceof RequestError) return new ApiError(REQUEST_STATUS[error.code] ?? 400, error.message)
  if (!isThvError(error)) return undefined
  const { message } = error
  switch (error.code) {
    case 'bad_request':
      return new ApiError(400, message)
    case 'forbidden':
      return new ApiError(403, message)
    case 'not_found':
      return new ApiError(404, message)
    case 'conflict':
      return new ApiError(409, message)
    case 'version_exists':
      return new ApiError(409, message, { code: 'version_exists' })
    case 'store_unavailable':
    case 'timeout':
      // Messages of the store may name hosts and files: they go to the log only.
      return unavailable('the database does not answer', error)
    default:
      return undefined
  }
}

const REQUEST_STATUS: Partial<Record<ErrorCode, ErrorStatus>> = {
  request_body_encoding: 415,
  request_body_too_large: 413,
  request_body_too_slow: 408,
}

export function unavailable(message: string, cause?: unknown): ApiError {
  return new ApiError(503, message, { headers: ['Retry-After', String(RETRY_AFTER_SECONDS)], ...(cause !== undefined && { cause }) })
}

/** Rejections of a store with this code, in the API's own words: stores word them differently. */
export function reworded<T>(call: Promise<T>, code: keyof typeof REWORDED, message: string): Promise<T> {
  return call.catch((error: unknown) => {
    throw isThvError(error, code)
      ? new ApiError(REWORDED[code], message, { cause: error, ...(code === 'version_exists' && { code }) })
      : error
  })
}

const REWORDED = { conflict: 409, version_exists: 409, not_found: 404, bad_request: 400 } as const
