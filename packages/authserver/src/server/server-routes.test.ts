import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestAuthServer, type TestAuthServer } from '../testing/test-auth-server.ts'

describe('the public documents of an authorization server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'thv-keys-'))
  let server: TestAuthServer
  beforeAll(async () => {
    const write = (name: string, key: KeyObject) => writeFileSync(join(folder, name), key.export({ type: 'pkcs8', format: 'pem' }))
    write('new.pem', generateKeyPairSync('ed25519').privateKey)
    write('old.pem', generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey)
    write('older.pem', generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
    writeFileSync(join(folder, 'hmac'), 'x'.repeat(32))
    server = await startTestAuthServer({
      config: {
        signing_key_config: { key_dir: folder, signing_key_file: 'new.pem', fallback_key_files: ['old.pem', 'older.pem'] },
        hmac_secret_files: [join(folder, 'hmac')],
        allow_confidential_client_registration: true,
        insecure_allow_confidential_over_loopback_http: true,
      },
    })
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  })

  it.each([
    '/.well-known/oauth-authorization-server',
    '/.well-known/oauth-authorization-server/mcp',
    '/.well-known/openid-configuration',
    '/.well-known/openid-configuration/mcp',
  ])('%s is the metadata (RFC 8414 §3.1)', async (path) => {
    const answer = await fetch(`${server.issuer}${path}`, { headers: { origin: 'https://page.example.com' } })
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    expect(answer.headers.get('cache-control')).toContain('max-age=3600')
    expect(await answer.json()).toMatchObject({
      issuer: server.issuer,
      authorization_endpoint: `${server.issuer}/oauth/authorize`,
      token_endpoint: `${server.issuer}/oauth/token`,
      registration_endpoint: `${server.issuer}/oauth/register`,
      jwks_uri: `${server.issuer}/.well-known/jwks.json`,
      code_challenge_methods_supported: ['S256'],
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      authorization_response_iss_parameter_supported: true,
    })
  })

  it('publishes every key, and signs with the first', async () => {
    const { keys } = (await (await fetch(`${server.issuer}/.well-known/jwks.json`)).json()) as { keys: Record<string, string>[] }
    expect(keys.map(({ alg }) => alg)).toEqual(['EdDSA', 'RS256', 'ES256'])
    for (const key of keys) for (const secret of ['d', 'p', 'q', 'dp', 'dq', 'qi']) expect(key).not.toHaveProperty(secret)
    const { body } = await server.tokens(await server.client())
    expect(decodeProtectedHeader(body['access_token'] ?? '')).toMatchObject({ alg: 'EdDSA', kid: keys[0]?.['kid'], typ: 'at+jwt' })
    for (const { alg = '', kid } of keys) expect(server.server.findKeys({ alg, kid })).toHaveLength(1)
  })

  it.each([
    ['/oauth/token', 'POST'],
    ['/oauth/register', 'POST'],
    ['/oauth/revoke', 'POST'],
    ['/.well-known/jwks.json', 'GET'],
  ])('answers preflights for %s', async (path, method) => {
    const headers = { origin: 'https://page.example.com', 'access-control-request-method': method }
    const answer = await fetch(`${server.issuer}${path}`, { method: 'OPTIONS', headers })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('access-control-allow-methods')).toBe(method)
  })

  it('lets no page of another site read a login', async () => {
    const { url } = server.authorizeUrl(await server.client())
    const answer = await fetch(url, { redirect: 'manual', headers: { origin: 'https://page.example.com' } })
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  })

  it('lets a page read the answer of the token endpoint', async () => {
    const answer = await fetch(`${server.issuer}/oauth/token`, {
      method: 'POST',
      headers: { origin: 'https://page.example.com' },
      body: new URLSearchParams({ grant_type: 'x' }),
    })
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
  })

  it('introspects its tokens for a client with a secret, until they are revoked', async () => {
    const registered = await server.register({
      redirect_uris: ['http://127.0.0.1:8765/callback'],
      token_endpoint_auth_method: 'client_secret_basic',
    })
    const { client_id: id, client_secret: secret } = (await registered.json()) as Record<string, string>
    const basic = { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` }
    const ask = async (token: string | undefined, headers: Record<string, string> = basic) => {
      const answer = await fetch(`${server.issuer}/oauth/introspect`, {
        method: 'POST',
        headers,
        body: new URLSearchParams({ token: token ?? '' }),
      })
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
    }
    const clientId = await server.client()
    const { body } = await server.tokens(clientId)
    expect(await ask(body['access_token'])).toMatchObject({ status: 200, body: { active: true, client_id: clientId, iss: server.issuer } })
    expect((await ask(`${body['access_token']}x`)).body).toEqual({ active: false })
    const wrong = { authorization: `Basic ${Buffer.from(`${id}:wrong`).toString('base64')}` }
    expect(await ask(body['access_token'], wrong)).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
    const stolen = await fetch(`${server.issuer}/oauth/revoke`, {
      method: 'POST',
      headers: wrong,
      body: new URLSearchParams({ token: body['access_token'] ?? '' }),
    })
    expect(stolen.status).toBe(401)
    expect((await ask(body['access_token'])).body).toMatchObject({ active: true })
    await fetch(`${server.issuer}/oauth/revoke`, {
      method: 'POST',
      body: new URLSearchParams({ token: body['access_token'] ?? '', client_id: clientId }),
    })
    expect((await ask(body['access_token'])).body).toEqual({ active: false })
  })

  it.each([
    ['not JSON', { headers: { 'content-type': 'application/json' }, body: '{' }],
    ['a list', { headers: { 'content-type': 'application/json' }, body: '[]' }],
    ['a form', { body: new URLSearchParams({ a: 'b' }) }],
    ['64 KiB', { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ client_name: 'x'.repeat(70_000) }) }],
  ])('RFC 7591 §3.2.2: a registration that is %s', async (_, init) => {
    const answer = await fetch(`${server.issuer}/oauth/register`, { method: 'POST', ...init })
    expect([400, 413]).toContain(answer.status)
    expect(await answer.json()).toMatchObject({ error: 'invalid_client_metadata' })
  })

  it('accepts client ids of before a restart with the same secret', async () => {
    await using second = await startTestAuthServer({ config: { hmac_secret_files: [join(folder, 'hmac')] } })
    const id = await server.client()
    const { url } = second.authorizeUrl(id)
    const answer = await fetch(url, { redirect: 'manual' })
    expect(answer.status).toBe(303)
    expect(answer.headers.get('location')).toContain('/oauth/login/')
  })
})

it('a redirect URI with a path of its own is where users come back', async () => {
  const oidc_config = { issuer_url: 'https://login.example.com', client_id: 'x', redirect_uri: 'https://proxy.example.com/signed-in' }
  await using server = await startTestAuthServer({ config: { upstreams: [{ name: 'corp', type: 'oidc', oidc_config }] } })
  const answer = await fetch(`${server.issuer}/signed-in?code=x&state=y`)
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('not started in this browser')])
})
