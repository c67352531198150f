import type { IncomingMessage } from 'node:http'
import { TOKEN_EXCHANGE_GRANT } from './token-exchange.ts'

export interface OidcTokenOptions {
  /** Also `sub`; without it the subject is the client. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly audience?: string
  readonly format?: 'jwt' | 'opaque'
  readonly expiresInSeconds?: number
}

export const OIDC_PATHS = {
  discovery: '/.well-known/openid-configuration',
  jwks: '/jwks',
  token: '/token',
  introspection: '/token/introspection',
  revocation: '/token/revocation',
  registration: '/reg',
  authorization: '/auth',
} as const

export interface HookContext {
  readonly req: IncomingMessage
  readonly oidc: {
    readonly provider: { readonly Grant: new (of: { clientId: string; accountId: string }) => Grant }
    readonly client: { readonly clientId: string }
    readonly session: { readonly accountId: string }
    readonly params: Readonly<Record<string, string | undefined>>
  }
}

interface LoginClient {
  readonly clientId: string
  grantTypeAllowed(type: string): boolean
}

interface Grant {
  addOIDCScope(scope: string): void
  addResourceScope(resource: string, scope: string): void
  save(): Promise<string>
}

export interface OidcConfigurationOptions {
  readonly keys: readonly object[]
  readonly adapter: (kind: string) => object
  readonly client: { readonly clientId: string; readonly clientSecret: string }
  readonly scopes: readonly string[]
  readonly wishOf: (ctx: HookContext) => OidcTokenOptions
  readonly accessTokenSeconds: () => number
  readonly rotatesRefreshTokens: boolean
  readonly refreshTokens: RefreshTokenRule
}

/** Logins that get a refresh token: all, none, or the first of each user at each client. */
export type RefreshTokenHabit = 'always' | 'never' | 'first'

type RefreshTokenRule = (clientId: string, accountId: string) => boolean

export function refreshTokenRule(habit: RefreshTokenHabit): RefreshTokenRule {
  const known = new Set<string>()
  return (clientId, accountId) => {
    const login = `${clientId} ${accountId}`
    const isFirst = !known.has(login)
    known.add(login)
    return habit === 'always' || (habit === 'first' && isFirst)
  }
}

/** Of the provider: one client with a secret, and public ones that register themselves and must use PKCE. */
export function oidcConfiguration(options: OidcConfigurationOptions): object {
  const { keys, adapter, client, scopes, wishOf, accessTokenSeconds, rotatesRefreshTokens, refreshTokens } = options
  const { discovery: _, ...routes } = OIDC_PATHS
  return {
    adapter,
    jwks: { keys },
    cookies: { keys: ['only-for-tests'] },
    clients: [
      {
        client_id: client.clientId,
        client_secret: client.clientSecret,
        grant_types: ['client_credentials', TOKEN_EXCHANGE_GRANT],
        response_types: [],
        redirect_uris: [],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    scopes: ['openid', 'offline_access', ...scopes],
    pkce: { required: () => true },
    routes,
    ttl: {
      ClientCredentials: (ctx: HookContext) => wishOf(ctx).expiresInSeconds ?? 600,
      AccessToken: accessTokenSeconds,
      ...{ Interaction: 600, Session: 3_600, Grant: 3_600, RefreshToken: 3_600 },
    },
    extraTokenClaims: (ctx: HookContext) => wishOf(ctx).claims ?? {},
    findAccount: (_ctx: HookContext, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    loadExistingGrant: grantEverything,
    ...(!rotatesRefreshTokens && { rotateRefreshToken: false }),
    issueRefreshToken: (_ctx: HookContext, client: LoginClient, { accountId }: { accountId: string }) =>
      client.grantTypeAllowed('refresh_token') && refreshTokens(client.clientId, accountId),
    formats: {
      customizers: {
        jwt: (ctx: HookContext, _token: unknown, parts: { payload: Record<string, unknown> }) => {
          const subject = wishOf(ctx).claims?.['sub']
          if (subject !== undefined) parts.payload['sub'] = subject
          return parts
        },
      },
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true, allowedPolicy: () => true },
      introspection: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (ctx: HookContext) => {
          const { audience = 'tests', format = 'jwt', expiresInSeconds = accessTokenSeconds() } = wishOf(ctx)
          return {
            ...{ scope: scopes.join(' '), audience, accessTokenFormat: format, accessTokenTTL: expiresInSeconds },
            jwt: { sign: { alg: 'ES256' } },
          }
        },
      },
    },
  }
}

/** The user who has logged in agrees to whatever is asked for. */
async function grantEverything({ oidc }: HookContext): Promise<Grant> {
  const { scope = '', resource } = oidc.params
  const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId })
  grant.addOIDCScope(scope)
  if (resource !== undefined) grant.addResourceScope(resource, scope)
  await grant.save()
  return grant
}
