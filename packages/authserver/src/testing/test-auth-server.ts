import { createHash, randomBytes } from 'node:crypto'
import { createOutbound } from '@thv/http/outbound/outbound'
import { createHttpServer } from '@thv/http/server/server'
import { type Clock, systemClock } from '@thv/kernel/clock'
import type { AuthServerConfig, UpstreamConfig } from '@thv/runconfig/auth-server-config'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { AuthStore } from '@thv/store/auth/auth-store'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { signIn } from '@thv/testkit/oidc/sign-in'
import { type AuthServer, type AuthServerOptions, createAuthServer } from '../auth-server.ts'
import { NO_UPSTREAM_TOKENS } from '../no-upstream-tokens.ts'
import type { UpstreamLogin } from '../upstream-tokens.ts'
import { Browser, type Visit } from './browser.ts'

export const REDIRECT_URI = 'http://127.0.0.1:8765/callback'

export interface TestAuthServer extends AsyncDisposable {
  readonly issuer: string
  readonly resource: string
  readonly server: AuthServer
  readonly idp: OidcServer
  readonly store: AuthStore
  readonly logged: () => string
  /** Tokens that logins gave to the vault. */
  readonly saved: readonly UpstreamLogin[]
  register(metadata?: object): Promise<Response>
  /** The id of a public client. */
  client(): Promise<string>
  authorizeUrl(clientId: string, params?: Readonly<Record<string, string | undefined>>): { url: URL; verifier: string }
  /** The first answer of a login. */
  authorize(clientId: string): Promise<Response>
  /** The answer to an allowed consent: the redirect to the first provider, or a page. */
  begin(): Promise<Visit>
  /** A whole login up to the redirect back to the client. */
  login(clientId: string, params?: Readonly<Record<string, string | undefined>>): Promise<{ landed: URL; verifier: string }>
  token(
    form: Readonly<Record<string, string>>,
    headers?: Readonly<Record<string, string>>,
  ): Promise<{ status: number; body: Record<string, string> }>
  /** A login and the tokens that it leads to. */
  tokens(clientId: string): Promise<{ status: number; body: Record<string, string> }>
}

export interface TestAuthServerOptions {
  readonly config?: object
  /** As `config`, where it names the resource. */
  readonly configFor?: (resource: string) => object
  /** Providers after the first one. */
  readonly more?: readonly UpstreamConfig[]
  /** Instead of `saved`. */
  readonly tokens?: AuthServerOptions['tokens']
  readonly clock?: Clock
  readonly env?: Readonly<Record<string, string>>
  readonly store?: AuthStore
  /** Of a server that was there before; any if absent. */
  readonly port?: number
  /** Instead of a provider of its own. */
  readonly idp?: OidcServer
  /** Rate limits count all requests together, as for one address. Otherwise each request has an address of its own. */
  readonly oneAddress?: boolean
}

/** A whole authorization server on loopback, with a real OpenID provider behind it. */
export async function startTestAuthServer(options: TestAuthServerOptions = {}): Promise<TestAuthServer> {
  const { clock = systemClock, env = {} } = options
  await using stack = new AsyncDisposableStack()
  const idp = options.idp ?? stack.use(await startOidcServer())
  let server: AuthServer | undefined
  const http = createHttpServer({
    handler: async (exchange) => {
      if (server?.serves(exchange.path)) await server.handle(exchange)
      else exchange.response.writeHead(404).end()
    },
    busy: (exchange) => void exchange.response.writeHead(503).end(),
    clock: systemClock,
    onError: () => {},
  })
  const { url: issuer } = await http.listen({ host: '127.0.0.1', port: options.port ?? 0 })
  stack.defer(async () => void (await http.drain(AbortSignal.timeout(100))))
  const resource = `${issuer}/mcp`
  const upstream = await registerUpstream(idp, `${issuer}/oauth/callback`)
  const config = configOf({
    issuer,
    allowed_audiences: [resource],
    scopes_supported: ['openid', 'profile', 'mcp'],
    upstreams: [
      { name: 'corp', type: 'oidc', oidc_config: { issuer_url: idp.issuer, ...upstream.oidc, allow_private_ips: true } },
      ...(options.more ?? []),
    ],
    disable_upstream_token_injection: true,
    ...options.config,
    ...options.configFor?.(resource),
  })
  const log = new CollectingLog()
  const outbound = createOutbound()
  stack.defer(() => outbound.close())
  const store = options.store ?? stack.use(createMemoryAuthStore({ clock }))
  let requests = 0
  const addressOf = () => (options.oneAddress === true ? 'one' : String(requests++))
  const saved: UpstreamLogin[] = []
  const keepsSaved = () => ({ ...NO_UPSTREAM_TOKENS, save: async (login: UpstreamLogin) => void saved.push(login) })
  server = stack.use(
    await createAuthServer({
      config,
      env: { UPSTREAM_SECRET: upstream.secret, ...env },
      store: () => store,
      tokens: options.tokens ?? keepsSaved,
      outbound,
      clock,
      log,
      addressOf,
    }),
  )
  const owned = stack.move()

  const register = (metadata: object = {}) =>
    fetch(`${issuer}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name: 'test', redirect_uris: [REDIRECT_URI], ...metadata }),
    })
  const started: TestAuthServer = {
    ...{ issuer, resource, server, idp, store, saved, register },
    logged: () => log.lines.join('\n'),
    async client() {
      const { client_id: id } = (await (await register()).json()) as { client_id: string }
      return id
    },
    authorizeUrl(clientId, params = {}) {
      const verifier = randomBytes(32).toString('base64url')
      const url = new URL(`${issuer}/oauth/authorize`)
      const all: Record<string, string | undefined> = {
        response_type: 'code',
        client_id: clientId,
        redirect_uri: REDIRECT_URI,
        scope: 'openid mcp',
        state: 'client-state',
        resource,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
        ...params,
      }
      for (const [name, value] of Object.entries(all)) if (value !== undefined) url.searchParams.set(name, value)
      return { url, verifier }
    },
    authorize: (clientId) => fetch(started.authorizeUrl(clientId).url, { redirect: 'manual' }),
    async begin() {
      const browser = new Browser()
      const page = await browser.follow(started.authorizeUrl(await started.client()).url)
      return page.status === 200 ? await browser.submit(page, { decision: 'allow' }) : page
    },
    async login(clientId, params) {
      const { url, verifier } = started.authorizeUrl(clientId, params)
      const landed = await signIn(url, { user: 'ada', redirectUri: params?.['redirect_uri'] ?? REDIRECT_URI })
      return { landed, verifier }
    },
    async token(form, headers = {}) {
      const answer = await fetch(`${issuer}/oauth/token`, { method: 'POST', headers, body: new URLSearchParams(form) })
      return { status: answer.status, body: (await answer.json()) as Record<string, string> }
    },
    async tokens(clientId) {
      const { landed, verifier } = await started.login(clientId)
      const code = landed.searchParams.get('code') ?? ''
      return await started.token({
        grant_type: 'authorization_code',
        code,
        redirect_uri: REDIRECT_URI,
        client_id: clientId,
        code_verifier: verifier,
      })
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
  return started
}

/** Makes us a client of the test provider. */
export async function registerUpstream(idp: OidcServer, redirectUri: string): Promise<{ oidc: object; secret: string }> {
  const answer = await fetch(`${idp.issuer}/reg`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'client_secret_basic',
    }),
  })
  const { client_id, client_secret } = (await answer.json()) as { client_id: string; client_secret: string }
  return { oidc: { client_id, client_secret_env_var: 'UPSTREAM_SECRET', scopes: ['openid'] }, secret: client_secret }
}

/** Through the reader of the RunConfig, so that defaults are filled in. */
export function configOf(login: { issuer: string; allowed_audiences: string[]; [member: string]: unknown }): AuthServerConfig {
  const oidc_config = { issuer: login.issuer, audience: login.allowed_audiences[0] }
  const read = readRunConfig({
    name: 'test',
    remote_url: 'https://example.com/mcp',
    transport: 'streamable-http',
    oidc_config,
    embedded_auth_server_config: login,
  })
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  if (read.config.embedded_auth_server_config === undefined) throw new TypeError('no configuration')
  return read.config.embedded_auth_server_config
}
