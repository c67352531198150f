import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LoginEvent } from './login-events.ts'
import { Browser } from './testing/browser.ts'
import { ProjectedVolume } from './testing/projected-volume.ts'
import { REDIRECT_URI, startTestAuthServer, type TestAuthServer } from './testing/test-auth-server.ts'

/* Everything that a server says in good and in bad times, searched for every secret that was used. */

const HMAC = 'hmac-secret-of-this-test-0123456789abcdef'
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const PEM = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))

describe('answers, log lines and events', () => {
  const volume = new ProjectedVolume()
  let server: TestAuthServer
  const events: LoginEvent[] = []
  /** Bodies and headers of everything but the answers that are the client's tokens. */
  const answers: string[] = []
  /** Only the server may read these; the others also the client and the browser that have them. */
  const hidden = new Set<string>()
  const handed = new Set<string>()

  async function send(path: string, init: RequestInit = {}): Promise<Response> {
    const answer = await fetch(`${server.issuer}${path}`, { redirect: 'manual', ...init })
    answers.push(`${JSON.stringify([...answer.headers])} ${await answer.clone().text()}`)
    return answer
  }
  const post = (path: string, form: Record<string, string>, headers: Record<string, string> = {}) =>
    send(path, { method: 'POST', headers, body: new URLSearchParams(form) })

  beforeAll(async () => {
    volume.publish({ 'key.pem': PEM, hmac: HMAC })
    server = await startTestAuthServer({
      config: {
        signing_key_config: { key_dir: volume.folder, signing_key_file: 'key.pem' },
        hmac_secret_files: [volume.path('hmac')],
        allow_confidential_client_registration: true,
        insecure_allow_confidential_over_loopback_http: true,
      },
    })
    server.server.observe((event) => events.push(event))
    const { d = '' } = privateKey.export({ format: 'jwk' })
    for (const secret of [HMAC, d, PEM.split('\n')[1] ?? '', PEM.split('\n')[2] ?? '']) hidden.add(secret)

    // A login that goes well, with a client that has a secret.
    const registered = await server.register({ token_endpoint_auth_method: 'client_secret_basic' })
    const { client_id: id = '', client_secret: clientSecret = '' } = (await registered.json()) as Record<string, string>
    const basic = { authorization: `Basic ${Buffer.from(`${id}:${clientSecret}`).toString('base64')}` }
    const browser = new Browser()
    const { url, verifier } = server.authorizeUrl(id)
    const page = await browser.follow(url)
    const allowed = await browser.submit(page, { decision: 'allow' })
    const upstream = allowed.location?.searchParams
    const provider = await browser.follow(allowed.location ?? '')
    const back = await browser.follow((await browser.submit(provider, { user: 'ada' })).location ?? '')
    const code = back.location?.searchParams.get('code') ?? ''
    const redeem = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT_URI, code_verifier: verifier }
    const { body } = await server.token(redeem, basic)
    const refreshed = await server.token({ grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '' }, basic)
    expect([typeof body['refresh_token'], typeof refreshed.body['refresh_token']]).toEqual(['string', 'string'])
    for (const { tokens } of server.saved)
      for (const token of [tokens.accessToken, tokens.refreshToken, tokens.idToken]) if (token !== undefined) hidden.add(token)
    for (const secret of [clientSecret, verifier, code, upstream?.get('state'), upstream?.get('nonce')]) handed.add(secret ?? '')
    for (const each of [body, refreshed.body])
      for (const name of ['access_token', 'refresh_token', 'id_token']) if (each[name] !== undefined) handed.add(each[name])
    for (const [, value] of browser.cookies) if (value.length > 20) handed.add(value)

    // And everything that goes wrong.
    const wrong = { authorization: `Basic ${Buffer.from(`${id}:not-the-secret-of-it`).toString('base64')}` }
    await post('/oauth/token', redeem, basic) // twice
    await post('/oauth/token', { grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '' }, basic)
    await post('/oauth/token', { ...redeem, code: 'unknown' }, wrong)
    await post('/oauth/token', { ...redeem, code_verifier: 'x' }, basic)
    await post('/oauth/token', { grant_type: 'password', password: clientSecret }, basic)
    await post('/oauth/revoke', { token: refreshed.body['refresh_token'] ?? '' }, basic)
    await post('/oauth/introspect', { token: refreshed.body['access_token'] ?? '' }, basic)
    await post('/oauth/introspect', { token: refreshed.body['access_token'] ?? '' }, wrong)
    await send('/oauth/register', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"client_secret":"${clientSecret}"`,
    })
    await send(`/oauth/callback?code=${code}&state=unknown`)
    await send('/oauth/authorize?client_id=unknown')
    await send(`/oauth/login/unknown`, { method: 'POST', body: new URLSearchParams({ csrf: verifier }) })
    await send('/.well-known/oauth-authorization-server')
    await send('/.well-known/jwks.json')
    server.idp.fault = 'down'
    await send(`/oauth/connect/corp?link=${verifier}`)
    server.idp.fault = undefined
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    volume[Symbol.dispose]()
  })

  it('RFC 6819 §5.1.6: secrets that were used are found where they belong', () => {
    expect(hidden.size).toBeGreaterThanOrEqual(6)
    expect(handed.size).toBeGreaterThanOrEqual(10)
    for (const secret of [...hidden, ...handed]) expect(secret.length).toBeGreaterThan(20)
    expect(decodeJwt([...hidden].find((secret) => secret.startsWith('ey')) ?? '')).toMatchObject({ iss: server.idp.issuer })
    for (const told of [answers, events, server.logged().split('\n')]) expect(told.length).toBeGreaterThan(5)
  })

  it('RFC 6819 §5.1.6: no log line and no event holds any of them', () => {
    const told = `${server.logged()}${JSON.stringify(events)}`
    for (const secret of [...hidden, ...handed]) expect(told).not.toContain(secret)
  })

  it('RFC 6819 §5.1.4: no answer holds a secret of the server or a token of a provider, and no stack', () => {
    const all = answers.join('\n')
    for (const secret of [...hidden, ...handed]) expect(all).not.toContain(secret)
    expect(all).not.toMatch(/node_modules|\.[jt]s:\d/)
  })
})
