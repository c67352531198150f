import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { TestClock } from '@thv/kernel/clock'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { Browser, type Visit } from '../testing/browser.ts'
import { startTestAuthServer, type TestAuthServer } from '../testing/test-auth-server.ts'

/* A provider whose documents and answers lead elsewhere, lie, are too large or never come. */

const SECRET = 'secret-at-the-provider'
const paths: string[] = []
const trap: string[] = []
let base: string
let trapBase: string
let answers: Readonly<Record<string, (response: ServerResponse) => void>>
const closing: (() => void)[] = []

const json = (body: unknown) => (response: ServerResponse) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body))
const redirect = (to: () => string) => (response: ServerResponse) => void response.writeHead(302, { location: to() }).end()
const silence = () => {}

async function listen(onRequest: (path: string, response: ServerResponse) => void): Promise<string> {
  const http = createServer((request, response) => {
    request.resume()
    onRequest(new URL(request.url ?? '', 'http://x').pathname, response)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => http.once('listening', resolve))
  closing.push(() => {
    http.closeAllConnections()
    http.close()
  })
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`
}

beforeAll(async () => {
  base = await listen((path, response) => {
    paths.push(path)
    const answer = answers[path] ?? answers['*']
    if (answer === undefined) response.writeHead(404).end()
    else answer(response)
  })
  trapBase = await listen((path, response) => {
    trap.push(path)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document()))
  })
})
beforeEach(() => {
  paths.length = 0
  trap.length = 0
  answers = {}
})
afterAll(() => {
  for (const close of closing) close()
})

const document = (more: object = {}) => ({
  ...{ issuer: base, authorization_endpoint: `${base}/authorize`, token_endpoint: `${base}/token`, jwks_uri: `${base}/jwks` },
  ...more,
})
const DISCOVERY = '/.well-known/openid-configuration'

const start = (more: object = {}, options: Parameters<typeof startTestAuthServer>[0] = {}) =>
  startTestAuthServer({
    config: {
      upstreams: [
        {
          ...{ name: 'corp', type: 'oidc' },
          oidc_config: { issuer_url: base, client_id: 'x', client_secret_env_var: 'AT_PROVIDER', allow_private_ips: true, ...more },
        },
      ],
    },
    env: { AT_PROVIDER: SECRET },
    ...options,
  })

describe('the discovery document of a provider', () => {
  it.each<[string, Parameters<typeof start>[0], () => typeof answers]>([
    ['RFC 9700 §4.15: lies on a private address that is not allowed', { allow_private_ips: false }, () => ({ '*': json(document()) })],
    ['RFC 9700 §4.15: is a redirect', {}, () => ({ '*': redirect(() => `${trapBase}${DISCOVERY}`) })],
    ['OpenID Discovery §4.3: is of another issuer', {}, () => ({ '*': json(document({ issuer: trapBase })) })],
    ['OpenID Discovery §4.2: is not JSON', {}, () => ({ '*': json('<html>') })],
    ['OpenID Discovery §4.2: names no endpoint', {}, () => ({ '*': json({ issuer: base }) })],
    ['RFC 9700 §4.15: is huge', {}, () => ({ '*': json(document({ padding: 'x'.repeat(400_000) })) })],
    ['OpenID Discovery §4.2: is an error', {}, () => ({ '*': (response) => void response.writeHead(500).end('stack at secret.ts:1') })],
  ])('%s', async (_, config, given) => {
    answers = given()
    await using server = await start(config)
    const visit = await server.begin()
    expect(visit.status).toBe(503)
    expect(visit.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(trap).toEqual([])
    if (config !== undefined && 'allow_private_ips' in config) expect(paths).toEqual([])
    expect(visit.text).not.toMatch(/stack|secret|127\.0\.0\.1/)
  })

  it('never comes: the login is given up', async () => {
    answers = { '*': silence }
    const clock = new TestClock(Date.now())
    await using server = await start({}, { clock })
    let visit: Visit | undefined
    void server.begin().then((done) => {
      visit = done
    })
    const passes = async () => {
      await clock.advance(5_000)
      expect(visit?.status).toBe(503)
    }
    await vi.waitFor(passes, { timeout: 60_000, interval: 20 })
  })
})

describe('the answer to a code', () => {
  /** Goes as far as the redirect back to the client. */
  async function comeBack(server: TestAuthServer): Promise<URL> {
    const browser = new Browser()
    const page = await browser.follow(server.authorizeUrl(await server.client()).url)
    const { location } = await browser.submit(page, { decision: 'allow' })
    const state = location?.searchParams.get('state') ?? ''
    const end = await browser.follow(`${server.issuer}/oauth/callback?code=upstream-code&state=${state}`)
    return end.location ?? new URL('http://nowhere')
  }

  it.each([
    ['is good with the nonce of the login', (nonce: string) => nonce, 'code'],
    ['is refused with the nonce of another one', () => 'another', 'error'],
    ['is refused without one', () => undefined, 'error'],
  ])('OpenID Core §3.1.3.7: has an ID token that %s', async (_, nonceOf, member) => {
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
    const jwk = { ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256', use: 'sig' }
    answers = { [DISCOVERY]: json(document()), '/jwks': json({ keys: [jwk] }) }
    await using server = await start()
    const browser = new Browser()
    const page = await browser.follow(server.authorizeUrl(await server.client()).url)
    const { location } = await browser.submit(page, { decision: 'allow' })
    const nonce = nonceOf(location?.searchParams.get('nonce') ?? '')
    const token = new SignJWT(nonce === undefined ? {} : { nonce }).setProtectedHeader({ alg: 'ES256', kid: 'k' })
    const signed = await token.setIssuer(base).setAudience('x').setSubject('ada').setIssuedAt().setExpirationTime('5m').sign(privateKey)
    answers = { ...answers, '/token': json({ access_token: 'a', id_token: signed }) }
    const state = location?.searchParams.get('state') ?? ''
    const end = await browser.follow(`${server.issuer}/oauth/callback?code=upstream-code&state=${state}`)
    expect(end.location?.searchParams.has(member)).toBe(true)
    if (member === 'error') expect(end.location?.searchParams.get('error')).toBe('access_denied')
  })

  const unsigned = (claims: object) => `${btoa('{"alg":"none"}')}.${btoa(JSON.stringify(claims))}.`.replaceAll('=', '')

  it.each<[string, object, () => typeof answers, string]>([
    ['RFC 9700 §4.15: is a redirect', {}, () => ({ '/token': redirect(() => `${trapBase}/token`) }), 'temporarily_unavailable'],
    [
      'RFC 9700 §4.15: would come from plain http elsewhere',
      { token_endpoint: 'http://provider.example.com/token' },
      () => ({}),
      'temporarily_unavailable',
    ],
    ['RFC 9700 §4.15: would come from no http', { token_endpoint: 'file:///etc/passwd' }, () => ({}), 'temporarily_unavailable'],
    ['RFC 6749 §5.2: is a refusal', {}, () => ({ '/token': json({ error: 'invalid_grant' }) }), 'access_denied'],
    ['RFC 6749 §5.1: is huge', {}, () => ({ '/token': json({ access_token: 'x'.repeat(400_000) }) }), 'temporarily_unavailable'],
    ['OpenID Core §3.1.3.7: has no ID token', {}, () => ({ '/token': json({ access_token: 'a' }) }), 'access_denied'],
    [
      'RFC 8725 §3.1: has an ID token without a signature',
      {},
      () => ({ '/token': json({ access_token: 'a', id_token: unsigned({ iss: base, aud: 'x', sub: 'ada' }) }) }),
      'access_denied',
    ],
    [
      'RFC 9700 §4.15: has an ID token whose keys are elsewhere',
      { jwks_uri: 'http://169.254.169.254/latest/keys' },
      () => ({ '/token': json({ access_token: 'a', id_token: 'eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.e30.AAAA' }) }),
      'temporarily_unavailable',
    ],
  ])('%s', async (_, more, given, error) => {
    answers = { [DISCOVERY]: json(document(more)), ...given() }
    await using server = await start()
    const landed = await comeBack(server)
    expect(Object.fromEntries(landed.searchParams)).toMatchObject({ error, state: 'client-state', iss: server.issuer })
    expect(trap).toEqual([])
    expect(server.saved).toEqual([])
    expect(`${landed.href}${server.logged()}`).not.toMatch(new RegExp(`${SECRET}|upstream-code`))
  })
})
