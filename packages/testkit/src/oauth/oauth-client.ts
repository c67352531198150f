/** A tool's result as far as the tests look at it. */
export interface CallResult {
  readonly content: readonly { readonly type: string; readonly text?: string }[]
}

/** An official client that logs its user in by itself, whenever the server asks for it. */
export interface OAuthClient extends AsyncDisposable {
  /** Addresses of the authorization endpoint that the user was sent to. */
  readonly visits: readonly URL[]
  tools(): Promise<string[]>
  call(tool: string, args?: Readonly<Record<string, unknown>>): Promise<CallResult>
}

/** `metadataUrl`: of its metadata document. `clientId`: of a client that the application was configured with. */
export type ClientIdentity = { readonly metadataUrl: string } | { readonly clientId: string }

export interface OAuthClientOptions {
  /** Of the MCP endpoint. */
  readonly url: string
  readonly user: string
  readonly era: 'legacy' | 'modern'
  /** Where the user comes back to; on loopback. */
  readonly redirectUri?: string
  /** Grant types that the client registers for. */
  readonly grantTypes: readonly string[]
  /** The client at the authorization server. It registers itself if absent. */
  readonly identity?: ClientIdentity
  /** Cookies of a browser that is used more than once. Without them each login has a browser of its own. */
  readonly cookies?: Map<string, string>
  /** File with the authority of the provider, for a client in a process of its own. Those in this process trust what it trusts. */
  readonly caFile?: string
}

/** It is never called: `signIn` stops before it. */
export const REDIRECT_URI = 'http://127.0.0.1:8765/callback'
