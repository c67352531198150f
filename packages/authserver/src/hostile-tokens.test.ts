import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { REDIRECT_URI, startTestAuthServer, type TestAuthServer } from './testing/test-auth-server.ts'

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

/* Attacks on the token, revocation and introspection endpoints. The section that forbids each is in its title. */

describe('hostile token requests', () => {
  const clock = new TestClock()
  let server: TestAuthServer
  let clientId: string
  beforeAll(async () => {
    server = await startTestAuthServer({ store: createMemoryAuthStore({ clock }) })
    clientId = await server.client()
  })
  afterAll(async () => await server[Symbol.asyncDispose]())

  async function code(): Promise<Record<string, string>> {
    const { landed, verifier } = await server.login(clientId)
    const value = landed.searchParams.get('code') ?? ''
    return { grant_type: 'authorization_code', code: value, redirect_uri: REDIRECT_URI, client_id: clientId, code_verifier: verifier }
  }
  const refresh = (token: string | undefined, more: object = {}) =>
    server.token({ grant_type: 'refresh_token', refresh_token: token ?? '', client_id: clientId, ...more })
  const post = (path: string, form: Record<string, string>) =>
    fetch(`${server.issuer}${path}`, { method: 'POST', body: new URLSearchParams(form) })

  it.each<[string, Record<string, string | undefined>, string]>([
    ['RFC 7636 §4.6: no verifier', { code_verifier: undefined }, 'invalid_grant'],
    ['RFC 7636 §4.6: another verifier', { code_verifier: 'a'.repeat(43) }, 'invalid_grant'],
    ['RFC 6749 §4.1.3: another redirect URI', { redirect_uri: 'http://127.0.0.1:9/callback' }, 'invalid_grant'],
    ['RFC 6749 §4.1.3: an unknown code', { code: 'unknown' }, 'invalid_grant'],
    ['RFC 6749 §5.2: an unknown client', { client_id: 'c1.unknown' }, 'invalid_client'],
    ['RFC 8707 §2.2: another resource', { resource: 'https://other.example.com/' }, 'invalid_target'],
    ['RFC 9700 §2.4: the password grant', { grant_type: 'password', username: 'a', password: 'b' }, 'unsupported_grant_type'],
    ['RFC 6749 §4.4: client credentials of a public client', { grant_type: 'client_credentials' }, 'unsupported_grant_type'],
    ['RFC 6749 §3.2: no grant type', { grant_type: undefined }, 'invalid_request'],
  ])('%s, and the code stays good for the right request', async (_, change, error) => {
    const right = await code()
    const form = Object.fromEntries(
      Object.entries({ ...right, ...change }).filter((entry): entry is [string, string] => entry[1] !== undefined),
    )
    const answer = await post('/oauth/token', form)
    const text = await answer.text()
    // RFC 6749 §5.2: 401 only for a client that is not known; nothing is kept.
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([error === 'invalid_client' ? 401 : 400, 'no-store'])
    expect(JSON.parse(text)).toEqual({ error, error_description: expect.any(String) })
    expect(text).not.toMatch(/node_modules|\.js:\d/)
    expect((await server.token(right)).status).toBe(200)
  })

  it('RFC 6749 §4.1.3: the code of another client', async () => {
    const form = await code()
    const { status, body } = await server.token({ ...form, client_id: await server.client() })
    expect([status, body['error']]).toEqual([400, 'invalid_grant'])
  })

  it('RFC 6749 §3.2: a parameter that comes twice', async () => {
    const body = new URLSearchParams(await code())
    body.append('client_id', clientId)
    const answer = await fetch(`${server.issuer}/oauth/token`, { method: 'POST', body })
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([400, 'invalid_request'])
  })

  it('RFC 6749 §4.1.2: a code that is used twice is refused, and ends everything that came of it', async () => {
    const form = await code()
    const first = await server.token(form)
    expect(first.status).toBe(200)
    const claims = decodeJwt(first.body['access_token'] ?? '')
    expect(server.server.isRevoked(claims)).toBe(false)
    const second = await server.token(form)
    expect([second.status, second.body['error']]).toEqual([400, 'invalid_grant'])
    expect(server.server.isRevoked(claims)).toBe(true)
    expect((await refresh(first.body['refresh_token'])).body['error']).toBe('invalid_grant')
  })

  it('RFC 6749 §10.5: of fifty redemptions of one code at once, one gets tokens, which end with the others', async () => {
    const form = await code()
    const answers = await Promise.all(Array.from({ length: 50 }, () => server.token(form)))
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    expect(answers.filter(({ body }) => body['error'] === 'invalid_grant')).toHaveLength(49)
    for (const { body } of won) expect((await refresh(body['refresh_token'])).body['error']).toBe('invalid_grant')
  })

  it('RFC 9700 §4.14.2: a refresh token that is used again soon gets a successor; later it ends the family', async () => {
    const { body } = await server.tokens(clientId)
    const both = await Promise.all([refresh(body['refresh_token']), refresh(body['refresh_token'])])
    expect(both.map(({ status }) => status)).toEqual([200, 200])
    await clock.advance(9_000)
    const third = await refresh(body['refresh_token'])
    expect(third.status).toBe(200)
    await clock.advance(2_000)
    const late = await refresh(body['refresh_token'])
    expect([late.status, late.body['error']]).toEqual([400, 'invalid_grant'])
    for (const each of [...both, third]) expect((await refresh(each.body['refresh_token'])).body['error']).toBe('invalid_grant')
    expect(server.server.isRevoked(decodeJwt(third.body['access_token'] ?? ''))).toBe(true)
    expect(server.logged()).toContain('token reused')
  })

  it('RFC 9700 §4.14.2: a refresh token ends its family also long after its record is gone', async () => {
    const { body } = await server.tokens(clientId)
    const next = await refresh(body['refresh_token'])
    await clock.advance(3_600_000)
    expect(await server.store.get('refresh', body['refresh_token'] ?? '')).toBeUndefined()
    const late = await refresh(body['refresh_token'])
    expect([late.status, late.body['error']]).toEqual([400, 'invalid_grant'])
    expect(server.server.isRevoked(decodeJwt(next.body['access_token'] ?? ''))).toBe(true)
    expect((await refresh(next.body['refresh_token'])).body['error']).toBe('invalid_grant')
  })

  it('RFC 9700 §4.14.2: a forged refresh token ends no family', async () => {
    const { body } = await server.tokens(clientId)
    const family = String(decodeJwt(body['access_token'] ?? '')['tsid'])
    const forged = `${'a'.repeat(43)}.${Math.floor(Date.now() / 1_000).toString(36)}.${family}.${'a'.repeat(43)}`
    expect((await refresh(forged)).body['error']).toBe('invalid_grant')
    expect((await refresh(body['refresh_token'])).status).toBe(200)
  })

  it('RFC 6749 §5.2: after the login at a provider has ended, the refresh is refused, so that the client leads its user to a login', async () => {
    const { body } = await server.tokens(clientId)
    const family = String(decodeJwt(body['access_token'] ?? '')['tsid'])
    const record = await server.store.get('login', family)
    await server.store.put('login', family, { value: { ...record?.value, ended: ['corp'] }, ttlMs: 60_000, family })
    const answer = await refresh(body['refresh_token'])
    expect([answer.status, answer.body['error']]).toEqual([400, 'invalid_grant'])
    expect((await refresh((await server.tokens(clientId)).body['refresh_token'])).status).toBe(200)
  })

  it.each<[string, (token: string) => Promise<{ status: number; body: Record<string, string> }>, string]>([
    [
      'RFC 6749 §6: the refresh token of another client',
      async (token) => refresh(token, { client_id: await server.client() }),
      'invalid_grant',
    ],
    ['RFC 6749 §6: more scopes than were granted', (token) => refresh(token, { scope: 'openid mcp profile' }), 'invalid_scope'],
    [
      'RFC 8707 §2.2: a refresh for another resource',
      (token) => refresh(token, { resource: 'https://other.example.com/' }),
      'invalid_target',
    ],
    ['RFC 6749 §6: a refresh token that was altered', (token) => refresh(`${token}x`), 'invalid_grant'],
  ])('%s', async (_, request, error) => {
    const { body } = await server.tokens(clientId)
    const answer = await request(body['refresh_token'] ?? '')
    expect([answer.status, answer.body['error']]).toEqual([400, error])
    // It is refused, and not used up.
    expect((await refresh(body['refresh_token'])).status).toBe(200)
  })

  it('RFC 7009 §2.1: revoking an access token ends its family; that of another client has no effect', async () => {
    const { body } = await server.tokens(clientId)
    const claims = decodeJwt(body['access_token'] ?? '')
    const other = await post('/oauth/revoke', { token: body['access_token'] ?? '', client_id: await server.client() })
    expect([other.status, server.server.isRevoked(claims)]).toEqual([200, false])
    const own = await post('/oauth/revoke', { token: body['access_token'] ?? '', client_id: clientId })
    expect([own.status, server.server.isRevoked(claims)]).toEqual([200, true])
    expect((await refresh(body['refresh_token'])).body['error']).toBe('invalid_grant')
  })

  it('RFC 7009 §2.1: revoking a refresh token ends its family too', async () => {
    const { body } = await server.tokens(clientId)
    expect((await post('/oauth/revoke', { token: body['refresh_token'] ?? '', client_id: clientId })).status).toBe(200)
    expect(server.server.isRevoked(decodeJwt(body['access_token'] ?? ''))).toBe(true)
  })

  it('RFC 7009 §2.2: a token that never was is revoked without an error', async () => {
    for (const token of ['x', 'a.b.c', 'e30.e30.e30'])
      expect((await post('/oauth/revoke', { token, client_id: clientId })).status).toBe(200)
  })

  it('RFC 7662 §2.1: who does not authenticate may not introspect', async () => {
    const { body } = await server.tokens(clientId)
    const answer = await post('/oauth/introspect', { token: body['access_token'] ?? '', client_id: clientId })
    expect(answer.status).toBe(401)
    expect(await answer.json()).toEqual({ error: 'invalid_client', error_description: expect.any(String) })
  })

  it.each<[string, RequestInit]>([
    ['RFC 6749 §4.1.3: JSON instead of a form', { headers: { 'content-type': 'application/json' }, body: '{}' }],
    ['RFC 6749 §5.2: a body of 64 KiB', { body: new URLSearchParams({ grant_type: 'x'.repeat(64 << 10) }) }],
    ['RFC 6749 §5.2: a body of 64 KiB of many parameters', { body: `${'a=b&'.repeat(16 << 10)}grant_type=x`, headers: FORM }],
  ])('%s is an invalid request', async (_, init) => {
    for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/introspect']) {
      const answer = await fetch(`${server.issuer}${path}`, { method: 'POST', ...init })
      expect([path, answer.status]).toEqual([path, 400])
      expect(await answer.json()).toEqual({ error: 'invalid_request', error_description: expect.any(String) })
    }
  })

  it('RFC 6749 §3.2: a GET is not allowed', async () => {
    for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/introspect']) {
      const answer = await fetch(`${server.issuer}${path}`)
      expect([path, answer.status, answer.headers.get('allow')?.split(', ')[0]]).toEqual([path, 405, 'POST'])
    }
  })

  it('RFC 6749 §10.4: no log line holds a token', async () => {
    const { body } = await server.tokens(clientId)
    for (const name of ['access_token', 'refresh_token'] as const) expect(server.logged()).not.toContain(body[name])
  })
})

describe('a store that does not answer', () => {
  it('RFC 9700 §4.14.2, RFC 7009 §2.2.1: 503 and Retry-After, nothing used up, and no revocation that did not happen', async () => {
    const store = createMemoryAuthStore()
    await using server = await startTestAuthServer({ store })
    const client = await server.client()
    const { body } = await server.tokens(client)
    const [token, refreshToken] = [body['access_token'] ?? '', body['refresh_token'] ?? '']
    const ask = (path: string, form: Record<string, string>) =>
      fetch(`${server.issuer}${path}`, { method: 'POST', body: new URLSearchParams({ client_id: client, ...form }) })
    const requests: [string, Record<string, string>][] = [
      ['/oauth/token', { grant_type: 'refresh_token', refresh_token: refreshToken }],
      ['/oauth/revoke', { token }],
      ['/oauth/revoke', { token: refreshToken }],
    ]
    const { get, isRevoked } = store
    const away = () => Promise.reject(new ThvError('store_unavailable', 'away'))
    Object.assign(store, { get: away, isRevoked: away })
    for (const [path, form] of requests) {
      const answer = await ask(path, form)
      expect([path, answer.status, answer.headers.get('retry-after')]).toEqual([path, 503, '2'])
      expect(await answer.json()).toMatchObject({ error: 'temporarily_unavailable' })
    }
    Object.assign(store, { get, isRevoked })
    expect((await ask('/oauth/token', { grant_type: 'refresh_token', refresh_token: refreshToken })).status).toBe(200)
  })
})

describe('a store that fails in the middle', () => {
  it.each(['replace', 'get'] as const)('RFC 6749 §4.1.2: uses up neither code nor refresh token when %s fails', async (method) => {
    const clock = new TestClock()
    const store = createMemoryAuthStore({ clock })
    await using server = await startTestAuthServer({ store })
    const client = await server.client()
    const { landed, verifier } = await server.login(client)
    const code = landed.searchParams.get('code') ?? ''
    const redeem = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT_URI, client_id: client, code_verifier: verifier }
    /** The request fails at each operation in turn; in between more time passes than any grace allows. */
    async function afterFailures(form: Record<string, string>) {
      const original = store[method]
      for (let failing = 1; ; failing++) {
        let calls = 0
        const failed = (...args: never[]) =>
          ++calls === failing
            ? Promise.reject(new ThvError('store_unavailable', 'away'))
            : (original as (...all: never[]) => Promise<unknown>)(...args)
        Object.assign(store, { [method]: failed })
        const answer = await server.token(form)
        Object.assign(store, { [method]: original })
        if (calls < failing) return answer
        expect([answer.status, answer.body['error']]).toEqual([503, 'temporarily_unavailable'])
        await clock.advance(60_000)
      }
    }
    const first = await afterFailures(redeem)
    expect(first.status).toBe(200)
    const next = await afterFailures({ grant_type: 'refresh_token', refresh_token: first.body['refresh_token'] ?? '', client_id: client })
    expect(next.status).toBe(200)
    expect(server.logged()).not.toContain('token reused')
  })
})

describe('limits of one address', () => {
  it('RFC 6749 §10.10: registrations are limited, and the answer says when to come again', async () => {
    const clock = new TestClock()
    await using server = await startTestAuthServer({ oneAddress: true, clock })
    const statuses: number[] = []
    for (let n = 0; n < 7; n++) statuses.push((await server.register()).status)
    expect(statuses).toEqual([201, 201, 201, 201, 201, 429, 429])
    expect((await server.register()).headers.get('retry-after')).toBe('1')
    await clock.advance(1_000)
    expect((await server.register()).status).toBe(201)
  })

  it('RFC 6585 §4: a hundred people behind one address begin their login at once, and the next one gets a page that tries again', async () => {
    const clock = new TestClock()
    await using server = await startTestAuthServer({ oneAddress: true, clock })
    const open = () => fetch(`${server.issuer}/oauth/authorize`)
    const first = await Promise.all(Array.from({ length: 100 }, open))
    expect(first.filter(({ status }) => status === 429)).toEqual([])
    const answer = await open()
    const [seconds, text] = [Number(answer.headers.get('retry-after')), await answer.text()]
    expect([answer.status, answer.headers.get('content-type')]).toEqual([429, 'text/html; charset=utf-8'])
    expect(seconds).toBeOneOf([1, 2, 3, 4])
    expect(text).toContain(`<meta http-equiv="refresh" content="${seconds}">`)
    expect(text).toMatch(new RegExp(`tries again in ${seconds} seconds?\\.`))
    expect(text).not.toContain('<script')
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
    await clock.advance(1_000)
    expect((await open()).status).not.toBe(429)
  })

  it('RFC 6585 §4: a form that is turned away is not sent again by the page', async () => {
    await using server = await startTestAuthServer({ oneAddress: true, clock: new TestClock() })
    const send = () => fetch(`${server.issuer}/oauth/account`, { method: 'POST', body: new URLSearchParams({ 'end-all': '1' }) })
    for (let n = 0; n < 20; n++) expect((await send()).status).toBe(403)
    const answer = await send()
    const [seconds, text] = [answer.headers.get('retry-after'), await answer.text()]
    expect(answer.status).toBe(429)
    expect(text).toMatch(new RegExp(`Go back and try again in ${seconds} seconds?\\.`))
    expect(text).not.toContain('http-equiv')
  })

  it('RFC 6749 §2.3.1: wrong client secrets are limited', async () => {
    await using server = await startTestAuthServer({ oneAddress: true, clock: new TestClock() })
    const ask = (path: string) =>
      fetch(`${server.issuer}${path}`, {
        method: 'POST',
        headers: { authorization: 'Basic YTpi' },
        body: new URLSearchParams({ grant_type: 'x', token: 'x' }),
      })
    for (const path of ['/oauth/token', '/oauth/introspect', '/oauth/revoke', '/oauth/token', '/oauth/token']) {
      const answer = await ask(path)
      expect([path, answer.status, answer.headers.get('www-authenticate')]).toEqual([path, 401, expect.stringMatching(/^Basic realm="/)])
      expect(await answer.json()).toMatchObject({ error: 'invalid_client' })
    }
    expect((await ask('/oauth/introspect')).status).toBe(429)
  })
})
