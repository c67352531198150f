/**
 * `subject`: the token that was to be exchanged is not accepted, so its owner has to get another one. `refused`: the endpoint does not
 * issue a token for another reason, or answers with something that is none. `unavailable`: it could not be asked.
 */
export type TokenFailure = 'subject' | 'refused' | 'unavailable'

/**
 * Of an `unavailable`: `endpoint` means that nothing of the request was sent, so every other one would fail too. `request` means that this
 * one failed after it was sent; it may be the only one, for its sender chooses what it holds.
 */
export type FailureScope = 'endpoint' | 'request'

export interface FailureOptions {
  readonly scope?: FailureScope
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** No token was issued. The message is for logs: it holds no secret and nothing that the endpoint quotes. */
export class TokenRequestFailed extends Error {
  readonly kind: TokenFailure
  readonly scope: FailureScope
  /** For `unavailable`: when to ask again, as far as the endpoint said. */
  readonly retryAfterMs: number | undefined

  constructor(kind: TokenFailure, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'TokenRequestFailed'
    this.kind = kind
    this.scope = options.scope ?? 'request'
    this.retryAfterMs = options.retryAfterMs
  }
}
