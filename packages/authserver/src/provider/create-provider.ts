import type { Clock } from '@thv/kernel/clock'
import { parseDuration } from '@thv/kernel/duration'
import type { JsonObject } from '@thv/kernel/json'
import { type AuthServerConfig, upstreamScope } from '@thv/runconfig/auth-server-config'
import type { AuthStore } from '@thv/store/auth/auth-store'
import { errors, interactionPolicy, Provider, type ProviderClient, type ProviderContext } from 'oidc-provider'
import type { ServerSecrets } from '../keys/server-secrets.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import { cookieName } from '../login/browser-cookie.ts'
import { clientLabel } from '../login/client-label.ts'
import { errorPage } from '../login/pages.ts'
import { loginBase, PATHS } from '../paths/server-paths.ts'
import { addBusyAnswers } from './busy-answers.ts'
import { type LoginRecord, loginOf } from './login-record.ts'
import { createRecordAdapter } from './record-adapter.ts'
import { createRefreshIds } from './refresh-ids.ts'
import { addStructuredTokens } from './structured-tokens.ts'
import { addTokenExchange, type TokenExchangeOptions } from './token-exchange-grant.ts'
import { addTokenRequests, type Granted } from './token-requests.ts'

export interface ProviderOptions {
  readonly config: AuthServerConfig
  readonly store: AuthStore
  readonly keys: SigningKeys
  readonly secrets: ServerSecrets
  readonly clock: Clock
  readonly client: (id: string) => Promise<Record<string, unknown> | undefined>
  readonly exchange: TokenExchangeOptions
  /** `client`: its name. */
  readonly onLogin: (account: string, login: { readonly family: string; readonly client: string | undefined }) => Promise<void>
  readonly onGranted: (grant: Granted) => void
  /** `client`: its name. */
  readonly onRevoked: (client: string | undefined) => void
  readonly onReuse: (what: 'code' | 'refresh', family: string) => void
  readonly onServerError: (error: Error) => void
}

const INTERACTION_SECONDS = 600

export function createProvider(options: ProviderOptions): Provider {
  const { config, store, keys, secrets, clock } = options
  const lifespans = config.token_lifespans
  const seconds = (text: string) => Math.floor(parseDuration(text) / 1_000)
  const refreshSeconds = seconds(lifespans.refresh_token_lifespan)
  const accessSeconds = seconds(lifespans.access_token_lifespan)
  const familyMs = (refreshSeconds + accessSeconds) * 1_000
  const refreshMs = refreshSeconds * 1_000
  const isSecure = loginBase(config).startsWith('https:')
  const cookie = { httpOnly: true, sameSite: 'lax', signed: true, overwrite: true, secure: isSecure }
  const refreshIds = createRefreshIds(secrets, clock, refreshSeconds)
  const records = createRecordAdapter({ store, client: options.client, refreshIds, refreshMs, familyMs, onReuse: options.onReuse })
  const provider = new Provider(config.issuer, {
    adapter: records.adapter,
    jwks: { keys: keys.privateJwks },
    cookies: {
      keys: [...secrets.cookieKeys],
      names: {
        session: cookieName('thv_session', isSecure),
        interaction: cookieName('thv_interaction', isSecure),
        // The library gives it the path of the login, which the stronger prefix forbids.
        resume: `${isSecure ? '__Secure-' : ''}thv_resume`,
      },
      short: { ...cookie, path: '/' },
      long: { ...cookie, path: '/' },
    },
    routes: {
      authorization: PATHS.authorize,
      token: PATHS.token,
      revocation: PATHS.revoke,
      introspection: PATHS.introspect,
      jwks: PATHS.jwks,
    },
    scopes: knownScopes(config),
    claims: { openid: ['sub'], profile: ['name'], email: ['email'] },
    clientDefaults: { id_token_signed_response_alg: keys.alg, application_type: 'native', token_endpoint_auth_method: 'none' },
    enabledJWA: { idTokenSigningAlgValues: [...new Set(keys.privateJwks.map(({ alg }) => alg))] },
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    responseTypes: ['code'],
    allowOmittingSingleRegisteredRedirectUri: false,
    pkce: { required: () => true },
    rotateRefreshToken: () => true,
    issueRefreshToken: (_ctx: unknown, client: ProviderClient) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: () => false,
    revokeGrantPolicy: () => true,
    ttl: {
      AccessToken: accessSeconds,
      AuthorizationCode: seconds(lifespans.auth_code_lifespan),
      RefreshToken: refreshSeconds,
      Grant: refreshSeconds,
      IdToken: accessSeconds,
      Interaction: INTERACTION_SECONDS,
      Session: INTERACTION_SECONDS,
    },
    conformIdTokenClaims: false,
    findAccount: (_ctx: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    loadExistingGrant: (ctx: ProviderContext) => grantFor(ctx, { store, refreshMs, onLogin: options.onLogin }),
    extraTokenClaims: (_ctx: unknown, token: { grantId?: string }) => tokenClaims(token.grantId, store),
    interactions: {
      policy: [loginEveryTime()],
      url: (_ctx: unknown, { uid }: { uid: string }) => `${loginBase(config)}${PATHS.login}${uid}`,
    },
    renderError: (ctx: ProviderContext, out: { error: string; error_description?: string }) => {
      const page = errorPage(out.error_description ?? out.error)
      ctx.type = 'html'
      for (const [name, value] of Object.entries(page.headers)) ctx.set(name, value)
      ctx.body = page.html
    },
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      revocation: {
        enabled: true,
        allowedPolicy: (_ctx: unknown, client: ProviderClient, token: { clientId: string }) => token.clientId === client.clientId,
      },
      introspection: { enabled: true, allowedPolicy: (_ctx: unknown, client: ProviderClient) => client.clientAuthMethod !== 'none' },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => defaultResource(config),
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx: ProviderContext, resource: string) => resourceServer(ctx, resource, { config, keys, accessSeconds }),
      },
    },
  })
  provider.proxy = true
  provider.silent = true
  provider.on('server_error', (_ctx, error) => options.onServerError(error))
  addBusyAnswers(provider)
  addTokenRequests(provider, records, options.onGranted)
  provider.on('grant.revoked', (ctx) => {
    if (ctx.path === PATHS.revoke) options.onRevoked(ctx.oidc.client?.clientName)
  })
  if (config.delegate_clients.length > 0) addTokenExchange(provider, options.exchange)
  provider.RefreshToken.prototype.generateTokenId = function () {
    return refreshIds.make(this.grantId)
  }
  addStructuredTokens(provider, { keys, store, issuer: config.issuer, familyMs, clock, onRevoked: options.onRevoked })
  return provider
}

/** No login is taken over from another one: the upstream provider remembers its users, and consent is ours. */
function loginEveryTime(): object {
  const { Prompt, Check } = interactionPolicy
  return new Prompt(
    { name: 'login', requestable: true },
    () => ({}),
    new Check('login', 'the user has to log in', 'login_required', (ctx) => ctx.oidc.result?.['login'] === undefined),
  )
}

async function grantFor(
  ctx: ProviderContext,
  { store, refreshMs, onLogin }: { store: AuthStore; refreshMs: number; onLogin: ProviderOptions['onLogin'] },
): Promise<object | undefined> {
  const { client, account, params, result, provider, resourceServers } = ctx.oidc
  const login = result?.['thv'] as LoginRecord | undefined
  if (client === undefined || account === undefined || login === undefined) return undefined
  const scope = grantedScope(params?.['scope'] ?? '', login)
  const grant = new provider.Grant({ clientId: client.clientId, accountId: account.accountId })
  grant.addOIDCScope(scope)
  for (const resource of Object.keys(resourceServers)) grant.addResourceScope(resource, scope)
  const family = await grant.save()
  await store.put('login', family, { value: login as unknown as JsonObject, ttlMs: refreshMs, family })
  await onLogin(account.accountId, { family, client: clientLabel(client.clientId, client.clientName) })
  return grant
}

/** Without the scopes of providers where the user did not log in. */
function grantedScope(asked: string, { providers }: LoginRecord): string {
  const granted = new Set(providers.map(upstreamScope))
  const prefix = upstreamScope('')
  return asked
    .split(' ')
    .filter((scope) => !scope.startsWith(prefix) || granted.has(scope))
    .join(' ')
}

/** `tsid` names the family: what was logged in to, and what revocation ends. */
async function tokenClaims(family: string | undefined, store: AuthStore): Promise<object> {
  if (family === undefined) return {}
  const { name, email } = (await loginOf(family, store)) ?? {}
  return { tsid: family, ...(name !== undefined && { name }), ...(email !== undefined && { email }) }
}

/** Those of the configuration, and those that the challenge of a call without a token of a provider names. */
function knownScopes({ scopes_supported: supported, upstreams }: AuthServerConfig): string[] {
  return [...supported, ...upstreams.map(({ name }) => upstreamScope(name))]
}

function defaultResource({ allowed_audiences: audiences }: AuthServerConfig): string {
  const [only, ...others] = audiences
  if (only === undefined || others.length > 0) throw new errors.InvalidTarget('resource is required: this server issues tokens for several')
  return only
}

function resourceServer(
  ctx: ProviderContext,
  resource: string,
  { config, keys, accessSeconds }: { config: AuthServerConfig; keys: SigningKeys; accessSeconds: number },
): object {
  const audience = config.allowed_audiences.find((allowed) => allowed === resource || URL.parse(allowed)?.href === resource)
  if (audience === undefined) throw new errors.InvalidTarget('this server issues no tokens for the requested resource')
  const known = knownScopes(config)
  const unknown = (ctx.oidc.params?.['scope'] ?? '').split(' ').filter((scope) => scope !== '' && !known.includes(scope))
  if (unknown.length > 0) throw new errors.InvalidScope('requested scope is not supported', unknown.join(' '))
  return {
    scope: known.join(' '),
    audience,
    accessTokenTTL: accessSeconds,
    accessTokenFormat: 'jwt',
    jwt: { sign: { alg: keys.alg, kid: keys.kid } },
  }
}
