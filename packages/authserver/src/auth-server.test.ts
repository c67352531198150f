import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock, TestClock } from '@thv/kernel/clock'
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

describe('secrets of the server', () => {
  it('are read again when their files change: what the old ones sealed is good as long as they are listed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'thv-secrets-'))
    const [first, second] = [join(folder, 'hmac-0'), join(folder, 'hmac-1')]
    // As text: a line end is cut off, and random bytes may end with one.
    const [old = '', other = '', next = ''] = Array.from({ length: 3 }, () => randomBytes(32).toString('hex'))
    await writeFile(first, old)
    await writeFile(second, other)
    const timers = new TestClock()
    const clock = { ...systemClock, now: () => Date.now(), monotonic: () => performance.now(), setTimer: timers.setTimer.bind(timers) }
    await using server = await startTestAuthServer({ config: { hmac_secret_files: [first, second] }, clock: clock as typeof systemClock })
    const client = await server.client()
    const { body } = await server.tokens(client)
    await writeFile(first, next)
    await writeFile(second, old)
    await timers.advance(30_000)
    await expect.poll(() => server.logged()).toContain('secrets of the authorization server replaced')
    expect((await server.tokens(client)).status).toBe(200)
    const refresh = { grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '', client_id: client }
    expect((await server.token(refresh)).status).toBe(200)
    // The new one seals: without the old one only ids of before are unknown.
    const later = await server.client()
    await writeFile(second, other)
    await timers.advance(30_000)
    await expect.poll(async () => (await server.authorize(client)).status).toBe(400)
    expect((await server.authorize(later)).status).toBe(303)
    await rm(second)
    await timers.advance(30_000)
    await expect.poll(() => server.logged()).toContain('keys or secrets could not be read again; the old ones stay')
    expect((await server.authorize(later)).status).toBe(303)
    await rm(folder, { recursive: true })
  })
})

describe('cookies', () => {
  it('RFC 6265bis §4.1.3.2: have the prefix of their host where the login pages are https', async () => {
    const base = 'https://login.example.com'
    await using server = await startTestAuthServer({ config: { authorization_endpoint_base_url: base } })
    const begun = await server.authorize(await server.client())
    const uid = new URL(begun.headers.get('location') ?? '')
    expect(uid.origin).toBe(base)
    const cookies = begun.headers.getSetCookie()
    expect(cookies.map((line) => line.split('=')[0])).toContain('__Host-thv_interaction')
    const page = await fetch(`${server.issuer}${uid.pathname}`, {
      headers: { cookie: cookies.map((line) => line.split(';')[0]).join('; ') },
    })
    expect(page.status).toBe(200)
    const all = [...cookies, ...page.headers.getSetCookie()]
    expect(all.some((line) => line.startsWith('__Host-thv_browser='))).toBe(true)
    for (const line of all) {
      expect(line).toMatch(/^__(Host|Secure)-/)
      expect(line).toMatch(/; secure/i)
      expect(line).toMatch(/; httponly/i)
      if (line.startsWith('__Host-')) expect(line).toMatch(/; path=\/(;|$)/i)
    }
  })
})
