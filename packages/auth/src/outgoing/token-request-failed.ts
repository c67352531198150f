/**
 * `subject`: the token that was to be exchanged is not accepted, so its owner has to get another one. `refused`: the endpoint does not
 * issue a token for another reason, or answers with something that is none. `unavailable`: it could not be asked.
 */
export type TokenFailure = 'subject' | 'refused' | 'unavailable'

/** No token was issued. The message is for logs: it holds no secret and nothing that the endpoint quotes. */
export class TokenRequestFailed extends Error {
  readonly kind: TokenFailure
  /** For `unavailable`: when to ask again, as far as the endpoint said. */
  readonly retryAfterMs: number | undefined

  constructor(kind: TokenFailure, message: string, options: { retryAfterMs?: number | undefined; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'TokenRequestFailed'
    this.kind = kind
    this.retryAfterMs = options.retryAfterMs
  }
}
