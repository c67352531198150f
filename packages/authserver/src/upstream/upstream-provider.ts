import type { UpstreamRefresher, UpstreamTokenSet } from '../upstream-tokens.ts'

/** The user, as a provider identifies it. */
export interface UpstreamIdentity {
  readonly subject: string
  readonly name?: string | undefined
  readonly email?: string | undefined
}

/** Kept between the redirect to a provider and its callback. */
export interface UpstreamAttempt {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** A provider where users log in. Methods reject with `UpstreamRefused` for its word, and `auth_provider_unavailable` when it gives none. */
export interface UpstreamProvider extends UpstreamRefresher {
  readonly redirectUri: string
  /** Absent: a provider with OAuth 2 only has none. */
  readonly issuer?: string | undefined
  /** Where the login page is. For pages that send a form there. */
  origin(): Promise<string>
  authorizationUrl(attempt: UpstreamAttempt): Promise<string>
  /** The issuer that a callback must name (RFC 9207), if the provider says that it does. */
  responseIssuer(): Promise<string | undefined>
  redeem(code: string, attempt: UpstreamAttempt): Promise<UpstreamTokenSet & { readonly answer: Readonly<Record<string, unknown>> }>
  /** Judges the tokens and tells who the user is. */
  identify(
    tokens: UpstreamTokenSet & { readonly answer: Readonly<Record<string, unknown>> },
    attempt: UpstreamAttempt,
  ): Promise<UpstreamIdentity>
}
