import type { UpstreamConfig } from '@thv/runconfig/auth-server-config'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { signIn } from '@thv/testkit/oidc/sign-in'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type PlainProvider, startPlainProvider } from '../testing/plain-provider.ts'
import { REDIRECT_URI, startTestAuthServer, type TestAuthServer } from '../testing/test-auth-server.ts'
import { UpstreamVault } from '../vault/upstream-vault.ts'

describe('a login on demand', () => {
  let chat: PlainProvider
  let code: PlainProvider
  let server: TestAuthServer
  let clientId: string
  beforeAll(async () => {
    ;[chat, code] = await Promise.all([startPlainProvider(), startPlainProvider()])
    const onDemand = (name: string, { base }: PlainProvider) => ({
      name,
      type: 'oauth2',
      login_policy: 'onDemand',
      oauth2_config: {
        ...{ authorization_endpoint: `${base}/authorize`, token_endpoint: `${base}/token`, client_id: 'us', allow_private_ips: true },
        identity_from_token: { subject_path: 'id' },
      },
    })
    server = await startTestAuthServer({
      store: createMemoryAuthStore(),
      more: [onDemand('chat', chat), onDemand('code', code)] as unknown as UpstreamConfig[],
      tokens: (refreshers, sealed) => new UpstreamVault({ ...sealed, cipher: () => sealed.cipher, refreshers }),
    })
    clientId = await server.client()
  })
  beforeEach(() => {
    for (const provider of [chat, code]) {
      Object.assign(provider, { answer: { access_token: 'at', id: '1', expires_in: 3_600 }, refusal: undefined })
      provider.seen.length = 0
    }
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    await Promise.all([chat[Symbol.asyncDispose](), code[Symbol.asyncDispose]()])
  })

  const walked = () => [chat.seen.length, code.seen.length]

  /** The tokens of a login in this browser; the error where there are none. */
  async function login(scope: string, cookies = new Map<string, string>()) {
    const { url, verifier } = server.authorizeUrl(clientId, { scope })
    const landed = await signIn(url, { user: 'ada', redirectUri: REDIRECT_URI, cookies })
    const error = landed.searchParams.get('error')
    if (error !== null) return { error, claims: {} as ReturnType<typeof decodeJwt>, body: {} as Record<string, string> }
    const { body } = await server.token({
      ...{ grant_type: 'authorization_code', redirect_uri: REDIRECT_URI, client_id: clientId },
      ...{ code: landed.searchParams.get('code') ?? '', code_verifier: verifier },
    })
    return { error, claims: decodeJwt(body['access_token'] ?? ''), body }
  }

  it('leads to the required providers alone, until a scope names another one', async () => {
    const cookies = new Map<string, string>()
    const first = await login('openid mcp', cookies)
    expect([walked(), first.claims['scope']]).toEqual([[0, 0], 'openid mcp'])
    const begun = server.idp.hits('/auth')
    const second = await login('openid mcp upstream:chat', cookies)
    expect([walked(), second.claims['scope']]).toEqual([[1, 0], 'openid mcp upstream:chat'])
    expect(second.claims.sub).toBe(first.claims.sub)
    expect(server.idp.hits('/auth')).toBe(begun) // only the provider that was missing is asked
    const third = await login('openid mcp upstream:chat upstream:code', cookies)
    expect([walked(), third.claims['scope']]).toEqual([[1, 1], 'openid mcp upstream:chat upstream:code'])
    expect(server.idp.hits('/auth')).toBe(begun)
    expect(await server.server.tokens.connected(String(first.claims.sub))).toEqual(['corp', 'chat', 'code'])
  })

  it('asks for all of them in a browser without a session', async () => {
    const begun = server.idp.hits('/auth')
    const { claims } = await login('openid upstream:code')
    expect([walked(), claims['scope']]).toEqual([[0, 1], 'openid upstream:code'])
    expect(server.idp.hits('/auth')).toBe(begun + 1)
  })

  it('goes on without a provider that fails or declines, and without its scope', async () => {
    chat.refusal = 'access_denied'
    const { claims, error } = await login('openid upstream:chat upstream:code')
    expect([error, walked(), claims['scope']]).toEqual([null, [1, 1], 'openid upstream:code'])
    chat.refusal = undefined
    chat.answer = { error: 'server_error' }
    expect((await login('openid upstream:chat')).claims['scope']).toBe('openid')
  })

  it('that brings nothing new is refused, and what the client has stays good', async () => {
    const cookies = new Map<string, string>()
    const { body } = await login('openid mcp', cookies)
    chat.refusal = 'access_denied'
    expect((await login('openid mcp upstream:chat', cookies)).error).toBe('access_denied')
    const refresh = { grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '', client_id: clientId }
    expect((await server.token(refresh)).status).toBe(200)
  })

  it('of one whose tokens have ended leads there again, and the session before is not refreshed', async () => {
    const cookies = new Map<string, string>()
    const { claims, body } = await login('openid upstream:chat', cookies)
    await server.server.tokens.remove({ account: String(claims.sub), provider: 'chat' })
    server.server.tokens.needsLogin(String(claims['tsid']), 'chat')
    const refresh = (token: string | undefined) =>
      server.token({ grant_type: 'refresh_token', refresh_token: token ?? '', client_id: clientId })
    await expect.poll(async () => (await refresh(body['refresh_token'])).body['error']).toBe('invalid_grant')
    const again = await login('openid upstream:chat', cookies)
    expect([walked(), again.claims['scope']]).toEqual([[2, 0], 'openid upstream:chat'])
    expect((await refresh(again.body['refresh_token'])).status).toBe(200)
  })

  it('MCP security guide: the session of another browser, and one that was altered, count for nothing', async () => {
    const cookies = new Map<string, string>()
    await login('openid mcp', cookies)
    const begun = server.idp.hits('/auth')
    const session = cookies.get('thv_login') ?? ''
    expect(session).not.toBe('')
    await login('openid upstream:chat', new Map([['thv_login', session]]))
    expect(server.idp.hits('/auth')).toBe(begun + 1)
    cookies.set('thv_login', `${session.slice(0, -4)}${session.at(-4) === 'A' ? 'B' : 'A'}${session.slice(-3)}`)
    await login('openid upstream:chat', cookies)
    expect(server.idp.hits('/auth')).toBe(begun + 2)
    expect(Buffer.from(session, 'base64url').toString('latin1')).not.toContain('ada')
  })
})
