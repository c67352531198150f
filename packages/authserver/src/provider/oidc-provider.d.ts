/** The part of it that is used; the package brings no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export interface ProviderClient {
    readonly clientId: string
    readonly clientName?: string
    readonly redirectUris: readonly string[]
    readonly clientAuthMethod: string
    readonly scope?: string
    grantTypeAllowed(type: string): boolean
  }

  export interface ProviderGrant {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(ttlSeconds?: number): Promise<string>
  }

  export interface ProviderInteraction {
    readonly uid: string
    readonly params: Readonly<Record<string, unknown>>
    readonly returnTo: string
    readonly exp: number
    result?: object
    persist(): Promise<string>
  }

  export interface ProviderContext {
    readonly path: string
    status: number
    type: string
    body: unknown
    set(name: string, value: string): void
    readonly req: IncomingMessage
    readonly oidc: {
      readonly route: string
      readonly provider: Provider
      readonly client?: ProviderClient
      readonly account?: { readonly accountId: string }
      readonly session?: { readonly accountId?: string }
      readonly params?: Readonly<Record<string, string | undefined>>
      readonly result?: Readonly<Record<string, unknown>>
      readonly resourceServers: Readonly<Record<string, unknown>>
    }
  }

  export interface GrantContext {
    readonly oidc: { readonly params: Readonly<Record<string, string | undefined>>; readonly client: { readonly clientId: string } }
  }

  export class Provider {
    constructor(issuer: string, configuration: object)
    proxy: boolean
    silent: boolean
    readonly Grant: new (of: {
      clientId: string
      accountId: string
    }) => ProviderGrant
    readonly RefreshToken: { readonly prototype: { grantId: string; generateTokenId(): string } }
    readonly Client: { find(id: string): Promise<ProviderClient | undefined> }
    readonly Interaction: { find(uid: string): Promise<ProviderInteraction | undefined> }
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    use(middleware: (ctx: ProviderContext, next: () => Promise<void>) => Promise<void>): this
    on(event: 'grant.success', listener: (context: GrantContext) => void): this
    on(event: string, listener: (context: ProviderContext, error: Error) => void): this
    registerGrantType(
      name: string,
      handler: (ctx: ProviderContext, next: () => Promise<void>) => Promise<void>,
      params?: readonly string[],
      dupes?: readonly string[],
    ): void
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<ProviderInteraction>
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
  }

  interface ErrorClass {
    new (description?: string, detail?: string): Error & { error: string }
  }
  export const errors: Readonly<
    Record<
      'InvalidGrant' | 'InvalidTarget' | 'InvalidScope' | 'InvalidClient' | 'InvalidRequest' | 'AccessDenied' | 'TemporarilyUnavailable',
      ErrorClass
    >
  >

  export const interactionPolicy: {
    readonly Prompt: new (info: { name: string; requestable: boolean }, details: () => object, ...checks: object[]) => object
    readonly Check: new (reason: string, description: string, error: string, check: (ctx: ProviderContext) => boolean) => object
  }
}
