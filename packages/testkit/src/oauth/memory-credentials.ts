import { signIn } from '../oidc/sign-in.ts'
import { type OAuthClientOptions, REDIRECT_URI } from './oauth-client.ts'

/**
 * Keeps what a client of the TypeScript SDKs has to remember, and is the browser and its user. The SDKs declare the same members with types
 * of their own, so values pass through as they come.
 */
export class MemoryCredentials {
  readonly redirectUrl = REDIRECT_URI
  readonly clientMetadata
  readonly visits: URL[] = []
  readonly #user: string
  /** Where the user came back to; the client has not used it yet. */
  #landed: URL | undefined
  #client: unknown
  #tokens: unknown
  #verifier = ''
  #discovery: unknown

  constructor({ user, grantTypes }: OAuthClientOptions) {
    this.#user = user
    this.clientMetadata = {
      client_name: 'test',
      redirect_uris: [REDIRECT_URI],
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
    this.#landed = await signIn(url, { user: this.#user, redirectUri: REDIRECT_URI })
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
