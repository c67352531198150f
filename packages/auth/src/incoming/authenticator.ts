/** The caller, as far as a token identifies it. */
export interface Identity {
  readonly subject: string
  readonly issuer: string
  /** Name of the provider that vouches for it. */
  readonly provider: string
  /** All claims of the token, or of its introspection. */
  readonly claims: { readonly [name: string]: unknown }
  /** `name`, else `preferred_username`, else `email`. */
  readonly displayName?: string
  /** Epoch milliseconds; nothing may be cached longer. */
  readonly expiresAt?: number
}

export type AuthenticationResult =
  | { readonly ok: true; readonly identity: Identity }
  | { readonly ok: false; readonly problem: AuthenticationProblem }

/** The client's mistake (a 401 with a challenge), or ours (a 503: no provider could be asked). Texts are safe for clients. */
export type AuthenticationProblem =
  | { readonly kind: 'missing' | 'malformed'; readonly code: 'invalid_request'; readonly text: string }
  | { readonly kind: 'rejected'; readonly code: 'invalid_token'; readonly text: string }
  | { readonly kind: 'unavailable'; readonly code: 'temporarily_unavailable'; readonly text: string; readonly retryAfterSeconds: number }

export interface Authenticator extends AsyncDisposable {
  /** Takes the whole `Authorization` header. Synchronous when the token is in the cache: this is the hot path. */
  authenticate(authorization: string | undefined): AuthenticationResult | Promise<AuthenticationResult>
}
