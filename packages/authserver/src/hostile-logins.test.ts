import { TestClock } from '@thv/kernel/clock'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Browser, type Visit } from './testing/browser.ts'
import { REDIRECT_URI, startTestAuthServer, type TestAuthServer } from './testing/test-auth-server.ts'

/* Attacks on the authorization endpoint, the consent page and the callback. The section that forbids each is in its title. */

describe('hostile logins', () => {
  let server: TestAuthServer
  let clientId: string
  beforeAll(async () => {
    server = await startTestAuthServer()
    clientId = await server.client()
  })
  afterAll(async () => await server[Symbol.asyncDispose]())

  const authorize = (params: Readonly<Record<string, string | undefined>>, browser = new Browser()) =>
    browser.visit(server.authorizeUrl(clientId, params).url)

  /** The consent page of a new login. */
  async function consent(browser: Browser): Promise<Visit> {
    const page = await browser.follow(server.authorizeUrl(clientId).url)
    expect(page.text).toContain('Allow this application')
    return page
  }

  /** As far as the login page of the provider; the address of the callback after the user has logged in there. */
  async function callback(browser: Browser): Promise<URL> {
    const allowed = await browser.submit(await consent(browser), { decision: 'allow' })
    const login = await browser.follow(allowed.location ?? '', `${server.issuer}/oauth/callback`)
    const sent = await browser.submit(login, { user: 'ada' })
    const back = await browser.follow(sent.location ?? '', `${server.issuer}/oauth/callback`)
    if (back.location === undefined) throw new Error(`no callback: ${back.status} ${back.text}`)
    return back.location
  }

  it('RFC 6749 §4.1.1: the request that the rows below change begins a login', async () => {
    const { status, location } = await authorize({})
    expect([status, location?.href]).toEqual([303, expect.stringMatching(new RegExp(`^${server.issuer}/oauth/login/[\\w-]+$`))])
  })

  describe('errors that go back to the client', () => {
    it.each<[string, Record<string, string | undefined>, string]>([
      ['RFC 9700 §2.1.1: no PKCE', { code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
      ['RFC 9700 §2.1.1: PKCE with method plain', { code_challenge_method: 'plain' }, 'invalid_request'],
      ['RFC 7636 §4.3: a challenge without a method', { code_challenge_method: undefined }, 'invalid_request'],
      ['RFC 7636 §4.2: a challenge that is too short', { code_challenge: 'short' }, 'invalid_request'],
      ['RFC 9700 §2.1.2: the implicit grant', { response_type: 'token' }, 'unsupported_response_type'],
      ['OAuth 2.0 Form Post Response Mode §5: a page that sends itself', { response_mode: 'form_post' }, 'unsupported_response_mode'],
      ['RFC 8707 §2: a resource that is not allowed', { resource: 'https://other.example.com/mcp' }, 'invalid_target'],
      ['RFC 8707 §2: a resource with a fragment', { resource: `http://127.0.0.1/mcp#x` }, 'invalid_target'],
      ['RFC 6749 §3.3: a scope that the server does not know', { scope: 'openid admin' }, 'invalid_scope'],
      ['OpenID Core §3.1.2.6: no interaction wanted', { prompt: 'none' }, 'login_required'],
      ['RFC 9101 §10.4: a request object by reference', { request_uri: 'https://evil.example.com/r' }, 'request_uri_not_supported'],
    ])('%s', async (_, params, error) => {
      const { status, location } = await authorize(params)
      expect(status).toBe(303)
      expect(location?.href.startsWith(REDIRECT_URI)).toBe(true)
      // The error of a response type that uses the fragment comes in the fragment.
      const found = Object.fromEntries(new URLSearchParams(location?.search || location?.hash.slice(1)))
      expect(found).toMatchObject({ state: 'client-state', iss: server.issuer })
      expect(found['error']).toBe(error)
      expect(found).not.toHaveProperty('code')
    })
  })

  it('RFC 6749 §3.3: a scope beyond those that the client registered for', async () => {
    const { client_id: id } = (await (await server.register({ scope: 'openid' })).json()) as { client_id: string }
    const { location } = await new Browser().visit(server.authorizeUrl(id, { scope: 'openid mcp' }).url)
    expect(location?.href.startsWith(REDIRECT_URI)).toBe(true)
    expect(location?.searchParams.get('error')).toBe('invalid_scope')
  })

  describe('errors that redirect to no one', () => {
    it.each<[string, Record<string, string | undefined>, RegExp]>([
      ['RFC 9700 §4.1.3: another path', { redirect_uri: 'http://127.0.0.1:8765/other' }, /redirect_uri/],
      ['RFC 9700 §4.1.3: a longer path', { redirect_uri: `${REDIRECT_URI}/more` }, /redirect_uri/],
      [
        'RFC 9700 §4.1.3: a query that was not registered',
        { redirect_uri: `${REDIRECT_URI}?next=https://evil.example.com` },
        /redirect_uri/,
      ],
      ['RFC 9700 §4.1.3: encoded dots', { redirect_uri: 'http://127.0.0.1:8765/a/%2e%2e/callback' }, /redirect_uri/],
      ['RFC 9700 §4.1.3: another host', { redirect_uri: 'https://evil.example.com/callback' }, /redirect_uri/],
      ['RFC 9700 §4.1.3: the host as user name', { redirect_uri: 'http://127.0.0.1:8765@evil.example.com/callback' }, /redirect_uri/],
      ['RFC 8252 §8.3: another spelling of loopback', { redirect_uri: 'http://localhost:8765/callback' }, /redirect_uri/],
      ['RFC 8252 §8.3: loopback as a number', { redirect_uri: 'http://127.1:8765/callback' }, /redirect_uri/],
      ['RFC 8252 §7.3: https on loopback', { redirect_uri: 'https://127.0.0.1:8765/callback' }, /redirect_uri/],
      ['RFC 6749 §3.1.2: a fragment', { redirect_uri: `${REDIRECT_URI}#x` }, /redirect_uri/],
      ['RFC 9700 §4.11.2: a script', { redirect_uri: 'javascript:alert(1)' }, /redirect_uri/],
      ['RFC 9700 §4.1.3: digits of another script', { redirect_uri: 'http://１２７.0.0.1:8765/callback' }, /redirect_uri/],
      ['RFC 6749 §3.1.2.3: none at all', { redirect_uri: undefined }, /redirect_uri/],
      ['RFC 6749 §4.1.2.1: an unknown client', { client_id: 'c1.unknown' }, /client is invalid/],
      ['RFC 7591 §5: a client id that was altered', { client_id: 'ALTERED' }, /client is invalid/],
      ['RFC 7591 §5: a client id that was cut', { client_id: 'CUT' }, /client is invalid/],
    ])('%s', async (_, given, reason) => {
      const { client_id: id } = given
      const changed = { ALTERED: `${clientId.slice(0, -4)}AAAA`, CUT: clientId.slice(0, -8) }[id ?? ''] ?? id
      const visit = await authorize(id === undefined ? given : { client_id: changed })
      expect(visit.status).toBe(400)
      expect(visit.location).toBeUndefined()
      expect(visit.text).toContain('could not be completed')
      expect(visit.text).toMatch(reason)
      expect(visit.text).not.toMatch(/<script|node_modules|\.js:\d/)
      expect(visit.headers.get('content-security-policy')).toContain("default-src 'none'")
    })

    it('RFC 9700 §4.1.3: parameters that come twice', async () => {
      const { url } = server.authorizeUrl(clientId)
      url.searchParams.append('redirect_uri', 'https://evil.example.com/')
      const visit = await new Browser().visit(url)
      expect(visit.status).toBe(400)
      expect(visit.location).toBeUndefined()
      expect(visit.text).toMatch(/redirect_uri.*twice/)
    })
  })

  it('RFC 8252 §7.3: another port on loopback is accepted', async () => {
    const { landed } = await server.login(clientId, { redirect_uri: 'http://127.0.0.1:9999/callback' })
    expect(landed.port).toBe('9999')
    expect(landed.searchParams.get('code')).toMatch(/./)
  })

  describe('consent', () => {
    it('RFC 9700 §4.16: the page cannot be framed, runs no script and posts only where the login leads', async () => {
      const page = await consent(new Browser())
      const policy = page.headers.get('content-security-policy') ?? ''
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).toContain(`form-action 'self' ${server.idp.issuer} http://127.0.0.1:8765`)
      expect(page.headers.get('x-frame-options')).toBe('DENY')
      expect(page.headers.get('cache-control')).toBe('no-store')
      expect(page.text).not.toMatch(/<script|javascript:|onclick/i)
      expect(page.text).toContain('a program on this computer')
      expect(page.text).toContain('mcp')
      expect(page.text).toContain('corp')
    })

    it('RFC 9700 §4.7: a form without its token is refused', async () => {
      const browser = new Browser()
      const sent = await browser.submit(await consent(browser), { decision: 'allow', csrf: '' })
      expect([sent.status, sent.location]).toEqual([403, undefined])
    })

    it('RFC 9700 §4.7: the token of another login is refused', async () => {
      const browser = new Browser()
      const other = /name="csrf" value="([^"]+)"/.exec((await consent(browser)).text)?.[1] ?? ''
      const sent = await browser.submit(await consent(browser), { decision: 'allow', csrf: other })
      expect(other).toMatch(/^[\w-]{43}$/)
      expect([sent.status, sent.location]).toEqual([403, undefined])
    })

    it('RFC 9700 §4.7: a form that another site sends is refused', async () => {
      const browser = new Browser()
      const page = await consent(browser)
      for (const site of ['cross-site', 'same-site', 'none']) {
        const sent = await browser.submit(page, { decision: 'allow' }, { 'sec-fetch-site': site })
        expect([site, sent.status, sent.location]).toEqual([site, 403, undefined])
      }
      expect((await browser.submit(page, { decision: 'allow' }, { 'sec-fetch-site': 'same-origin' })).status).toBe(303)
    })

    it('MCP security guide, confused deputy: another browser cannot use the page', async () => {
      const [browser, thief] = [new Browser(), new Browser()]
      const page = await consent(browser)
      expect((await thief.submit(page, { decision: 'allow' })).status).toBe(400)
      // Nor one that has been here, and begun a login of its own.
      await consent(thief)
      const sent = await thief.submit(page, { decision: 'allow' })
      expect([sent.status, sent.location]).toEqual([403, undefined])
      expect((await browser.submit(page, { decision: 'allow' })).status).toBe(303)
    })

    it('MCP security guide, confused deputy: each client is asked for once, and a new one again', async () => {
      const browser = new Browser()
      await callback(browser)
      const again = await browser.visit((await browser.visit(server.authorizeUrl(clientId).url)).location ?? '')
      expect(again.location?.origin).toBe(server.idp.issuer)
      const other = server.authorizeUrl(await server.client()).url
      expect((await browser.follow(other)).text).toContain('Allow this application')
      const wider = server.authorizeUrl(clientId, { scope: 'openid mcp profile' }).url
      expect((await browser.follow(wider)).text).toContain('Allow this application')
    })

    it('MCP security guide, confused deputy: a consent that was made up, or is of another browser, does not count', async () => {
      const first = new Browser()
      await callback(first)
      const thief = new Browser()
      await thief.follow(server.authorizeUrl(clientId).url)
      thief.cookies.set('thv_consents', first.cookies.get('thv_consents') ?? '')
      expect((await thief.follow(server.authorizeUrl(clientId).url)).text).toContain('Allow this application')
      const [body = ''] = (first.cookies.get('thv_consents') ?? '').split('.')
      first.cookies.set('thv_consents', `${body}.${'A'.repeat(43)}`)
      expect((await first.follow(server.authorizeUrl(clientId).url)).text).toContain('Allow this application')
    })

    it('MCP security guide, confused deputy: the page cannot be skipped', async () => {
      const browser = new Browser()
      const page = await consent(browser)
      const uid = page.url.pathname.split('/').at(-1) ?? ''
      const resumed = await browser.follow(`${server.issuer}/oauth/authorize/${uid}`)
      expect(resumed.location).toBeUndefined()
      expect(resumed.text).toMatch(/Allow this application|could not be completed/)
      // Nor can the answer of a provider that was never asked take its place.
      expect((await browser.visit(`${server.issuer}/oauth/callback?code=x&state=${uid}`)).status).toBe(400)
    })

    it('RFC 9700 §4.5.3.1: a consent that was sent for a login that has ended is refused', async () => {
      const browser = new Browser()
      const page = await consent(browser)
      const allowed = await browser.submit(page, { decision: 'allow' })
      const provider = await browser.follow(allowed.location ?? '')
      const sent = await browser.submit(provider, { user: 'ada' })
      const landed = await browser.follow(sent.location ?? '')
      expect(landed.location?.searchParams.get('code')).toMatch(/./)
      const again = await browser.submit(page, { decision: 'allow' })
      expect([again.status, again.location]).toEqual([400, undefined])
    })

    it('a consent can be withdrawn', async () => {
      const browser = new Browser()
      await callback(browser)
      const page = await browser.visit(`${server.issuer}/oauth/account`)
      const id = /name="withdraw" value="([^"]+)"/.exec(page.text)?.[1] ?? ''
      expect((await browser.submit(page, { withdraw: id, csrf: 'x' })).status).toBe(403)
      expect((await browser.submit(page, { withdraw: id })).status).toBe(303)
      expect((await browser.follow(server.authorizeUrl(clientId).url)).text).toContain('Allow this application')
    })

    it('RFC 6749 §4.1.2.1: a user who denies is sent back with access_denied', async () => {
      const browser = new Browser()
      const denied = await browser.submit(await consent(browser), { decision: 'deny' })
      const back = await browser.follow(denied.location ?? '')
      const found = Object.fromEntries(back.location?.searchParams ?? [])
      expect(found).toMatchObject({ error: 'access_denied', iss: server.issuer, state: 'client-state' })
      expect(found).not.toHaveProperty('code')
    })

    it('RFC 9700 §4.11: a client name is shown as text', async () => {
      const name = '<img src=x onerror=alert(1)>"'
      const { client_id: id } = (await (await server.register({ client_name: name })).json()) as { client_id: string }
      const page = await new Browser().follow(server.authorizeUrl(id).url)
      expect(page.text).toContain('Allow this application')
      expect(page.text).not.toContain('<img')
    })
  })

  describe('callback', () => {
    it.each<[string, (query: URLSearchParams) => unknown]>([
      ['RFC 6749 §10.12: no state', (query) => query.delete('state')],
      ['RFC 6749 §10.12: an empty state', (query) => query.set('state', '')],
      ['RFC 6749 §10.12: an unknown state', (query) => query.set('state', 'unknown')],
      ['RFC 6749 §10.12: a state that was altered', (query) => query.set('state', `${query.get('state')?.slice(0, -1)}!`)],
      ['RFC 6749 §3.1: two states', (query) => query.append('state', 'b')],
      ['RFC 6749 §3.1: two codes', (query) => query.append('code', 'y')],
      ['RFC 6749 §4.1.2: nothing at all', (query) => ['state', 'code', 'iss'].map((name) => query.delete(name))],
    ])('%s, and the login stays good for the answer as it was', async (_, change) => {
      const browser = new Browser()
      const url = await callback(browser)
      const hostile = new URL(url)
      change(hostile.searchParams)
      const visit = await browser.visit(hostile)
      expect([visit.status, visit.location]).toEqual([400, undefined])
      expect(visit.text).not.toContain(url.searchParams.get('code'))
      const landed = await browser.follow(url)
      expect(landed.location?.searchParams.get('code')).toMatch(/./)
    })

    it('RFC 9700 §4.7: the login of one browser cannot be ended by another, and stays good for the first', async () => {
      const browser = new Browser()
      const url = await callback(browser)
      const thief = new Browser()
      expect((await thief.visit(url)).status).toBe(400)
      await thief.follow(server.authorizeUrl(clientId).url)
      const visit = await thief.visit(url)
      expect([visit.status, visit.location]).toEqual([400, undefined])
      const landed = await browser.follow(url)
      expect(landed.location?.searchParams.get('code')).toMatch(/./)
    })

    it('RFC 9700 §4.5.3.1: a callback that is repeated is refused', async () => {
      const browser = new Browser()
      const url = await callback(browser)
      expect((await browser.follow(url)).location?.searchParams.get('code')).toMatch(/./)
      const again = await browser.visit(url)
      expect([again.status, again.location]).toEqual([400, undefined])
      expect(again.text).toContain('completed before')
    })

    it('RFC 9700 §4.5: the code of another provider login is refused', async () => {
      const browser = new Browser()
      const [mine, other] = [await callback(browser), await callback(new Browser())]
      mine.searchParams.set('code', other.searchParams.get('code') ?? '')
      const landed = await browser.follow(mine)
      expect(landed.location?.searchParams.get('error')).toBe('access_denied')
    })

    it('RFC 9207 §2.4: a callback that names another issuer is refused (mix-up)', async () => {
      const browser = new Browser()
      const url = await callback(browser)
      url.searchParams.set('iss', 'https://evil.example.com')
      expect((await browser.follow(url)).location?.searchParams.get('error')).toBe('access_denied')
    })

    it('RFC 9207 §2.4: a callback that names no issuer is refused when the provider says that it does', async () => {
      const browser = new Browser()
      const url = await callback(browser)
      url.searchParams.delete('iss')
      expect((await browser.follow(url)).location?.searchParams.get('error')).toBe('access_denied')
    })

    it('RFC 6749 §4.1.2.1: an error of the provider becomes access_denied, without its text', async () => {
      const browser = new Browser()
      const url = await callback(browser)
      url.searchParams.delete('code')
      url.searchParams.set('error', 'server_error')
      url.searchParams.set('error_description', 'secret detail')
      const { location } = await browser.follow(url)
      expect(location?.searchParams.get('error')).toBe('access_denied')
      expect(location?.href).not.toContain('secret')
    })
  })

  it('RFC 9700 §2.6: addresses come from the issuer, whatever Host and forwarding headers say', async () => {
    const headers = { 'x-forwarded-host': 'evil.example.com', 'x-forwarded-proto': 'gopher', forwarded: 'host=evil.example.com' }
    const browser = new Browser()
    const visit = await browser.visit(server.authorizeUrl(clientId).url, { headers })
    expect(visit.location?.origin).toBe(server.issuer)
    // Nor is where the login leads to in the end.
    const allowed = await browser.submit(await browser.visit(visit.location ?? ''), { decision: 'allow' })
    const sent = await browser.submit(await browser.follow(allowed.location ?? ''), { user: 'ada' })
    const back = await browser.follow(sent.location ?? '', `${server.issuer}/oauth/callback`)
    const returned = await browser.visit(back.location ?? '')
    expect(returned.location?.href).toMatch(new RegExp(`^${server.issuer}/oauth/authorize/[\\w-]+$`))
    const metadata = await new Browser().visit(`${server.issuer}/.well-known/oauth-authorization-server`, { headers })
    expect(metadata.text).not.toContain('evil')
  })

  it('RFC 9700 §4.12: an interaction cookie that was altered is refused', async () => {
    const browser = new Browser()
    const page = await consent(browser)
    browser.cookies.set('thv_interaction', 'another')
    expect((await browser.visit(page.url)).status).toBe(400)
    expect((await new Browser().visit(page.url)).status).toBe(400)
    expect((await new Browser().visit(`${server.issuer}/oauth/login/..%2f..`)).status).toBe(404)
  })

  it('RFC 6819 §5.1.6: no log line holds a code, a state, a token or a cookie', async () => {
    const browser = new Browser()
    const url = await callback(browser)
    const landed = await browser.follow(url)
    const secrets = [url, landed.location].flatMap((each) => [each?.searchParams.get('code'), each?.searchParams.get('state')])
    const kept = [...secrets, ...browser.cookies.values(), ...server.saved.map(({ tokens }) => tokens.accessToken)]
    for (const secret of kept) if (secret && secret !== 'client-state') expect(server.logged()).not.toContain(secret)
  })
})

describe('clocks that differ', () => {
  /** The test provider gives ID tokens an hour. */
  const HOUR = 3_600_000
  it.each([
    ['RFC 7519 §4.1.4: an ID token that ended less than a minute ago is good', HOUR + 30_000, /^code,state,iss$/],
    ['RFC 7519 §4.1.4: an ID token that ended longer ago is refused', HOUR + 150_000, /^error,error_description,state,iss$/],
  ])('%s', async (_, aheadMs, members) => {
    await using server = await startTestAuthServer({ clock: new TestClock(Date.now() + aheadMs) })
    const { landed } = await server.login(await server.client())
    expect([...landed.searchParams.keys()].join(',')).toMatch(members)
  })
})
