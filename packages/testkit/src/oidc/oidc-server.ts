import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Provider } from 'oidc-provider'
import { PATIENCE_MS } from '../run/patience.ts'
import {
  type HookContext,
  OIDC_PATHS,
  type OidcTokenOptions,
  oidcConfiguration,
  type RefreshTokenHabit,
  refreshTokenRule,
} from './oidc-configuration.ts'
import { createOidcRecords } from './oidc-records.ts'
import { addTokenExchange, type ExchangedToken } from './token-exchange.ts'

/**
 * A real OpenID provider, on loopback unless told otherwise: client-credentials tokens, readable or opaque, with any claims; and users, for clients that register
 * themselves and send a browser (`sign-in.ts`) to its login page.
 */
export interface OidcServer extends AsyncDisposable {
  readonly issuer: string
  readonly jwksUrl: string
  readonly introspectionUrl: string
  /** Of the one client there is; it gets tokens and asks about them. */
  readonly clientId: string
  readonly clientSecret: string
  /** Lifetime of access tokens of users. */
  accessTokenSeconds: number
  readonly tokenUrl: string
  /** Every token that was issued, in order. */
  readonly grants: readonly IssuedToken[]
  /** Every token that an exchange (RFC 8693) gave out, in order. */
  readonly exchanged: readonly ExchangedToken[]
  /** Undefined: it behaves. Tokens must be taken before it is down. */
  fault: OidcFault | undefined
  token(options?: OidcTokenOptions): Promise<string>
  /** From now on opaque tokens like this are not active. */
  revoke(token: string): Promise<void>
  /** Signs with a new key; the old ones are still published if asked for. */
  rotateKeys(options?: { keepOld?: boolean }): void
  /** How often a path was asked for. */
  hits(path: string): number
}

/** `slow` answers after three seconds; the last two give wrong documents. */
export type OidcFault = 'down' | 'slow' | 'wrong-issuer' | 'garbage-keys'

export interface IssuedToken {
  readonly grantType: string
  readonly clientId: string
  readonly scope: string | undefined
  readonly resource: string | undefined
}

export interface OidcServerOptions {
  readonly host?: string
  readonly port?: number
  /** Scopes that users can grant to clients. */
  readonly scopes?: readonly string[]
  /** Serves by TLS. The process that asks for tokens must trust the authority. */
  readonly tls?: { readonly certPem: string; readonly keyPem: string }
  /** False: a refresh token can be used again, for clients that refresh in two places at once. By default the provider decides. */
  readonly rotatesRefreshTokens?: boolean
  readonly refreshTokens?: RefreshTokenHabit
}

/** Of the login page; the rest of the path names the visit. */
const INTERACTION = '/interaction/'

const CLIENT = { clientId: 'test-client', clientSecret: 'test-client-secret-0123456789abcdef' }
type Jwk = Readonly<Record<string, unknown>>

/** Carries the wishes of `token()` to the hooks of the provider. */
const WISH_HEADER = 'x-token-wish'
const SLOW_MS = 3_000

export async function startOidcServer(options: OidcServerOptions = {}): Promise<OidcServer> {
  const { host = '127.0.0.1', port = 0, scopes = [], tls, rotatesRefreshTokens = true, refreshTokens = 'always' } = options
  const hits = new Map<string, number>()
  const adapter = createOidcRecords()
  const grants: IssuedToken[] = []
  const givesRefreshToken = refreshTokenRule(refreshTokens)
  const exchanged: ExchangedToken[] = []
  let keys: Jwk[] = [newKey()]
  let provider: Provider
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => {}

  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url?.split('?')[0] ?? ''
    hits.set(path, (hits.get(path) ?? 0) + 1)
    if (!misbehave(oidc.fault, path, response)) {
      if (oidc.fault === 'slow') setTimeout(() => handle(request, response), SLOW_MS).unref()
      else handle(request, response)
    }
  }
  const server = tls === undefined ? createServer(listener) : createTlsServer({ cert: tls.certPem, key: tls.keyPem }, listener)
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  const issuer = `${tls === undefined ? 'http' : 'https'}://${host}:${(server.address() as AddressInfo).port}`

  function publish(): void {
    // The provider cannot change its keys, so another one takes its place, with what the one before remembered.
    const accessTokenSeconds = () => oidc.accessTokenSeconds
    const settings = {
      keys,
      adapter,
      client: CLIENT,
      scopes,
      wishOf,
      accessTokenSeconds,
      rotatesRefreshTokens,
      refreshTokens: givesRefreshToken,
    }
    provider = new Provider(issuer, oidcConfiguration(settings))
    addTokenExchange(provider, {
      issuer,
      keys: () => keys,
      wish(ctx, wish) {
        ctx.req.headers[WISH_HEADER] = Buffer.from(JSON.stringify(wish)).toString('base64url')
      },
      onExchanged: (token) => exchanged.push(token),
    })
    provider.on('grant.success', ({ oidc: { params, client } }) => {
      const { grant_type: grantType, scope, resource } = params
      grants.push({ grantType: String(grantType), clientId: client.clientId, scope, resource })
    })
    const answer = provider.callback()
    handle = (request, response) => {
      if (!request.url?.startsWith(INTERACTION)) return answer(request, response)
      logIn(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
    }
  }

  /** A page with a form, and what the form sends. Every user has every right: clients get the scopes that they ask for. */
  async function logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      response.setHeader('content-type', 'text/html').end('<form method="post"><input name="user"><button>Log in</button></form>')
      return
    }
    const user = new URLSearchParams(await text(request)).get('user')
    if (!user) response.writeHead(400).end('a user is needed')
    else await provider.interactionFinished(request, response, { login: { accountId: user }, consent: {} })
  }

  async function post(path: string, form: Record<string, string>, wish: OidcTokenOptions = {}): Promise<Response> {
    const answer = await fetch(`${issuer}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${CLIENT.clientId}:${CLIENT.clientSecret}`).toString('base64')}`,
        [WISH_HEADER]: Buffer.from(JSON.stringify(wish)).toString('base64url'),
      },
      body: new URLSearchParams(form),
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    if (!answer.ok) throw new Error(`the test provider answered ${answer.status}: ${await answer.text()}`)
    return answer
  }

  const oidc: OidcServer = {
    issuer,
    jwksUrl: `${issuer}${OIDC_PATHS.jwks}`,
    introspectionUrl: `${issuer}${OIDC_PATHS.introspection}`,
    ...CLIENT,
    accessTokenSeconds: 600,
    tokenUrl: `${issuer}${OIDC_PATHS.token}`,
    grants,
    exchanged,
    fault: undefined,
    async token(wish = {}) {
      const answer = await post(OIDC_PATHS.token, { grant_type: 'client_credentials', resource: 'urn:thv:tests' }, wish)
      const { access_token: token } = (await answer.json()) as { access_token: string }
      return token
    },
    async revoke(token) {
      await post(OIDC_PATHS.revocation, { token })
    },
    rotateKeys({ keepOld = false } = {}) {
      keys = [newKey(), ...(keepOld ? keys : [])]
      publish()
    },
    hits: (path) => hits.get(path) ?? 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  publish()
  return oidc

  function misbehave(fault: OidcFault | undefined, path: string, response: ServerResponse): boolean {
    if (fault === 'down') response.destroy()
    else if (fault === 'wrong-issuer' && path.startsWith('/.well-known/'))
      response.end(JSON.stringify({ issuer: 'https://somebody-else.example', jwks_uri: `${issuer}${OIDC_PATHS.jwks}` }))
    else if (fault === 'garbage-keys' && path === OIDC_PATHS.jwks) response.end('{"keys": [{"kty": "RSA", "n": ')
    else return false
    return true
  }
}

function newKey(): Jwk {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg: 'ES256', use: 'sig' }
}

function wishOf(ctx: HookContext): OidcTokenOptions {
  const header = ctx.req.headers[WISH_HEADER]
  return typeof header === 'string' ? (JSON.parse(Buffer.from(header, 'base64url').toString('utf8')) as OidcTokenOptions) : {}
}
