import type { Identity } from '@thv/auth/incoming/authenticator'
import { type FakeProvider, type SigningKey, signingKey, startFakeProvider } from '@thv/auth/incoming/testing/fake-provider'
import { sendJson } from '@thv/http/server/respond'
import { eventually, type LoopbackServer, startServer } from '@thv/http/testing/loopback'
import { systemClock } from '@thv/kernel/clock'
import { createLogger } from '@thv/telemetry/log'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAccess, type RegistryAccess } from './access.ts'
import type { AuthConfig, AuthzConfig, OAuthConfig } from './auth-config.ts'
import { callerOf, publicCaller, rolesOf } from './caller.ts'

let key: SigningKey
let idp: FakeProvider

beforeAll(async () => {
  key = await signingKey('k')
  idp = await startFakeProvider(key)
})
afterAll(() => idp[Symbol.asyncDispose]())

const log = createLogger({ write: () => {} })

function oauthConfig(more: Partial<AuthConfig> = {}, oauth: Partial<OAuthConfig> = {}): AuthConfig {
  const provider = { name: 'fake', issuerUrl: idp.issuer, audience: 'tests', allowPrivateIP: true }
  return { mode: 'oauth', publicPaths: [], ...more, oauth: { realm: 'mcp-registry', providers: [provider], ...oauth } }
}

/** A server that tells who asks; disposed with its access. */
async function serve(auth: AuthConfig): Promise<LoopbackServer & { access: RegistryAccess }> {
  const access = createAccess(auth, { clock: idp.clock, log, env: {} })
  const server = await startServer(async (exchange) => {
    if (access.handle(exchange)) return
    const caller = await access.authenticate(exchange)
    if (caller) sendJson(exchange, { ...caller, roles: [...caller.roles] })
  })
  const dispose = async () => {
    await server[Symbol.asyncDispose]()
    await access[Symbol.asyncDispose]()
  }
  return { ...server, access, [Symbol.asyncDispose]: dispose }
}

describe('anonymous mode', () => {
  it('lets everybody do everything, and has no metadata', async () => {
    await using server = await serve({ mode: 'anonymous', publicPaths: [] })
    const answer = await fetch(`${server.url}/v1/sources`)
    expect(await answer.json()).toMatchObject({ subject: 'anonymous', anonymous: true, gated: false })
    const { access } = server
    expect(access.anonymous).toBe(true)
    expect([access.maySee(publicCaller, undefined), access.maySet(publicCaller, {}), access.hasRole(publicCaller, 'superAdmin')]).toEqual([
      true,
      true,
      true,
    ])
    const metadata = await fetch(`${server.url}/.well-known/oauth-protected-resource`)
    expect(await metadata.json()).toMatchObject({ subject: 'anonymous' }) // not answered by access
  })
})

describe('oauth mode', () => {
  it('answers 401 with a challenge without a token, or with a bad one', async () => {
    await using server = await serve(oauthConfig())
    const missing = await fetch(`${server.url}/v1/sources`)
    expect(missing.status).toBe(401)
    expect(missing.headers.get('www-authenticate')).toBe(
      'Bearer realm="mcp-registry", error="invalid_request", error_description="missing or malformed authorization header"',
    )
    expect(await missing.json()).toEqual({ error: 'missing or malformed authorization header', code: 'invalid_request' })

    const bad = await fetch(`${server.url}/v1/sources`, { headers: { authorization: 'Bearer nonsense' } })
    expect(bad.status).toBe(401)
    expect(bad.headers.get('www-authenticate')).toBe(
      'Bearer realm="mcp-registry", error="invalid_token", error_description="token validation failed"',
    )
    expect(await bad.json()).toEqual({ error: 'token validation failed', code: 'invalid_token' })
  })

  it.each(['https://registry.example.com', 'https://registry.example.com/'])('names its metadata when it is %s', async (resourceUrl) => {
    await using server = await serve(oauthConfig({}, { resourceUrl, realm: 'a"b\r\nX: y' }))
    const answer = await fetch(`${server.url}/x`)
    expect(answer.headers.get('www-authenticate')).toBe(
      'Bearer realm="a\\"bX: y", error="invalid_request", error_description="missing or malformed authorization header", ' +
        'resource_metadata="https://registry.example.com/.well-known/oauth-protected-resource"',
    )
    for (const path of ['', '/registry/x']) {
      const metadata = await fetch(`${server.url}/.well-known/oauth-protected-resource${path}`)
      expect(await metadata.json()).toEqual({
        resource: resourceUrl,
        authorization_servers: [idp.issuer],
        bearer_methods_supported: ['header'],
      })
    }
    await using scoped = await serve(oauthConfig({}, { resourceUrl, scopesSupported: ['mcp-registry:read', 'mcp-registry:write'] }))
    expect(await (await fetch(`${scoped.url}/.well-known/oauth-protected-resource`)).json()).toMatchObject({
      scopes_supported: ['mcp-registry:read', 'mcp-registry:write'],
    })
    const wrong = await fetch(`${server.url}/.well-known/oauth-protected-resource`, { method: 'POST' })
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })

  it('knows the caller of a good token, and the same one the next time', async () => {
    await using server = await serve(oauthConfig())
    const headers = { authorization: `Bearer ${await idp.token()}` }
    for (let i = 0; i < 2; i++) {
      const answer = await fetch(`${server.url}/v1/me`, { headers })
      expect(await answer.json()).toMatchObject({
        subject: 'ada',
        anonymous: false,
        superAdmin: true,
        gated: false,
        roles: ['superAdmin', 'manageSources', 'manageRegistries', 'manageEntries'],
      })
    }
    expect(server.access.stats?.cached).toBe(1)
  })

  it('requires no token on public paths, and gives no role there', async () => {
    await using server = await serve(oauthConfig({ publicPaths: ['/custom'], authz: { roles: { manageEntries: [{ sub: 'ada' }] } } }))
    for (const path of ['/openapi.json', '/openapi.yaml', '/.well-known/x', '/custom/x']) {
      const answer = await fetch(`${server.url}${path}`)
      expect(await answer.json(), path).toMatchObject({ subject: 'anonymous', anonymous: true, roles: [], gated: false })
    }
    for (const path of ['/customx', '/custom%2Fx', '/v1/me', '/']) expect((await fetch(`${server.url}${path}`)).status, path).toBe(401)
    expect(server.access.hasRole(publicCaller, 'manageEntries')).toBe(false)
  })

  it('answers 503 with Retry-After while no provider can be asked, and starts all the same', async () => {
    const provider = { name: 'gone', issuerUrl: 'http://127.0.0.1:1', audience: 'tests', allowPrivateIP: true }
    await using server = await serve(oauthConfig({}, { providers: [provider] }))
    const headers = { authorization: `Bearer ${await idp.token({ claims: { iss: 'http://127.0.0.1:1' } })}` }
    const answer = await fetch(`${server.url}/v1/me`, { headers })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(await answer.json()).toEqual({ error: 'the identity provider cannot be reached', code: 'temporarily_unavailable' })
  })
})

it.each([
  [' True', /10\.0\.0\.1(?!.*not https)/],
  ['false', /not https/],
  [undefined, /not https/],
])('THV_REGISTRY_INSECURE_URL=%s is read as the configuration reads it', async (value, problem) => {
  const lines: string[] = []
  const config = oauthConfig({}, { providers: [{ name: 'plain', issuerUrl: 'http://10.0.0.1', audience: 'tests', allowPrivateIP: false }] })
  await using access = createAccess(config, {
    clock: systemClock,
    log: createLogger({ write: (line) => void lines.push(line) }),
    env: { THV_REGISTRY_INSECURE_URL: value },
  })
  await eventually(() => lines.length > 0)
  expect(lines.join()).toMatch(problem)
  expect(access.anonymous).toBe(false)
})

describe('roles', () => {
  const authz: AuthzConfig = {
    roles: {
      superAdmin: [{ group: 'root' }],
      manageSources: [{ group: ['ops', 'dev'] }, { sub: 'robot', org: 'x' }],
      manageEntries: [{}],
      manageRegistries: [],
    },
  }
  it.each<[Record<string, unknown>, string[]]>([
    [{ group: 'root' }, ['superAdmin', 'manageSources', 'manageRegistries', 'manageEntries']],
    [{ group: ['dev', 'x'] }, ['manageSources']],
    [{ sub: 'robot' }, []],
    [{ sub: 'robot', org: 'x' }, ['manageSources']],
    [{}, []],
  ])('of %j are %j', (claims, expected) => {
    expect([...rolesOf(claims, authz)]).toEqual(expected)
  })

  it('are all there without authz, and gates are open', () => {
    const caller = callerOf(identity({ team: 'a' }), undefined)
    expect(caller).toMatchObject({ gated: false, superAdmin: true, key: '' })
    expect(caller.roles.size).toBe(4)
  })

  it('decide whether claims count', () => {
    expect(callerOf(identity({ group: 'root' }), authz)).toMatchObject({ gated: false, superAdmin: true, key: '' })
    const gated = callerOf(identity({ group: 'ops' }), authz)
    expect(gated).toMatchObject({ gated: true, superAdmin: false })
    expect(gated.key).not.toBe('')
  })
})

it('gates follow the caller', async () => {
  await using access = createAccess(oauthConfig(), { clock: idp.clock, log, env: {} })
  const gated = callerOf(identity({ team: 'a' }), { roles: {} })
  const root = callerOf(identity({ team: 'a' }), { roles: { superAdmin: [{ team: 'a' }] } })
  const claims = { team: ['a', 'b'] }
  expect([access.maySee(gated, claims), access.maySet(gated, claims), access.maySee(gated, undefined)]).toEqual([true, false, false])
  expect([access.maySee(root, claims), access.maySet(root, claims), access.maySee(root, undefined)]).toEqual([true, true, true])
})

function identity(claims: Record<string, unknown>): Identity {
  return { subject: 'ada', issuer: 'i', provider: 'p', claims }
}
