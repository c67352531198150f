import { type ErrorCode, ThvError } from '@thv/kernel/errors'

/** The codes of this package; `backend_timeout` means the same on the wire. */
export type HttpErrorCode = Extract<
  ErrorCode,
  | 'backend_blocked'
  | 'backend_busy'
  | 'backend_connect_timeout'
  | 'backend_dns'
  | 'backend_protocol'
  | 'backend_refused'
  | 'backend_request_invalid'
  | 'backend_reset'
  | 'backend_response_too_large'
  | 'backend_timeout'
  | 'backend_tls'
  | 'backend_unreachable'
  | 'ca_bundle_invalid'
  | 'listen_failed'
  | 'request_body_encoding'
  | 'request_body_too_large'
  | 'request_body_too_slow'
>

export interface HttpErrorOptions {
  readonly cause?: unknown
  readonly details?: Record<string, unknown>
}

export function httpError(code: HttpErrorCode, message: string, options?: HttpErrorOptions): ThvError {
  return new ThvError(code, message, options)
}

export function isHttpError(e: unknown, code: HttpErrorCode): e is ThvError {
  return e instanceof ThvError && e.code === code
}

/** The client's fault, found before a handler could do its work; `status` is the answer. */
export class RequestError extends ThvError {
  readonly status: number

  constructor(code: 'request_body_encoding' | 'request_body_too_large' | 'request_body_too_slow', status: number, message: string) {
    super(code, message)
    this.status = status
  }
}
