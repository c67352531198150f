import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'

/** A real OpenID provider on loopback: client-credentials tokens, readable or opaque, with any claims. */
export interface OidcServer extends AsyncDisposable {
  readonly issuer: string
  readonly jwksUrl: string
  readonly introspectionUrl: string
  /** Of the one client there is; it gets tokens and asks about them. */
  readonly clientId: string
  readonly clientSecret: string
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
} as const

const CLIENT = { clientId: 'test-client', clientSecret: 'test-client-secret-0123456789abcdef' }
type Jwk = Readonly<Record<string, unknown>>

/** Carries the wishes of `token()` to the hooks of the provider. */
const WISH_HEADER = 'x-token-wish'
const SLOW_MS = 3_000

export async function startOidcServer(options: { host?: string; port?: number } = {}): Promise<OidcServer> {
  const { host = '127.0.0.1', port = 0 } = options
  const hits = new Map<string, number>()
  const adapter = memoryAdapter()
  let keys: Jwk[] = [newKey()]
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => {}

  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0] ?? ''
    hits.set(path, (hits.get(path) ?? 0) + 1)
    if (!misbehave(oidc.fault, path, response)) {
      if (oidc.fault === 'slow') setTimeout(() => handle(request, response), SLOW_MS).unref()
      else handle(request, response)
    }
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  const issuer = `http://${host}:${(server.address() as AddressInfo).port}`

  function publish(): void {
    // The provider cannot change its keys, so another one takes its place, with what the one before remembered.
    handle = new Provider(issuer, configuration(keys, adapter)).callback()
  }

  async function post(path: string, form: Record<string, string>, wish: OidcTokenOptions = {}): Promise<Response> {
    const answer = await fetch(`${issuer}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${CLIENT.clientId}:${CLIENT.clientSecret}`).toString('base64')}`,
        [WISH_HEADER]: Buffer.from(JSON.stringify(wish)).toString('base64url'),
      },
      body: new URLSearchParams(form),
      signal: AbortSignal.timeout(10_000),
    })
    if (!answer.ok) throw new Error(`the test provider answered ${answer.status}: ${await answer.text()}`)
    return answer
  }

  const oidc: OidcServer = {
    issuer,
    jwksUrl: `${issuer}${OIDC_PATHS.jwks}`,
    introspectionUrl: `${issuer}${OIDC_PATHS.introspection}`,
    ...CLIENT,
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

interface HookContext {
  readonly req: IncomingMessage
}

function wishOf(ctx: HookContext): OidcTokenOptions {
  const header = ctx.req.headers[WISH_HEADER]
  return typeof header === 'string' ? (JSON.parse(Buffer.from(header, 'base64url').toString('utf8')) as OidcTokenOptions) : {}
}

function configuration(keys: readonly Jwk[], adapter: (kind: string) => object): object {
  return {
    adapter,
    jwks: { keys },
    cookies: { keys: ['only-for-tests'] },
    clients: [
      {
        client_id: CLIENT.clientId,
        client_secret: CLIENT.clientSecret,
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    routes: { jwks: OIDC_PATHS.jwks, token: OIDC_PATHS.token, introspection: OIDC_PATHS.introspection, revocation: OIDC_PATHS.revocation },
    ttl: { ClientCredentials: (ctx: HookContext) => wishOf(ctx).expiresInSeconds ?? 600 },
    extraTokenClaims: (ctx: HookContext) => wishOf(ctx).claims ?? {},
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
      revocation: { enabled: true, allowedPolicy: () => true },
      introspection: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (ctx: HookContext) => {
          const { audience = 'tests', format = 'jwt', expiresInSeconds = 600 } = wishOf(ctx)
          return { scope: '', audience, accessTokenFormat: format, accessTokenTTL: expiresInSeconds, jwt: { sign: { alg: 'ES256' } } }
        },
      },
    },
  }
}

/** Where the provider keeps opaque tokens. It looks at the end of what it finds itself. */
function memoryAdapter(): (kind: string) => object {
  const records = new Map<string, object>()
  return (kind) => ({
    upsert: async (id: string, payload: object) => void records.set(`${kind}:${id}`, payload),
    find: async (id: string) => records.get(`${kind}:${id}`),
    destroy: async (id: string) => void records.delete(`${kind}:${id}`),
    revokeByGrantId: async () => {},
  })
}
