import { ThvError } from '@thv/kernel/errors'

/** An authorization server did not issue a token. `oauthError`: the error code that it answered with (RFC 6749 §5.2). */
export class LoginFailed extends ThvError {
  readonly oauthError: string | undefined

  constructor(message: string, options: { readonly oauthError?: string | undefined; readonly cause?: unknown } = {}) {
    super('login_failed', message, options.cause === undefined ? {} : { cause: options.cause })
    this.oauthError = options.oauthError
  }
}

const ERROR_CODE = /^[\x20\x21\x23-\x5b\x5d-\x7e]{1,64}$/

/** An error code of OAuth as it may stand in a message; undefined for anything else. */
export function errorCodeOf(value: unknown): string | undefined {
  return typeof value === 'string' && ERROR_CODE.test(value) ? value : undefined
}
