import { isThvError, ThvError } from '@thv/kernel/errors'
import type { KubeStatus } from '../objects/types.ts'

/** The request, for messages: `get pods default/web`. */
export interface CallName {
  readonly verb: string
  readonly target: string
  /** Absent for a collection and for a path. */
  readonly object?: CallObject | undefined
}

export interface CallObject {
  readonly kind: string
  readonly namespace?: string | undefined
  readonly name: string
  readonly subresource?: string | undefined
}

export interface KubeApiErrorInit {
  readonly call: CallName
  readonly status: number
  readonly body: KubeStatus | undefined
  /** Stands in when the body is not a Status. */
  readonly summary?: string | undefined
  readonly retryAfterSeconds?: number | undefined
}

export type KubeStatusCause = Readonly<{ reason?: string; message?: string; field?: string }>

/** The server understood the request and said no; or we did, before sending what it would refuse (`badRequest`). */
export class KubeApiError extends ThvError {
  readonly status: number
  /** The machine-readable reason, such as `NotFound`; empty when the answer was not a Status. */
  readonly reason: string
  readonly retryAfterSeconds: number | undefined
  readonly causes: readonly KubeStatusCause[]
  /** The object that was asked for or written, and what was to be done with it. */
  readonly object: CallObject | undefined
  readonly verb: string
  /** The words of the server alone. They may quote the object. */
  readonly said: string

  constructor(init: KubeApiErrorInit) {
    const reason = init.body?.reason ?? ''
    const said = init.body?.message || init.summary || 'no message'
    const { verb, target } = init.call
    super('kube_status', `${verb} ${target}: ${said} (${[init.status, reason].filter(Boolean).join(' ')})`, {
      details: { status: init.status, reason, verb, target },
    })
    this.status = init.status
    this.reason = reason
    this.retryAfterSeconds = init.retryAfterSeconds ?? init.body?.details?.retryAfterSeconds
    this.causes = init.body?.details?.causes ?? []
    this.object = init.call.object
    this.verb = verb
    this.said = said
  }
}

export const isNotFound = (e: unknown): boolean => hasStatus(e, 404)
/** 409 that is not `AlreadyExists`: a stale resourceVersion, a failed precondition, or fields owned by another manager. */
export const isConflict = (e: unknown): boolean => hasStatus(e, 409) && !isAlreadyExists(e)
export const isAlreadyExists = (e: unknown): boolean => e instanceof KubeApiError && e.reason === 'AlreadyExists'
export const isForbidden = (e: unknown): boolean => hasStatus(e, 403)
export const isInvalid = (e: unknown): boolean => hasStatus(e, 422)
export const isTooManyRequests = (e: unknown): boolean => hasStatus(e, 429)
/** The resourceVersion or continue token is too old for the server: list again. */
export const isExpired = (e: unknown): boolean => isThvError(e, 'kube_watch_expired') || isGone(e)
export const isGone = (e: unknown): boolean => hasStatus(e, 410)

/** For a request that must not even be sent: a terminal error, as the server's own 400 would be. */
export function badRequest(target: string, message: string): KubeApiError {
  return new KubeApiError({ call: { verb: 'address', target }, status: 400, body: { reason: 'BadRequest', message } })
}

/** The error of `watch` and `listPages` for a version the server no longer has, whichever way it said so. */
export function expiredError(cause: KubeApiError): ThvError {
  return new ThvError('kube_watch_expired', cause.message, { cause })
}

function hasStatus(e: unknown, status: number): boolean {
  return e instanceof KubeApiError && e.status === status
}
