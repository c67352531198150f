import { ThvError } from '@thv/kernel/errors'
import type { HttpErrorCode } from '../http-errors.ts'

/** A call to a backend that brought no complete answer. */
export class OutboundError extends ThvError {
  /** Whether the backend may have seen the request. Only what was not sent is safe to repeat without knowing what it does. */
  readonly sent: boolean
  /** Whether a part of the answer had come. */
  readonly answered: boolean

  constructor(code: HttpErrorCode, message: string, state: { sent: boolean; answered: boolean; cause?: unknown }) {
    const { sent, answered, cause } = state
    super(code, message, { ...(cause !== undefined && { cause }), details: { sent, answered, reason: systemCode(cause) } })
    this.sent = sent
    this.answered = answered
  }
}

const TEXT: Readonly<Partial<Record<HttpErrorCode, string>>> = {
  backend_connect_timeout: 'did not accept a connection in time',
  backend_dns: 'cannot be resolved',
  backend_protocol: 'did not answer in valid HTTP/1.1',
  backend_refused: 'refused the connection',
  backend_request_invalid: 'was not called: the request cannot be sent as it is',
  backend_reset: 'broke the connection',
  backend_timeout: 'did not answer in time',
  backend_tls: 'cannot be trusted',
  backend_unreachable: 'cannot be reached',
}

/** Names the origin and the system's code, not the path or a header: those may hold secrets. */
export function outboundError(cause: unknown, origin: string, state: { sent: boolean; answered: boolean }): ThvError {
  if (cause instanceof OutboundError) return cause
  const own = ownCode(cause)
  if (own !== undefined) return new OutboundError(own.code, own.message, { ...state, cause: own.cause })
  if (cause instanceof ThvError) return cause
  const code = systemCode(cause)
  if (code === 'UND_ERR_DESTROYED' || code === 'UND_ERR_CLOSED')
    return new ThvError('aborted', `${origin}: the connection pool was closed`, { cause, details: { ...state } })
  const kind = kindOf(cause, code, state.sent)
  return new OutboundError(kind, `${origin} ${TEXT[kind]}${code === undefined ? '' : ` (${code})`}`, { ...state, cause })
}

const KINDS: Readonly<Record<string, HttpErrorCode>> = {
  EAI_AGAIN: 'backend_dns',
  ENOTFOUND: 'backend_dns',
  ENODATA: 'backend_dns',
  ECONNREFUSED: 'backend_refused',
  EACCES: 'backend_unreachable',
  EADDRNOTAVAIL: 'backend_unreachable',
  EHOSTDOWN: 'backend_unreachable',
  EHOSTUNREACH: 'backend_unreachable',
  ENETDOWN: 'backend_unreachable',
  ENETUNREACH: 'backend_unreachable',
  EPERM: 'backend_unreachable',
  ETIMEDOUT: 'backend_connect_timeout',
  UND_ERR_CONNECT_TIMEOUT: 'backend_connect_timeout',
  UND_ERR_BODY_TIMEOUT: 'backend_timeout',
  UND_ERR_HEADERS_TIMEOUT: 'backend_timeout',
  UND_ERR_HEADERS_OVERFLOW: 'backend_protocol',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'backend_protocol',
  UND_ERR_INVALID_ARG: 'backend_request_invalid',
  UND_ERR_NOT_SUPPORTED: 'backend_request_invalid',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'backend_request_invalid',
  EPROTO: 'backend_tls',
}

/** OpenSSL's verdicts, which come without a common prefix. */
const TLS_CODE =
  /^(ERR_TLS_|ERR_SSL_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_|HOSTNAME_MISMATCH$)/

function kindOf(cause: unknown, code: string | undefined, sent: boolean): HttpErrorCode {
  if (cause instanceof Error && cause.name === 'HTTPParserError') return 'backend_protocol' // its code is often missing
  if (code === undefined) return 'backend_reset'
  if (code === 'ETIMEDOUT' && sent) return 'backend_reset' // an established connection that TCP gave up
  const kind = KINDS[code]
  if (kind !== undefined) return kind
  return TLS_CODE.test(code) ? 'backend_tls' : 'backend_reset'
}

/** The connector's own refusals know nothing of the request yet. */
function ownCode(cause: unknown): { code: HttpErrorCode; message: string; cause: unknown } | undefined {
  if (!(cause instanceof ThvError)) return undefined
  const { message } = cause
  for (const code of ['backend_blocked', 'backend_dns', 'backend_refused'] as const)
    if (cause.code === code) return { code, message, cause: cause.cause }
  return undefined
}

function systemCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
