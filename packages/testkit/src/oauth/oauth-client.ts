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

export interface OAuthClientOptions {
  /** Of the MCP endpoint. */
  readonly url: string
  readonly user: string
  readonly era: 'legacy' | 'modern'
  /** Grant types that the client registers for. */
  readonly grantTypes: readonly string[]
  /** File with the authority of the provider, for a client in a process of its own. Those in this process trust what it trusts. */
  readonly caFile?: string
}

/** It is never called: `signIn` stops before it. */
export const REDIRECT_URI = 'http://127.0.0.1:8765/callback'
