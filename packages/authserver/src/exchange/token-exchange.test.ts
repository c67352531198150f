import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { TestClock } from '@thv/kernel/clock'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { decodeJwt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestAuthServer, type TestAuthServer } from '../testing/test-auth-server.ts'
import { compileActorMatcher } from './actor-matcher.ts'
import { JWT_BEARER, TOKEN_EXCHANGE } from './grant-types.ts'
import { ACCESS_TOKEN } from './token-exchange.ts'

const SECRET = 'secret-of-the-agent-with-32-chars-and-more'
const ISSUER = 'https://partner.example.com'
const PARTNER_AUDIENCE = 'https://mcp.example.com'

/** An issuer whose keys are on loopback. */
async function startIssuer() {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }
  const http = createServer((_request, response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: [jwk] })),
  ).listen(0, '127.0.0.1')
  await new Promise((resolve) => http.once('listening', resolve))
  const now = () => Math.floor(Date.now() / 1_000)
  return {
    jwksUrl: `http://127.0.0.1:${(http.address() as AddressInfo).port}/keys`,
    sign: (claims: JWTPayload = {}, key = privateKey) =>
      new SignJWT({ iss: ISSUER, sub: 'bob', aud: PARTNER_AUDIENCE, iat: now(), exp: now() + 600, ...claims })
        .setProtectedHeader({ alg: 'ES256', kid: 'k1', typ: 'JWT' })
        .sign(key),
    close: () => http.close(),
  }
}

describe('tokens for tokens', () => {
  let issuer: Awaited<ReturnType<typeof startIssuer>>
  let server: TestAuthServer
  let clientId: string
  beforeAll(async () => {
    issuer = await startIssuer()
    const trusted = {
      issuer_url: ISSUER,
      jwks_url: issuer.jwksUrl,
      allow_private_ips: true,
      expected_audience: PARTNER_AUDIENCE,
      allowed_delegate_clients: ['agent', 'narrow'],
      allowed_actors: ['partner-app'],
      actor_matcher: "claims.team == 'tools' && claims.level >= 3",
      allow_may_act: true,
      jwt_bearer_grant: {
        max_assertion_age: '2m',
        subject_bindings: [
          { subject: 'robot', allowed_resources: ['RESOURCE'] },
          { subject: 'elsewhere', allowed_resources: ['https://elsewhere.example.com/mcp'] },
        ],
      },
    }
    const delegate = { client_secret_env_var: 'AGENT_SECRET', audiences: ['RESOURCE'] }
    server = await startTestAuthServer({
      store: createMemoryAuthStore(),
      env: { AGENT_SECRET: SECRET },
      configFor: (resource) =>
        JSON.parse(
          JSON.stringify({
            delegate_clients: [
              { ...delegate, client_id: 'agent', scopes: ['openid', 'mcp'] },
              { ...delegate, client_id: 'narrow', scopes: ['profile'] },
              { ...delegate, client_id: 'stranger', scopes: ['mcp'] },
            ],
            trusted_issuers: [trusted],
          }).replaceAll('RESOURCE', resource),
        ) as object,
    })
    clientId = await server.client()
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    issuer.close()
  })

  const userToken = async () => (await server.tokens(clientId)).body['access_token'] ?? ''
  const basic = (id: string, secret = SECRET) => ({ authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` })
  const exchange = (token: string, more: Record<string, string | undefined> = {}, headers = basic('agent')) => {
    const form = { grant_type: TOKEN_EXCHANGE, subject_token: token, subject_token_type: ACCESS_TOKEN, ...more }
    const given = Object.entries(form).filter((entry): entry is [string, string] => entry[1] !== undefined)
    return server.token(Object.fromEntries(given), headers)
  }
  const redeem = (assertion: string, more: Record<string, string> = {}) => server.token({ grant_type: JWT_BEARER, assertion, ...more })

  describe('token exchange', () => {
    it('gives a delegate client a token of the user, with itself as the actor', async () => {
      const token = await userToken()
      const subject = decodeJwt(token)
      const { status, body } = await exchange(token)
      expect(status).toBe(200)
      expect(body).toMatchObject({ issued_token_type: ACCESS_TOKEN, token_type: 'Bearer', scope: 'openid mcp' })
      expect(body['refresh_token']).toBeUndefined()
      const claims = decodeJwt(body['access_token'] ?? '')
      expect(claims).toMatchObject({
        ...{ iss: server.issuer, sub: subject.sub, aud: server.resource, client_id: 'agent', tsid: subject['tsid'], scope: 'openid mcp' },
        act: { iss: server.issuer, sub: 'agent' },
      })
      expect(Number(claims.exp) - Number(claims.iat)).toBe(900)
      // Earlier actors stand inside, and the chain ends with the login of the user.
      const again = await exchange(body['access_token'] ?? '', { scope: 'mcp' })
      expect(decodeJwt(again.body['access_token'] ?? '')).toMatchObject({ scope: 'mcp', act: { sub: 'agent', act: { sub: 'agent' } } })
      await server.store.revokeFamily(String(subject['tsid']), 60_000)
      expect(server.server.isRevoked(claims)).toBe(true)
      expect((await exchange(body['access_token'] ?? '')).body['error']).toBe('invalid_grant')
    })

    it('takes the secret in the form as well, and its tokens can be introspected', async () => {
      const post = { client_id: 'agent', client_secret: SECRET }
      const { body } = await exchange(await userToken(), post, {} as ReturnType<typeof basic>)
      const answer = await fetch(`${server.issuer}/oauth/introspect`, {
        method: 'POST',
        body: new URLSearchParams({ ...post, token: body['access_token'] ?? '' }),
      })
      expect(await answer.json()).toMatchObject({ active: true, act: { sub: 'agent' } })
    })

    it('RFC 7009 §2.1: a delegate client that revokes its token does not end the login of the user', async () => {
      const token = await userToken()
      const { body } = await exchange(token)
      const form = { client_id: 'agent', client_secret: SECRET, token: body['access_token'] ?? '' }
      const answer = await fetch(`${server.issuer}/oauth/revoke`, { method: 'POST', body: new URLSearchParams(form) })
      expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([400, 'unsupported_token_type'])
      expect(server.server.isRevoked(decodeJwt(token))).toBe(false)
    })

    it.each<[string, Record<string, string | undefined>, string]>([
      ['RFC 8693 §2.1: no subject token', { subject_token: undefined }, 'invalid_request'],
      ['RFC 8693 §2.1: no type', { subject_token_type: undefined }, 'invalid_request'],
      ['RFC 8693 §2.1: an ID token', { subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' }, 'invalid_request'],
      [
        'RFC 8693 §2.1: a refresh token wanted',
        { requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' },
        'invalid_request',
      ],
      ['RFC 8693 §2.1: an actor token', { actor_token: 'x', actor_token_type: ACCESS_TOKEN }, 'invalid_request'],
      ['RFC 8693 §2.2.2: another target', { resource: 'https://other.example.com/mcp' }, 'invalid_target'],
      ['RFC 8693 §2.2.2: two targets', { audience: 'https://other.example.com/mcp', resource: 'RESOURCE' }, 'invalid_target'],
      ['RFC 6749 §3.3: more scopes than the user granted', { scope: 'openid profile' }, 'invalid_scope'],
      ['RFC 8693 §2.2.2: not a token', { subject_token: 'x' }, 'invalid_grant'],
    ])('%s', async (_, change, error) => {
      const more = Object.fromEntries(Object.entries(change).map(([name, value]) => [name, value?.replace('RESOURCE', server.resource)]))
      const { status, body } = await exchange(await userToken(), more)
      expect([status, body['error']]).toEqual([400, error])
      expect(body['access_token']).toBeUndefined()
    })

    it('RFC 6749 §3.3: the scopes of the client bound those of the user', async () => {
      const { body } = await exchange(await userToken(), {}, basic('narrow'))
      expect(decodeJwt(body['access_token'] ?? '')['scope']).toBeUndefined()
    })

    it('RFC 6749 §5.2: a wrong secret, and clients that registered themselves', async () => {
      const token = await userToken()
      expect((await exchange(token, {}, basic('agent', `${SECRET}x`))).body['error']).toBe('invalid_client')
      const self = await exchange(token, { client_id: clientId }, {} as ReturnType<typeof basic>)
      expect([self.status, self.body['error']]).toEqual([400, 'invalid_request'])
      const code = await server.token({ grant_type: 'authorization_code', code: 'x', redirect_uri: 'https://a.example' }, basic('agent'))
      expect(code.body['error']).toBe('invalid_request')
    })

    it('RFC 8725 §3.10: a token with an altered signature', async () => {
      const token = await userToken()
      const [head, body] = token.split('.')
      expect((await exchange(`${head}.${body}.${'A'.repeat(86)}`)).body['error']).toBe('invalid_grant')
    })
  })

  describe('token exchange for users of a trusted issuer', () => {
    it.each<[string, JWTPayload]>([
      ['an allowed actor', { azp: 'partner-app' }],
      ['an actor that the expression matches', { team: 'tools', level: 3 }],
      ['a client that the token names', { may_act: { sub: 'agent' } }],
    ])('takes the token of %s', async (_, claims) => {
      const { status, body } = await exchange(await issuer.sign({ ...claims, scope: 'mcp other', email: 'bob@partner.example.com' }))
      expect(status).toBe(200)
      expect(decodeJwt(body['access_token'] ?? '')).toMatchObject({
        ...{ sub: `${ISSUER}#bob`, scope: 'mcp', aud: server.resource, act: { sub: 'agent' }, email: 'bob@partner.example.com' },
      })
    })

    it('gives no longer life than the presented token has', async () => {
      const exp = Math.floor(Date.now() / 1_000) + 100
      const { body } = await exchange(await issuer.sign({ azp: 'partner-app', exp }))
      expect(decodeJwt(body['access_token'] ?? '').exp).toBe(exp)
    })

    it.each<[string, JWTPayload, string]>([
      ['RFC 8693 §5: no consent', {}, 'invalid_grant'],
      ['RFC 8693 §5: another actor', { azp: 'other-app' }, 'invalid_grant'],
      ['RFC 8693 §4.4: another client may act', { may_act: { sub: 'narrow' } }, 'invalid_grant'],
      ['RFC 8693 §4.4: a client of another issuer may act', { may_act: { iss: ISSUER, sub: 'agent' } }, 'invalid_grant'],
      ['RFC 8725 §3.9: another audience', { azp: 'partner-app', aud: 'https://other.example.com' }, 'invalid_grant'],
      ['RFC 8725 §3.8: another issuer', { azp: 'partner-app', iss: 'https://evil.example.com' }, 'invalid_grant'],
      ['RFC 7519 §4.1.4: expired', { azp: 'partner-app', exp: 1_000 }, 'invalid_grant'],
      ['RFC 7519 §4.1.5: not valid yet', { azp: 'partner-app', nbf: 4_000_000_000 }, 'invalid_grant'],
      ['an expression over a claim of another type', { team: ['tools'], level: 'x' }, 'invalid_grant'],
    ])('%s', async (_, claims, error) => {
      const { status, body } = await exchange(await issuer.sign(claims))
      expect([status, body['error']]).toEqual([400, error])
    })

    it('RFC 8725 §3.10: signed by another key', async () => {
      const { privateKey } = await generateKeyPair('ES256')
      expect((await exchange(await issuer.sign({ azp: 'partner-app' }, privateKey))).body['error']).toBe('invalid_grant')
    })

    it('RFC 8693 §5: a client that may not exchange tokens of this issuer', async () => {
      const { body } = await exchange(await issuer.sign({ azp: 'partner-app' }), {}, basic('stranger'))
      expect(body['error']).toBe('unauthorized_client')
    })
  })

  describe('assertions of a trusted issuer', () => {
    const assertion = (claims: JWTPayload = {}) => issuer.sign({ aud: server.issuer, sub: 'robot', jti: crypto.randomUUID(), ...claims })

    it('are redeemed once, without a client', async () => {
      const signed = await assertion()
      const answers = await Promise.all(Array.from({ length: 10 }, () => redeem(signed, { scope: 'mcp' })))
      const won = answers.filter(({ status }) => status === 200)
      expect(won).toHaveLength(1)
      expect(answers.filter(({ body }) => body['error'] === 'invalid_grant')).toHaveLength(9)
      expect(decodeJwt(won[0]?.body['access_token'] ?? '')).toMatchObject({ sub: `${ISSUER}#robot`, aud: server.resource, scope: 'mcp' })
    })

    it.each<[string, JWTPayload, Record<string, string>, string]>([
      ['RFC 7523 §3.3: for another audience', { aud: PARTNER_AUDIENCE }, {}, 'invalid_grant'],
      ['RFC 7523 §3.7: without an id', { jti: '' }, {}, 'invalid_grant'],
      ['RFC 7523 §3.6: too old', { iat: Math.floor(Date.now() / 1_000) - 300 }, {}, 'invalid_grant'],
      ['RFC 7523 §3.6: issued in the future', { iat: Math.floor(Date.now() / 1_000) + 300 }, {}, 'invalid_grant'],
      ['RFC 7523 §3.4: expired', { exp: 1_000 }, {}, 'invalid_grant'],
      ['RFC 7523 §3.2: a subject without a binding', { sub: 'bob' }, {}, 'invalid_grant'],
      ['RFC 7523 §3.1: another issuer', { iss: 'https://evil.example.com' }, {}, 'invalid_grant'],
      ['RFC 8707 §2: a resource of another server', {}, { resource: 'https://elsewhere.example.com/mcp' }, 'invalid_target'],
      ['RFC 8707 §2: a subject without a resource here', { sub: 'elsewhere' }, {}, 'invalid_target'],
      ['RFC 6749 §3.3: a scope that is not supported', {}, { scope: 'admin' }, 'invalid_scope'],
    ])('%s', async (_, claims, more, error) => {
      const { status, body } = await redeem(await assertion(claims), more)
      expect([status, body['error']]).toEqual([400, error])
      expect(JSON.stringify(body)).not.toMatch(/node_modules|\.[jt]s:\d/)
    })

    it('RFC 7523 §3.6: issued a little in the future, by a clock that is ahead', async () => {
      expect((await redeem(await assertion({ iat: Math.floor(Date.now() / 1_000) + 30 }))).status).toBe(200)
    })

    it('RFC 6749 §3.2: none, or two of them', async () => {
      expect((await server.token({ grant_type: JWT_BEARER })).body['error']).toBe('invalid_request')
      const body = new URLSearchParams([
        ['grant_type', JWT_BEARER],
        ['assertion', 'a'],
        ['assertion', 'b'],
      ])
      const answer = await fetch(`${server.issuer}/oauth/token`, { method: 'POST', body })
      expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([400, 'invalid_request'])
    })

    it('RFC 9700 §4: a body of 64 KiB is refused, and other grants are as before', async () => {
      expect(await redeem('x'.repeat(70_000))).toMatchObject({ status: 413, body: { error: 'invalid_request' } })
      const { body } = await server.tokens(clientId)
      const refreshed = await server.token({ grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '', client_id: clientId })
      expect(refreshed.status).toBe(200)
    })

    it('RFC 6749 §10: no log line holds a token or a secret', async () => {
      const [token, signed] = [await userToken(), await assertion()]
      const exchanged = await exchange(token)
      await redeem(signed)
      for (const text of [token, signed, exchanged.body['access_token'], SECRET]) expect(server.logged()).not.toContain(text)
      expect(server.logged()).toContain('token exchanged')
    })
  })

  it('are named in the metadata', async () => {
    const answer = await fetch(`${server.issuer}/.well-known/oauth-authorization-server`)
    expect(((await answer.json()) as { grant_types_supported: string[] }).grant_types_supported).toEqual([
      ...['authorization_code', 'refresh_token', TOKEN_EXCHANGE, JWT_BEARER],
    ])
  })
})

describe('configuration', () => {
  it.each([
    ['short', 'must have at least 32 characters'],
    ['', 'must have at least 32 characters'],
  ])('the secret %j of a delegate client stops the start, and is not shown', async (secret, problem) => {
    const config = { delegate_clients: [{ client_id: 'agent', client_secret_env_var: 'AGENT', scopes: [], audiences: [] }] }
    const started = startTestAuthServer({ config, env: { AGENT: secret }, clock: new TestClock() })
    await expect(started).rejects.toThrow(problem)
  })

  it.each(['claims.', 'claims.team +', "'text'", 'unknown == 1'])('the expression %j is refused', (expression) => {
    expect(() => compileActorMatcher(expression, ISSUER)).toThrow('is not a CEL condition over claims')
  })
})
