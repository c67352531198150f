/** The small part of it that the test provider uses; the package brings no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export interface GrantContext {
    readonly oidc: { readonly params: Readonly<Record<string, string | undefined>>; readonly client: { readonly clientId: string } }
  }

  export class Provider {
    constructor(issuer: string, configuration: object)
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    on(event: 'grant.success', listener: (context: GrantContext) => void): this
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
  }
}
