import type { Claims } from '@thv/catalog/sources/fetch/source-config'

export interface AuthConfig {
  readonly mode: 'anonymous' | 'oauth'
  /** On top of the built-in ones. */
  readonly publicPaths: readonly string[]
  /** In mode anonymous: path of a file with the token that writing needs. Undefined: everybody may write. */
  readonly writeTokenFile?: string
  /** There in mode oauth. */
  readonly oauth?: OAuthConfig
  /** Undefined: who is authenticated may do everything, and claims gate nothing. */
  readonly authz?: AuthzConfig
}

export interface OAuthConfig {
  readonly resourceUrl?: string
  /** For the metadata of RFC 9728 only. */
  readonly scopesSupported?: readonly string[]
  readonly realm: string
  /** Tried in order. */
  readonly providers: readonly ProviderConfig[]
}

export interface ProviderConfig {
  readonly name: string
  readonly issuerUrl: string
  readonly audience: string
  readonly jwksUrl?: string
  readonly introspectionUrl?: string
  readonly clientId?: string
  readonly clientSecretFile?: string
  readonly caCertPath?: string
  /** Bearer for discovery and keys. */
  readonly authTokenFile?: string
  readonly allowPrivateIP: boolean
}

export const roles = ['superAdmin', 'manageSources', 'manageRegistries', 'manageEntries'] as const
export type Role = (typeof roles)[number]

/** A list of claim sets per role: one of them must match. */
export interface AuthzConfig {
  readonly roles: { readonly [role in Role]?: readonly Claims[] }
}
