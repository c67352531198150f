export { UpstreamRefused } from './upstream/upstream-refused.ts'

/** The tokens of one user at one upstream provider, as its token endpoint answered. */
export interface UpstreamTokenSet {
  readonly accessToken: string
  /** Absent: the answer had none, so the one before stays good. */
  readonly refreshToken?: string | undefined
  readonly idToken?: string | undefined
  /** Epoch milliseconds. Absent: the provider did not say. */
  readonly expiresAt?: number | undefined
  readonly scope?: string | undefined
}

/** One row of the vault. */
export interface UpstreamKey {
  /** The user, as in `sub` of our tokens. */
  readonly account: string
  /** Name of the provider in the configuration. */
  readonly provider: string
}

export interface UpstreamLogin extends UpstreamKey {
  /** The user at the provider. */
  readonly subject: string
  readonly tokens: UpstreamTokenSet
  /** Of the client that we are at the provider: tokens of another generation cannot be refreshed. */
  readonly generation: string
}

/**
 * `usable`: send it. `missing`: the user has not logged in there. `ended`: no longer refreshable, the user must log in again.
 * `unavailable`: the provider or the store does not answer now.
 */
export type UpstreamTokenResult =
  | { readonly kind: 'usable'; readonly accessToken: string; readonly idToken?: string | undefined }
  | { readonly kind: 'missing' | 'ended' }
  | { readonly kind: 'unavailable'; readonly retryAfterMs: number }

/** Where tokens of upstream providers lie, by (account, provider). */
export interface UpstreamTokens extends AsyncDisposable {
  /** Resolves when the tokens are stored. A set without a refresh token keeps the one of the same subject and generation. */
  save(login: UpstreamLogin): Promise<void>
  /** Synchronous when nothing has to be asked. */
  use(key: UpstreamKey): UpstreamTokenResult | Promise<UpstreamTokenResult>
  /** A backend rejected this token: the next `use` gives another one, or says that there is none. */
  rejected(key: UpstreamKey, accessToken: string): void
  /** A call of this family failed and only a login helps: the family is not refreshed again, so that its client gets there. */
  needsLogin(family: string, provider: string): void
  /** The user connected the provider for this family after its login. */
  join(family: string, provider: string): Promise<void>
  /** Whether the family logged in to the provider or has joined it. A promise only where it is not near; it rejects when the store is away. */
  hasJoined(family: string, provider: string): boolean | Promise<boolean>
  /** A link for this user alone, good once and for a short while, that connects the provider for the family. */
  connectUrl(key: UpstreamKey, family: string): string | undefined
  /** Names of the providers with a row, for the account page. */
  connected(account: string): Promise<readonly string[]>
  remove(key: UpstreamKey): Promise<void>
}

/** How the vault refreshes; one for each configured provider. */
export interface UpstreamRefresher {
  readonly provider: string
  readonly generation: string
  /** To be awaited before `generation` is read, where the client is registered by ourselves. Rejects as `refresh` does. */
  prepare?(): Promise<void>
  /**
   * Rejects with `auth_provider_unavailable` when the provider could not be asked or failed, and with `UpstreamRefused` when it will not
   * take this refresh token again.
   */
  refresh(refreshToken: string, signal: AbortSignal): Promise<UpstreamTokenSet>
  /**
   * Of an ID token that came with a refresh, after the tokens were stored. `invalid`: it proves nothing, and is not kept. `other user`: the
   * tokens belong to somebody else.
   */
  judge?(idToken: string, subject: string): Promise<'same user' | 'other user' | 'invalid'>
}
