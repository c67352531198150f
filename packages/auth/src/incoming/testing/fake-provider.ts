import type { ServerResponse } from 'node:http'
import { createOutbound } from '@thv/http/outbound/outbound'
import { type Backend, type SeenRequest, startBackend } from '@thv/http/testing/backend'
import { systemClock, TestClock } from '@thv/kernel/clock'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { IncomingProvider } from '../incoming-provider.ts'
import { createAuthenticator, type TokenAuthenticator, type TokenAuthenticatorOptions } from '../token-authenticator.ts'

export type FakeRoute = (request: SeenRequest, response: ServerResponse) => void | Promise<void>

export interface SigningKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly jwk: JWK
}

/** An identity provider that says whatever a test wants it to say, on loopback. */
export interface FakeProvider extends AsyncDisposable {
  readonly issuer: string
  readonly clock: TestClock
  readonly backend: Backend
  /** Body of the JWKS endpoint; a test may put anything here. */
  jwks: object
  /** By path; they win over the usual answers. */
  readonly routes: Map<string, FakeRoute>
  hits(path: string): number
  /** A token that is good unless told otherwise. Claims that are undefined are left out. */
  token(options?: TokenOptions): Promise<string>
  authenticator(options?: Partial<TokenAuthenticatorOptions> & { provider?: Partial<IncomingProvider> }): TestedAuthenticator
}

export interface TokenOptions {
  readonly key?: SigningKey
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
}

export interface TestedAuthenticator extends TokenAuthenticator {
  readonly problems: string[]
  readonly reasons: string[]
  /** `accepted`, or the kind of the problem. */
  outcome(token: string): Promise<string>
}

export const DISCOVERY = '/.well-known/openid-configuration'
export const OAUTH_METADATA = '/.well-known/oauth-authorization-server'
export const KEYS = '/keys'
export const INTROSPECT = '/introspect'

export async function startFakeProvider(key: SigningKey): Promise<FakeProvider> {
  const clock = new TestClock()
  const routes = new Map<string, FakeRoute>()
  const backend = await startBackend(async (request, response) => {
    const route = routes.get(pathOf(request))
    if (route) return await route(request, response)
    const usual = { [DISCOVERY]: { issuer: backend.url, jwks_uri: `${backend.url}${KEYS}` }, [KEYS]: provider.jwks }[pathOf(request)]
    if (usual === undefined) response.writeHead(404).end()
    else answerJson(response, usual)
  })
  const outbound = createOutbound({ clock: systemClock })
  const open: TokenAuthenticator[] = []

  const provider: FakeProvider = {
    issuer: backend.url,
    clock,
    backend,
    jwks: { keys: [key.jwk] },
    routes,
    hits: (path) => backend.requests.filter((request) => pathOf(request) === path).length,
    async token({ key: signer = key, claims = {}, header = {} } = {}) {
      const now = Math.floor(clock.now() / 1_000)
      const payload = { iss: backend.url, aud: 'tests', sub: 'ada', iat: now, exp: now + 3_600, ...claims }
      const protectedHeader = { alg: signer.alg, kid: signer.kid, ...header }
      return await new SignJWT(dropUndefined(payload))
        .setProtectedHeader(dropUndefined(protectedHeader) as { alg: string })
        .sign(signer.privateKey)
    },
    authenticator({ provider: own = {}, ...options } = {}) {
      const problems: string[] = []
      const reasons: string[] = []
      const authenticator = createAuthenticator({
        providers: [{ name: 'fake', issuer: backend.url, audience: 'tests', allowPrivateIP: true, ...own }],
        outbound,
        clock,
        onProblem: (_name, error) => problems.push(String(error)),
        onRejected: (_name, reason) => reasons.push(reason),
        ...options,
      })
      open.push(authenticator)
      const outcome = async (token: string) => {
        const result = await authenticator.authenticate(`Bearer ${token}`)
        return result.ok ? 'accepted' : result.problem.kind
      }
      return Object.defineProperties(Object.create(authenticator), {
        problems: { value: problems },
        reasons: { value: reasons },
        outcome: { value: outcome },
      })
    },
    async [Symbol.asyncDispose]() {
      for (const one of open) await one[Symbol.asyncDispose]()
      await outbound.close()
      await backend[Symbol.asyncDispose]()
    },
  }
  return provider
}

export async function signingKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

export function answerJson(response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
}

/** Header and claims as they are given, with this as the signature. */
export function rawToken(header: object, claims: object, signature = ''): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part(header)}.${part(claims)}.${signature}`
}

function pathOf({ url }: SeenRequest): string {
  return url.split('?')[0] ?? ''
}

function dropUndefined(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined))
}
