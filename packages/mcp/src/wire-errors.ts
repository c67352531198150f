import { type WireErrorCode, wireErrors } from '@thv/kernel/error-registry'
import { HEADER_TITLES } from './header-names.ts'
import {
  type ErrorObject,
  errorResponse,
  type JsonObject,
  type JsonRpcResponse,
  type RequestId,
  resultResponse,
  serialise,
} from './json-rpc.ts'
import { SERVED_VERSIONS } from './versions.ts'

/** Why a request is not served, before it is known in which form the answer goes out. */
export interface Rejection {
  readonly error: WireErrorCode
  readonly httpStatus: number
  /** Added to the registered text. Shown to the client, so nothing of the inside may stand in it. */
  readonly detail?: string
  readonly data?: JsonObject
  readonly headers?: Readonly<Record<string, string>>
  /** Reaches the client as a JSON-RPC error with status 200, as the method's handler would have sent it. Otherwise as an HTTP error. */
  readonly inBand?: true
  /** Answers the request instead of an error, such as with a question to the user. Always with `inBand`. */
  readonly result?: JsonObject
  /** For a client that shows links to its user: opening them removes the reason. They stand in no answer unless `withLinks` puts them there. */
  readonly links?: readonly LoginLink[]
}

/** A page that the user opens, and why. */
export interface LoginLink {
  readonly url: string
  readonly message: string
}

export type RejectionOptions = Partial<Omit<Rejection, 'error'>>

export function reject(error: WireErrorCode, options: RejectionOptions = {}): Rejection {
  return { error, httpStatus: wireErrors[error].httpStatus, ...options }
}

export function isRejection(value: object): value is Rejection {
  return 'error' in value && 'httpStatus' in value
}

/** A whole HTTP answer. */
export interface WireAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The answer before anything else was sent. Without an id the error has none, it is never null. */
export function answerOf(rejection: Rejection, id?: RequestId): WireAnswer {
  return {
    status: rejection.httpStatus,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...rejection.headers },
    body: serialise(responseOf(rejection, id)),
  }
}

/** The message that answers the request. */
export function responseOf(rejection: Rejection, id: RequestId | undefined): JsonRpcResponse {
  const { result } = rejection
  return result === undefined || id === undefined ? errorResponse(id, errorObjectOf(rejection)) : resultResponse(id, result)
}

/** The error alone, for a stream that has begun already, or a pipe. */
export function errorObjectOf({ error, detail, data }: Rejection): ErrorObject {
  const { jsonRpcCode: code, text } = wireErrors[error]
  const message = detail === undefined ? text : `${text}: ${detail}`
  return data === undefined ? { code, message } : { code, message, data }
}

/** -32022 lists all that is served, legacy revisions too, so that a client finds one that both speak. */
export function unsupportedVersion(requested: string, supported: readonly string[] = SERVED_VERSIONS): Rejection {
  return reject('unsupported_protocol_version', { data: { supported, requested } })
}

/** `required` has the form of ClientCapabilities, such as `{ sampling: {} }`; it is not a list. */
export function missingCapability(required: JsonObject): Rejection {
  return reject('missing_client_capability', { data: { requiredCapabilities: required } })
}

/** `header` as people write it. */
export function headerMismatch(header: string, detail: string): Rejection {
  return reject('header_mismatch', { detail: `${header} ${detail}`, data: { header } })
}

export function methodNotAllowed(allow: readonly string[]): Rejection {
  return reject('method_not_allowed', { headers: { allow: allow.join(', ') } })
}

/** Whatever has status 503 says when to come back, in whole seconds, at least one. */
export function retryLater(error: 'draining' | 'backend_unavailable' | 'pipeline_full', afterMs: number): Rejection {
  return reject(error, { headers: { 'retry-after': String(Math.max(1, Math.ceil(afterMs / 1000))) } })
}

export function sessionRequired(): Rejection {
  return reject('session_required', { detail: `header ${HEADER_TITLES.sessionId} is missing` })
}
