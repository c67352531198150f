import type { VerificationKey } from '@thv/auth/incoming/jwks'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Exchange } from '@thv/http/server/exchange'
import type { Clock, Timer } from '@thv/kernel/clock'
import { parseDuration } from '@thv/kernel/duration'
import { errorMessage } from '@thv/kernel/errors'
import { type AuthServerConfig, callbackPath, type UpstreamConfig, upstreamScope } from '@thv/runconfig/auth-server-config'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { RecordCipher } from '@thv/store/redis/record-cipher'
import type { Log } from '@thv/telemetry/log'
import { createDocumentFetch, createMetadataDocuments } from './clients/metadata-documents.ts'
import { createSealedClients } from './clients/sealed-clients.ts'
import { createDelegateClients } from './exchange/delegate-clients.ts'
import type { ExchangeDeps } from './exchange/token-exchange.ts'
import { createTrustedIssuers } from './exchange/trusted-issuers.ts'
import { ephemeralServerSecrets, loadServerSecrets } from './keys/server-secrets.ts'
import { ephemeralSigningKeys, loadSigningKeys, type SigningKeys } from './keys/signing-keys.ts'
import { createAccount } from './login/account.ts'
import { createAccountSessions } from './login/account-sessions.ts'
import { createConnect } from './login/connect.ts'
import { createConnectLinks } from './login/connect-links.ts'
import { createConsents } from './login/consents.ts'
import { createDirectLogin } from './login/direct-login.ts'
import { createLoginFlow } from './login/login-flow.ts'
import { createLoginSessions } from './login/login-session.ts'
import { createUpstreamWalk } from './login/upstream-walk.ts'
import { LoginEvents, type LoginListener } from './login-events.ts'
import { loginBase } from './paths/server-paths.ts'
import { loadLibrary, quietly } from './provider/load-library.ts'
import { RevokedFamilies } from './revoked-families.ts'
import { createServerRoutes, type ProviderInstance } from './server/server-routes.ts'
import { createOAuth2Upstream } from './upstream/oauth2-upstream.ts'
import { createOidcUpstream, type UpstreamDeps } from './upstream/oidc-upstream.ts'
import type { UpstreamProvider } from './upstream/upstream-provider.ts'
import type { UpstreamKey, UpstreamTokens } from './upstream-tokens.ts'

export interface AuthServerOptions {
  readonly config: AuthServerConfig
  readonly env: Readonly<Record<string, string | undefined>>
  /** Opened with the cipher of its records. */
  readonly store: (cipher: RecordCipher) => AuthStore
  /** Where tokens of upstream providers go, sealed with the cipher. */
  readonly tokens: (
    upstreams: readonly UpstreamProvider[],
    sealed: {
      readonly store: AuthStore
      readonly cipher: RecordCipher
      readonly familyMs: number
      readonly connectUrl: (key: UpstreamKey, family: string) => string
      readonly onRefreshFailed: (key: UpstreamKey, failure: 'ended' | 'unavailable', reason: unknown) => void
    },
  ) => UpstreamTokens
  readonly outbound: Outbound
  readonly clock: Clock
  readonly log: Log
  /** The address of the client, for rate limits. */
  readonly addressOf?: (exchange: Exchange) => string
}

export interface AuthServer extends AsyncDisposable {
  /** True: the path is one of the server's. */
  serves(path: string): boolean
  handle(exchange: Exchange): Promise<void>
  /** Keys of its own tokens, for the proxy in front. */
  findKeys(header: { alg: string; kid?: string | undefined }): readonly VerificationKey[]
  /** The token's family has been revoked. Takes no promise: for every request. */
  isRevoked(claims: { readonly [name: string]: unknown }): boolean
  readonly tokens: UpstreamTokens
  /** Logins, consents, registrations, tokens and what went wrong, for audit. Must not throw. */
  observe(listener: LoginListener): void
}

/** How soon replaced key files count. */
const RELOAD_MS = 30_000

/** An authorization server whose users log in at upstream providers. Throws `run_config_invalid`. */
export async function createAuthServer(options: AuthServerOptions): Promise<AuthServer> {
  const { config, env, outbound, clock, log } = options
  const { createProvider } = await loadLibrary().then(() => import('./provider/create-provider.ts'))
  const stop = new AbortController()
  const isEphemeral = config.hmac_secret_files.length === 0
  const secrets = isEphemeral ? ephemeralServerSecrets() : await loadServerSecrets(config.hmac_secret_files)
  if (isEphemeral) log.warn('embedded_auth_server_config: no hmac_secret_files; clients must register again after a restart')
  if (config.signing_key_config === undefined)
    log.warn('embedded_auth_server_config: no signing_key_config; tokens become invalid at a restart')

  const onProblem = (provider: string, error: unknown) => log.warn('identity provider cannot be asked', { provider, error: String(error) })
  const store = options.store(secrets.cipher('records'))
  const onRegistered: UpstreamDeps['onRegistered'] = (provider, what) =>
    log.info('registered as a client of a provider', { provider, what })
  const deps: UpstreamDeps = { env, outbound, clock, signal: stop.signal, onProblem, store, onRegistered }
  const upstreams = config.upstreams.map((upstream) => upstreamOf(upstream, { config, deps }))
  const { refresh_token_lifespan: refreshLife, access_token_lifespan: accessLife } = config.token_lifespans
  const familyMs = parseDuration(refreshLife) + parseDuration(accessLife)
  const events = new LoginEvents()
  const onRefreshFailed = ({ provider, account }: UpstreamKey, failure: 'ended' | 'unavailable', error: unknown) => {
    const reason = failure === 'ended' ? 'the provider refuses it' : errorMessage(error)
    log.warn('token of an upstream provider could not be refreshed', { provider, failure, reason })
    events.report({ type: 'auth_upstream_refresh', outcome: 'failure', account, provider, reason: failure })
  }
  const links = createConnectLinks(config, secrets, clock)
  const connectUrl = (key: UpstreamKey, family: string) => links.url({ ...key, family })
  const tokens = options.tokens(upstreams, { store, cipher: secrets.cipher('vault'), familyMs, connectUrl, onRefreshFailed })
  const clients = createSealedClients(secrets, clock)
  const documents = createMetadataDocuments({
    ...{ config, clock },
    fetch: createDocumentFetch(outbound, clock, stop.signal),
    onRejected: (host, reason) => log.warn('metadata document rejected', { host, reason }),
  })
  const isSecure = loginBase(config).startsWith('https:')
  const consents = createConsents(secrets, clock, isSecure)
  const sessions = createLoginSessions(secrets, clock, isSecure)
  const accounts = createAccountSessions(store, clock)
  const revoked = new RevokedFamilies(store, clock)

  const issuers = createTrustedIssuers(config.trusted_issuers, { outbound, clock, signal: stop.signal, onProblem })
  const delegates = await createDelegateClients(config.delegate_clients, env)
  const exchange: ExchangeDeps = { config, store, issuers, clock, keys: () => current.keys }

  async function instanceOf(keys: SigningKeys): Promise<ProviderInstance> {
    const provider = await quietly(() =>
      createProvider({
        ...{ config, store, keys, secrets, clock },
        client: clientMetadata,
        onLogin: (account, login) => accounts.add(account, login),
        exchange: {
          deps: exchange,
          clients: delegates,
          onExchange(client, account) {
            log.info('token exchanged', { client, subject: account })
            events.report({ type: 'auth_token_exchange', outcome: 'success', client, account })
          },
          onRefused(client, reason) {
            log.warn('token exchange refused', { client, reason })
            events.report({ type: 'auth_token_exchange', outcome: 'denied', client, reason })
          },
        },
        onGranted: (grant) => events.report({ outcome: 'success', ...grant }),
        onRevoked: (client) => events.report({ type: 'auth_revocation', outcome: 'success', client }),
        onReuse(what, family) {
          log.warn('token reused; its family is revoked', { what, family })
          events.report({ type: 'auth_token_reuse', outcome: 'denied', reason: what })
        },
        onServerError: (error) => log.error('authorization server failed', { error: error.message }),
      }),
    )
    return { keys, provider, answer: provider.callback() }
  }

  async function clientMetadata(id: string): Promise<Record<string, unknown> | undefined> {
    const delegate = await delegates.metadata(id)
    if (delegate !== undefined) return delegate
    const client = clients.open(id) ?? (await documents.find(id))
    if (client === undefined) return undefined
    // Every client may lead its user through a login again, whatever it registered for.
    const scope = [client.scope, ...upstreams.map(({ provider }) => upstreamScope(provider))].join(' ')
    const shared = { client_id: id, ...client, scope, response_types: ['code'] }
    if (client.token_endpoint_auth_method === 'none') return { ...shared, application_type: 'native' }
    return { ...shared, application_type: 'web', client_secret: clients.secretOf(id) }
  }

  const readKeys = () => (config.signing_key_config === undefined ? ephemeralSigningKeys() : loadSigningKeys(config.signing_key_config))
  let current = await instanceOf(await readKeys())
  const provider = () => current.provider
  const walk = createUpstreamWalk({ config, store, upstreams, tokens })
  const direct = createDirectLogin({ config, walk, sessions, tokens, log, events })
  const flow = createLoginFlow({ config, store, secrets, consents, sessions, walk, direct, tokens, log, events, provider })
  const connect = createConnect({ config, store, secrets, links, sessions, direct, walk, log, events, provider })
  const account = createAccount({ config, store, secrets, consents, sessions, accounts, direct, walk, tokens, familyMs, log, events })
  const addressOf = options.addressOf ?? ((exchange: Exchange) => exchange.remoteAddress ?? '')
  const routes = createServerRoutes({
    ...{ config, clients, documents, flow, connect, account, clock, log, events, addressOf },
    current: () => current,
    redirectUris: upstreams.map(({ redirectUri }) => redirectUri),
    assertions: config.trusted_issuers.some(({ jwt_bearer_grant: grant }) => grant !== undefined)
      ? {
          deps: exchange,
          onRedeemed(account) {
            log.info('assertion redeemed', { subject: account })
            events.report({ type: 'auth_token_issue', outcome: 'success', account })
          },
          onRefused(reason) {
            log.warn('assertion refused', { reason })
            events.report({ type: 'auth_token_issue', outcome: 'denied', reason })
          },
        }
      : undefined,
  })

  /** A new instance for new keys or secrets; the old one finishes its requests. */
  async function reload(): Promise<void> {
    try {
      const keys = config.signing_key_config === undefined ? current.keys : await readKeys()
      const hasNewSecrets = await secrets.reload()
      const idsOf = ({ published }: SigningKeys) => published.keys.map(({ kid }) => kid).join(' ')
      const hasNewKeys = idsOf(keys) !== idsOf(current.keys)
      if (!hasNewKeys && !hasNewSecrets) return
      current = await instanceOf(keys)
      if (hasNewKeys) log.info('signing keys replaced', { kid: keys.kid })
      if (hasNewSecrets) log.info('secrets of the authorization server replaced')
    } catch (error) {
      log.error('keys or secrets could not be read again; the old ones stay', {
        error: error instanceof Error ? error.message : String(error),
      })
    }
  }
  let timer: Timer | undefined
  function reloadLater(): void {
    timer = clock.setTimer(RELOAD_MS, async () => {
      await reload()
      if (!stop.signal.aborted) reloadLater()
    })
  }
  if (config.signing_key_config !== undefined || !isEphemeral) reloadLater()

  return {
    serves: (path) => routes.serves(path),
    handle: (exchange) => events.from(addressOf(exchange), () => routes.handle(exchange)),
    observe: (listener) => events.observe(listener),
    findKeys: (header) => current.keys.find(header),
    isRevoked: (claims) => revoked.has(claims['tsid']),
    tokens,
    async [Symbol.asyncDispose]() {
      stop.abort()
      timer?.cancel()
      revoked[Symbol.dispose]()
      await tokens[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

function upstreamOf(upstream: UpstreamConfig, { config, deps }: { config: AuthServerConfig; deps: UpstreamDeps }): UpstreamProvider {
  const { name, oidc_config: oidc, oauth2_config: oauth2 } = upstream
  const redirectUri = (oidc ?? oauth2)?.redirect_uri ?? `${config.issuer}${callbackPath(config.upstreams, name)}`
  if (oidc !== undefined) return createOidcUpstream(name, oidc, { redirectUri, deps })
  if (oauth2 !== undefined) return createOAuth2Upstream(name, oauth2, { redirectUri, deps })
  throw new TypeError(`provider ${name} has no configuration`)
}
