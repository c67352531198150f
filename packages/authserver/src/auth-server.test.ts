import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestAuthServer, type TestAuthServer } from './testing/test-auth-server.ts'

describe('an authorization server with an upstream provider', () => {
  let server: TestAuthServer
  beforeAll(async () => {
    server = await startTestAuthServer()
  })
  afterAll(async () => await server[Symbol.asyncDispose]())

  it('registers a client, logs a user in upstream and issues tokens for the resource', async () => {
    const registered = await server.register()
    expect(registered.status).toBe(201)
    const client = (await registered.json()) as { client_id: string }
    expect(client.client_id).toMatch(/^c1\./)
    const { landed, verifier } = await server.login(client.client_id)
    expect(Object.fromEntries(landed.searchParams)).toMatchObject({ state: 'client-state', iss: server.issuer })
    const code = landed.searchParams.get('code') ?? ''
    const form = {
      grant_type: 'authorization_code',
      code,
      redirect_uri: 'http://127.0.0.1:8765/callback',
      client_id: client.client_id,
      code_verifier: verifier,
    }
    const { status, body } = await server.token(form)
    expect({ status, body }).toMatchObject({ status: 200, body: { token_type: 'Bearer', scope: 'openid mcp' } })
    const claims = decodeJwt(body['access_token'] ?? '')
    expect(claims).toMatchObject({
      iss: server.issuer,
      aud: server.resource,
      client_id: client.client_id,
      scope: 'openid mcp',
      tsid: expect.any(String),
    })
    expect(claims.sub).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(server.server.findKeys(decodeProtectedHeader(body['access_token'] ?? '') as { alg: string })).toHaveLength(1)
    expect(server.saved).toMatchObject([
      { account: claims.sub, provider: 'corp', subject: 'ada', tokens: { accessToken: expect.any(String) } },
    ])
    const refreshed = await server.token({
      grant_type: 'refresh_token',
      refresh_token: body['refresh_token'] ?? '',
      client_id: client.client_id,
    })
    expect(refreshed.status).toBe(200)
    expect(decodeJwt(refreshed.body['access_token'] ?? '').sub).toBe(claims.sub)
  })

  it('takes the scope with which a call asks for a login at a provider, and that of no other one', async () => {
    const client = await server.client()
    const { landed, verifier } = await server.login(client, { scope: 'openid mcp upstream:corp' })
    const code = landed.searchParams.get('code') ?? ''
    const redirect_uri = 'http://127.0.0.1:8765/callback'
    const form = { grant_type: 'authorization_code', code, redirect_uri, client_id: client, code_verifier: verifier }
    expect(await server.token(form)).toMatchObject({ status: 200, body: { scope: 'openid mcp upstream:corp' } })
    const { url } = server.authorizeUrl(client, { scope: 'openid mcp upstream:other' })
    const refused = await fetch(url, { redirect: 'manual' })
    expect(new URL(refused.headers.get('location') ?? '').searchParams.get('error')).toBe('invalid_scope')
  })
})
