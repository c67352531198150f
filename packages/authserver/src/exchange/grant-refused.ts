export type GrantError =
  | 'invalid_request'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'unauthorized_client'
  | 'temporarily_unavailable'

/** Why no token is issued. The description reaches the client; the reason is for the log and never holds a token. */
export class GrantRefused extends Error {
  override readonly name = 'GrantRefused'
  readonly error: GrantError
  readonly reason: string

  constructor(error: GrantError, description: string, reason = description) {
    super(description)
    this.error = error
    this.reason = reason
  }
}
