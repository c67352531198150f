import { TestClock } from '@thv/kernel/clock'
import type { UpstreamConfig } from '@thv/runconfig/auth-server-config'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Browser, type Visit } from '../testing/browser.ts'
import { type PlainProvider, startPlainProvider } from '../testing/plain-provider.ts'
import { REDIRECT_URI, startTestAuthServer, type TestAuthServer } from '../testing/test-auth-server.ts'
import { UpstreamVault } from '../vault/upstream-vault.ts'

interface LoggedIn {
  readonly browser: Browser
  readonly account: string
  readonly family: string
  readonly refreshToken: string
}

describe('a user who connects a provider, or looks at the account', () => {
  let chat: PlainProvider
  let server: TestAuthServer
  let clientId: string
  beforeAll(async () => {
    chat = await startPlainProvider()
    const upstream = {
      ...{ name: 'chat', type: 'oauth2', login_policy: 'onDemand' },
      oauth2_config: {
        ...{
          authorization_endpoint: `${chat.base}/authorize`,
          token_endpoint: `${chat.base}/token`,
          client_id: 'us',
          allow_private_ips: true,
        },
        identity_from_token: { subject_path: 'id' },
      },
    }
    server = await startTestAuthServer({
      store: createMemoryAuthStore(),
      more: [upstream] as unknown as UpstreamConfig[],
      tokens: (refreshers, sealed) => new UpstreamVault({ ...sealed, cipher: () => sealed.cipher, refreshers }),
    })
    clientId = await server.client()
  })
  beforeEach(() => {
    Object.assign(chat, { answer: { access_token: 'at', id: '1', expires_in: 3_600 }, refusal: undefined })
    chat.seen.length = 0
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    await chat[Symbol.asyncDispose]()
  })

  /** Fills in whatever forms come, until a page without one, or the client. */
  async function through(browser: Browser, to: URL | string, user: string): Promise<Visit> {
    let visit = await browser.follow(to)
    for (let step = 0; step < 6 && visit.status === 200 && /<form|name="user"/.test(visit.text); step++) {
      const sent = await browser.submit(visit, { user, decision: 'allow' })
      visit = sent.location === undefined ? sent : sent.location.href.startsWith(REDIRECT_URI) ? sent : await browser.follow(sent.location)
      if (visit.location?.href.startsWith(REDIRECT_URI)) return visit
    }
    return visit
  }

  async function logIn(user: string, browser = new Browser()): Promise<LoggedIn> {
    const { url, verifier } = server.authorizeUrl(clientId)
    const { location } = await through(browser, url, user)
    const { body } = await server.token({
      ...{ grant_type: 'authorization_code', redirect_uri: REDIRECT_URI, client_id: clientId },
      ...{ code: location?.searchParams.get('code') ?? '', code_verifier: verifier },
    })
    const claims = decodeJwt(body['access_token'] ?? '')
    return { browser, account: String(claims.sub), family: String(claims['tsid']), refreshToken: body['refresh_token'] ?? '' }
  }

  const tokens = () => server.server.tokens
  const linkFor = ({ account, family }: LoggedIn) => tokens().connectUrl({ account, provider: 'chat' }, family) ?? ''
  const isConnected = async ({ account }: LoggedIn) => (await tokens().connected(account)).includes('chat')

  describe('a link to connect a provider', () => {
    it('asks the user of the link, leads to that provider alone, and lets the session use it', async () => {
      const ada = await logIn('ada')
      expect(await tokens().hasJoined(ada.family, 'chat')).toBe(false)
      const begun = server.idp.hits('/auth')
      const page = await ada.browser.follow(linkFor(ada))
      expect(page.text).toContain('Connect chat?')
      expect(page.text).toContain('<dd>test</dd>')
      expect(page.headers.get('content-security-policy')).toContain(`form-action 'self' ${chat.base}`)
      expect(chat.seen).toEqual([])
      const sent = await ada.browser.submit(page, { decision: 'allow' })
      const done = await ada.browser.follow(sent.location ?? '')
      expect([done.status, done.text.includes('chat is connected')]).toEqual([200, true])
      expect(server.idp.hits('/auth')).toBe(begun)
      expect(await tokens().hasJoined(ada.family, 'chat')).toBe(true)
      expect(await tokens().use({ account: ada.account, provider: 'chat' })).toMatchObject({ kind: 'usable', accessToken: 'at' })
    })

    it('lets a session be refreshed again whose provider had ended', async () => {
      const ada = await logIn('ada')
      const refresh = () => server.token({ grant_type: 'refresh_token', refresh_token: ada.refreshToken, client_id: clientId })
      tokens().needsLogin(ada.family, 'chat')
      await expect.poll(async () => (await refresh()).body['error']).toBe('invalid_grant')
      await through(ada.browser, linkFor(ada), 'ada')
      expect((await refresh()).status).toBe(200)
    })

    it('asks a browser without a session who its user is first', async () => {
      const ada = await logIn('ada')
      await tokens().remove({ account: ada.account, provider: 'chat' })
      const done = await through(new Browser(), linkFor(ada), 'ada')
      expect(done.text).toContain('chat is connected')
      expect(await isConnected(ada)).toBe(true)
    })

    it('MCP elicitation, phishing: another user who opens it is refused, with a session or without', async () => {
      const mallory = await logIn('mallory')
      const bob = await logIn('bob')
      const asBob = await bob.browser.follow(linkFor(mallory))
      expect([asBob.status, asBob.text.includes('for another user')]).toEqual([403, true])
      const later = await through(new Browser(), linkFor(mallory), 'bob')
      expect([later.status, later.text.includes('for another user')]).toEqual([403, true])
      expect(chat.seen).toEqual([])
      expect(await isConnected(mallory)).toBe(false)
    })

    it('does not connect another user at the provider that says who users are', async () => {
      const ada = await logIn('ada')
      const key = { account: ada.account, provider: 'corp' }
      const before = await tokens().use(key)
      const url = tokens().connectUrl(key, ada.family) ?? ''
      for (const name of ada.browser.cookies.keys()) if (!name.startsWith('thv_')) ada.browser.cookies.delete(name) // logged out at the provider
      const refused = await through(ada.browser, url, 'bob')
      expect([refused.status, refused.text.includes('did not confirm')]).toEqual([403, true])
      expect(await tokens().use(key)).toEqual(before)
      const again = tokens().connectUrl(key, ada.family) ?? ''
      for (const name of ada.browser.cookies.keys()) if (!name.startsWith('thv_')) ada.browser.cookies.delete(name)
      expect((await through(ada.browser, again, 'ada')).text).toContain('corp is connected')
    })

    it('is good once', async () => {
      const ada = await logIn('ada')
      const page = await ada.browser.follow(linkFor(ada))
      expect((await ada.browser.submit(page, { decision: 'allow' })).status).toBe(303)
      expect((await ada.browser.submit(page, { decision: 'allow' })).status).toBe(400)
    })

    it('does nothing when the user cancels, or the provider declines', async () => {
      const eve = await logIn('eve')
      const page = await eve.browser.follow(linkFor(eve))
      expect((await eve.browser.submit(page, { decision: 'deny' })).text).toContain('chat is not connected')
      chat.refusal = 'access_denied'
      const declined = await through(eve.browser, linkFor(eve), 'eve')
      expect([declined.status, declined.text.includes('did not confirm')]).toEqual([403, true])
      expect(await isConnected(eve)).toBe(false)
      expect(await tokens().hasJoined(eve.family, 'chat')).toBe(false)
    })

    it('RFC 9700 §4.7: needs the form of the same browser, from this site', async () => {
      const ada = await logIn('ada')
      const page = await ada.browser.follow(linkFor(ada))
      expect((await ada.browser.submit(page, { decision: 'allow', csrf: 'x' })).status).toBe(403)
      expect((await ada.browser.submit(page, { decision: 'allow' }, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
      const thief = new Browser()
      thief.cookies.set('thv_login', ada.browser.cookies.get('thv_login') ?? '')
      expect((await thief.submit(page, { decision: 'allow' })).status).toBe(403)
      expect(chat.seen).toEqual([])
    })

    it.each<[string, (url: URL) => URL]>([
      ['altered', (url) => withLink(url, (link) => `${link.slice(0, -6)}${link.at(-6) === 'A' ? 'B' : 'A'}${link.slice(-5)}`)],
      ['cut', (url) => withLink(url, (link) => link.slice(0, 40))],
      ['empty', (url) => withLink(url, () => '')],
      ['too long', (url) => withLink(url, (link) => link.repeat(40))],
      ['of characters that no link has', (url) => withLink(url, () => '../..')],
      ['of another provider', (url) => new URL(url.href.replace('/connect/chat', '/connect/corp'))],
      ['of no provider', (url) => new URL(url.href.replace('/connect/chat', '/connect/'))],
    ])('is refused when it is %s', async (_, change) => {
      const ada = await logIn('ada')
      const refused = await ada.browser.visit(change(new URL(linkFor(ada))))
      expect(refused.status).toBe(400)
      expect(refused.text).not.toMatch(/\n\s+at /)
    })

    it('is refused after its session has ended', async () => {
      const ada = await logIn('ada')
      await server.store.revokeFamily(ada.family, 60_000)
      expect((await ada.browser.follow(linkFor(ada))).status).toBe(400)
    })

    it('shows nothing of the user or the session in its address', async () => {
      const ada = await logIn('ada')
      const link = linkFor(ada)
      const bytes = Buffer.from(new URL(link).searchParams.get('link') ?? '', 'base64url').toString('latin1')
      for (const secret of [ada.account, ada.family]) expect(`${link} ${bytes}`).not.toContain(secret)
    })

    it('takes GET and POST alone', async () => {
      const ada = await logIn('ada')
      expect((await fetch(linkFor(ada), { method: 'PUT' })).status).toBe(405)
    })
  })

  describe('/oauth/account', () => {
    const account = () => `${server.issuer}/oauth/account`
    const valuesOf = ({ text }: Visit, name: string) =>
      [...text.matchAll(new RegExp(`name="${name}" value="([^"]+)"`, 'g'))].map(([, value]) => value)

    it('shows the providers and sessions of a user who has logged in, with no script and no frame', async () => {
      const ada = await logIn('ada')
      await through(ada.browser, linkFor(ada), 'ada')
      const page = await ada.browser.visit(account())
      expect(page.status).toBe(200)
      expect(valuesOf(page, 'disconnect')).toEqual(['corp', 'chat'])
      expect(valuesOf(page, 'end')).toContain(ada.family)
      expect(page.text).not.toMatch(/<script|javascript:| on\w+=/i)
      const policy = page.headers.get('content-security-policy') ?? ''
      for (const part of ["default-src 'none'", "frame-ancestors 'none'", "form-action 'self'"]) expect(policy).toContain(part)
      expect(page.headers.get('cache-control')).toBe('no-store')
    })

    it('asks a browser without a session to log in, and shows the account then', async () => {
      const ada = await logIn('ada')
      const browser = new Browser()
      const page = await browser.visit(account())
      expect([valuesOf(page, 'end'), valuesOf(page, 'disconnect')]).toEqual([[], []])
      const sent = await browser.submit(page, { login: '1' })
      const idp = await browser.follow(sent.location ?? '')
      const back = await browser.submit(idp, { user: 'ada' })
      const shown = await browser.follow(back.location ?? '')
      expect(shown.url.pathname).toBe('/oauth/account')
      expect(valuesOf(shown, 'end')).toContain(ada.family)
      expect(valuesOf(await browser.follow((await browser.submit(shown, { logout: '1' })).location ?? ''), 'end')).toEqual([])
    })

    it('disconnects a provider', async () => {
      const ada = await logIn('ada')
      await through(ada.browser, linkFor(ada), 'ada')
      const page = await ada.browser.visit(account())
      expect((await ada.browser.submit(page, { disconnect: 'chat' })).status).toBe(303)
      expect(await isConnected(ada)).toBe(false)
      expect(await tokens().use({ account: ada.account, provider: 'chat' })).toEqual({ kind: 'missing' })
    })

    it('ends a session, and no other one', async () => {
      const [first, second] = [await logIn('ada'), await logIn('ada')]
      const refresh = ({ refreshToken }: LoggedIn) =>
        server.token({ grant_type: 'refresh_token', refresh_token: refreshToken, client_id: clientId })
      await first.browser.submit(await first.browser.visit(account()), { end: second.family })
      expect((await refresh(second)).body['error']).toBe('invalid_grant')
      expect((await refresh(first)).status).toBe(200)
      expect(valuesOf(await first.browser.visit(account()), 'end')).not.toContain(second.family)
    })

    it('lists the newest 50 sessions, and ends all of them and the older ones at once', async () => {
      const grace = await logIn('grace')
      const families = Array.from({ length: 60 }, (_, index) => `grace-${index}`)
      const sessions = families.map((family, index) => ({ family, client: 'x', since: index }))
      const kept = { value: { sessions: [...sessions, { family: grace.family, since: 60 }] }, ttlMs: 60_000 }
      await server.store.put('account', grace.account, kept)
      for (const family of families) await server.store.put('login', family, { value: { providers: ['corp'] }, ttlMs: 60_000, family })
      const other = await logIn('heidi')
      const page = await grace.browser.visit(account())
      expect(valuesOf(page, 'end')).toHaveLength(50)
      expect(page.text).toContain('11 older sessions are not listed')
      expect((await grace.browser.submit(page, { 'end-all': '1' })).status).toBe(303)
      const ended = await Promise.all([...families, grace.family].map((family) => server.store.isRevoked(family)))
      expect(new Set(ended)).toEqual(new Set([true]))
      expect(await server.store.isRevoked(other.family)).toBe(false)
      expect(valuesOf(await grace.browser.visit(account()), 'end')).toEqual([])
    })

    it('MCP security guide: one user does not reach the sessions and providers of another', async () => {
      const [ada, mallory] = [await logIn('ada'), await logIn('mallory')]
      await through(ada.browser, linkFor(ada), 'ada')
      const page = await mallory.browser.visit(account())
      expect(valuesOf(page, 'end')).not.toContain(ada.family)
      await mallory.browser.submit(page, { end: ada.family })
      await mallory.browser.submit(page, { disconnect: 'chat' })
      expect(await server.store.isRevoked(ada.family)).toBe(false)
      expect(await isConnected(ada)).toBe(true)
    })

    it.each<[string, Record<string, string>, Record<string, string>]>([
      ['with another token', { csrf: 'x' }, {}],
      ['with none', { csrf: '' }, {}],
      ['from another site', {}, { 'sec-fetch-site': 'cross-site' }],
      ['from a page of the same site', {}, { 'sec-fetch-site': 'same-site' }],
    ])('RFC 9700 §4.7: refuses a form %s', async (_, fields, headers) => {
      const ada = await logIn('ada')
      const page = await ada.browser.visit(account())
      expect((await ada.browser.submit(page, { end: ada.family, ...fields }, headers)).status).toBe(403)
      expect(await server.store.isRevoked(ada.family)).toBe(false)
    })

    it('refuses the form that another user was shown in the same browser', async () => {
      const ada = await logIn('ada')
      const page = await ada.browser.visit(account())
      for (const name of ada.browser.cookies.keys()) if (!name.startsWith('thv_')) ada.browser.cookies.delete(name) // logged out at the provider
      const bob = await logIn('bob', ada.browser)
      expect(bob.account).not.toBe(ada.account)
      expect((await bob.browser.submit(page, { end: bob.family })).status).toBe(403)
    })

    it('names applications as text', async () => {
      const { client_id: id } = (await (await server.register({ client_name: '<img src=x onerror=alert(1)>' })).json()) as {
        client_id: string
      }
      const browser = new Browser()
      await through(browser, server.authorizeUrl(id).url, 'zoe')
      const page = await browser.visit(account())
      expect(page.text).not.toContain('<img')
    })
  })
})

it('a link to connect a provider expires after ten minutes', async () => {
  const clock = new TestClock()
  await using server = await startTestAuthServer({
    clock,
    tokens: (refreshers, sealed) => new UpstreamVault({ ...sealed, cipher: () => sealed.cipher, refreshers }),
  })
  const url = server.server.tokens.connectUrl({ account: 'a', provider: 'corp' }, 'f') ?? ''
  expect((await new Browser().visit(url)).status).toBe(303)
  await clock.advance(600_000)
  expect((await new Browser().visit(url)).status).toBe(400)
})

function withLink(url: URL, change: (link: string) => string): URL {
  const changed = new URL(url)
  changed.searchParams.set('link', change(url.searchParams.get('link') ?? ''))
  return changed
}
