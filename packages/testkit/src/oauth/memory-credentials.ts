import { signIn } from '../oidc/sign-in.ts'
import { type OAuthClientOptions, REDIRECT_URI } from './oauth-client.ts'

/**
 * Keeps what a client of the TypeScript SDKs has to remember, and is the browser and its user. The SDKs declare the same members with types
 * of their own, so values pass through as they come.
 */
export class MemoryCredentials {
  readonly redirectUrl: string
  readonly clientMetadata
  readonly clientMetadataUrl: string | undefined
  readonly visits: URL[] = []
  readonly #user: string
  readonly #cookies: Map<string, string> | undefined
  /** Where the user came back to; the client has not used it yet. */
  #landed: URL | undefined
  #client: unknown
  #tokens: unknown
  #verifier = ''
  #discovery: unknown

  constructor({ user, grantTypes, identity, cookies, redirectUri = REDIRECT_URI }: OAuthClientOptions) {
    this.#user = user
    this.#cookies = cookies
    this.redirectUrl = redirectUri
    this.clientMetadataUrl = identity !== undefined && 'metadataUrl' in identity ? identity.metadataUrl : undefined
    if (identity !== undefined && 'clientId' in identity) this.#client = { client_id: identity.clientId }
    this.clientMetadata = {
      client_name: 'test',
      redirect_uris: [redirectUri],
      grant_types: [...grantTypes],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }
  }

  takeLanding(): URL | undefined {
    const landed = this.#landed
    this.#landed = undefined
    return landed
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    this.visits.push(url)
    const cookies = this.#cookies
    this.#landed = await signIn(url, { user: this.#user, redirectUri: this.redirectUrl, ...(cookies !== undefined && { cookies }) })
  }

  clientInformation(): unknown {
    return this.#client
  }

  saveClientInformation(client: unknown): void {
    this.#client = client
  }

  tokens(): unknown {
    return this.#tokens
  }

  saveTokens(tokens: unknown): void {
    this.#tokens = tokens
  }

  codeVerifier(): string {
    return this.#verifier
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }

  discoveryState(): unknown {
    return this.#discovery
  }

  saveDiscoveryState(state: unknown): void {
    this.#discovery = state
  }
}
