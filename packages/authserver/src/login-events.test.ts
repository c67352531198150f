import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LoginEvent } from './login-events.ts'
import { REDIRECT_URI, startTestAuthServer, type TestAuthServer } from './testing/test-auth-server.ts'

describe('events for audit', () => {
  let server: TestAuthServer
  const events: LoginEvent[] = []
  beforeAll(async () => {
    server = await startTestAuthServer()
    server.server.observe((event) => events.push(event))
  })
  afterAll(async () => await server[Symbol.asyncDispose]())

  it('tell of registration, consent, login, tokens, reuse and revocation, and hold no secret', async () => {
    const client = await server.client()
    const { landed, verifier } = await server.login(client)
    const code = landed.searchParams.get('code') ?? ''
    const form = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT_URI, client_id: client, code_verifier: verifier }
    const { body } = await server.token(form)
    const refreshed = await server.token({ grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '', client_id: client })
    const revocation = new URLSearchParams({ token: refreshed.body['refresh_token'] ?? '', client_id: client })
    await fetch(`${server.issuer}/oauth/revoke`, { method: 'POST', body: revocation })
    const again = await server.login(client)
    const twice = { ...form, code: again.landed.searchParams.get('code') ?? '', code_verifier: again.verifier }
    await server.token(twice)
    await server.token(twice)
    expect(events.map(({ type, outcome }) => `${type} ${outcome}`)).toEqual([
      'auth_registration success',
      'auth_consent success',
      'auth_login success',
      'auth_token_issue success',
      'auth_token_refresh success',
      'auth_revocation success',
      'auth_consent success',
      'auth_login success',
      'auth_token_issue success',
      'auth_token_reuse denied',
    ])
    expect(events[2]).toMatchObject({ provider: 'corp', account: expect.any(String), address: expect.any(String) })
    expect(events[3]).toMatchObject({ client: 'test', account: events[2]?.account })
    const text = JSON.stringify(events)
    for (const secret of [code, verifier, ...Object.values(body), ...Object.values(refreshed.body)])
      if (String(secret).length > 20) expect(text).not.toContain(secret)
  })

  it('tell of a registration that was refused and of a wrong client secret, without either', async () => {
    await using own = await startTestAuthServer({
      config: { allow_confidential_client_registration: true, insecure_allow_confidential_over_loopback_http: true },
    })
    const told: LoginEvent[] = []
    own.server.observe((event) => told.push(event))
    expect((await own.register({ redirect_uris: ['https://evil.example.com/#fragment-of-mine'] })).status).toBe(400)
    const plain = await fetch(`${own.issuer}/oauth/register`, { method: 'POST', body: 'not-json-of-mine' })
    expect(plain.status).toBe(400)
    const registered = await own.register({ token_endpoint_auth_method: 'client_secret_basic' })
    const { client_id: id = '' } = (await registered.json()) as Record<string, string>
    const basic = { authorization: `Basic ${Buffer.from(`${id}:guessed-secret`).toString('base64')}` }
    for (const path of ['token', 'revoke', 'introspect']) {
      const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'token-of-mine', token: 'token-of-mine' })
      expect((await fetch(`${own.issuer}/oauth/${path}`, { method: 'POST', headers: basic, body })).status).toBe(401)
    }
    expect(told.map(({ type, outcome, reason = '' }) => `${type} ${outcome} ${reason.split(':')[0]}`.trim())).toEqual([
      'auth_registration denied invalid_redirect_uri',
      'auth_registration denied invalid_client_metadata',
      'auth_registration success',
      'auth_client denied invalid_client at /oauth/token',
      'auth_client denied invalid_client at /oauth/revoke',
      'auth_client denied invalid_client at /oauth/introspect',
    ])
    for (const { address } of told) expect(address).toEqual(expect.any(String))
    for (const secret of ['of-mine', 'guessed-secret', id]) expect(`${JSON.stringify(told)}${own.logged()}`).not.toContain(secret)
  })
})
