import { generateKeyPairSync } from 'node:crypto'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { registerAt } from '@thv/testkit/oidc/log-in'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { describe, expect, it } from 'vitest'
import { Browser } from './testing/browser.ts'
import { ProjectedVolume } from './testing/projected-volume.ts'
import { REDIRECT_URI, startTestAuthServer, type TestAuthServer } from './testing/test-auth-server.ts'

it('after a restart without Redis clients keep their registration and keys; users log in again without registering', async () => {
  using volume = new ProjectedVolume()
  await using idp = await startOidcServer()
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  volume.publish({ 'key.pem': privateKey.export({ type: 'pkcs8', format: 'pem' }), hmac: 'x'.repeat(32) })
  const config = {
    signing_key_config: { key_dir: volume.folder, signing_key_file: 'key.pem' },
    hmac_secret_files: [volume.path('hmac')],
    allow_confidential_client_registration: true,
    insecure_allow_confidential_over_loopback_http: true,
  }
  const keysOf = async ({ issuer }: TestAuthServer) => await (await fetch(`${issuer}/.well-known/jwks.json`)).json()

  // Not one that the system gives: it could give that to a connection before the restart.
  const port = await freePort()
  const before = await startTestAuthServer({ config, idp, port })
  const { issuer, resource } = before
  const client = await before.client()
  const registered = await before.register({ token_endpoint_auth_method: 'client_secret_basic' })
  const { client_id: id, client_secret: secret } = (await registered.json()) as Record<string, string>
  const issued = await before.tokens(client)
  const keys = await keysOf(before)
  await before[Symbol.asyncDispose]()

  await using after = await startTestAuthServer({ config, idp, port })
  expect(after.issuer).toBe(issuer)
  expect(await keysOf(after)).toEqual(keys)
  // The access token of before is good until it ends.
  const verified = await jwtVerify(issued.body['access_token'] ?? '', createLocalJWKSet((await keysOf(after)) as never), {
    issuer,
    audience: resource,
  })
  expect(verified.payload.sub).toEqual(expect.any(String))
  // The refresh token is gone with the memory, and the client is not: it leads its user to a login.
  const refreshed = await after.token({ grant_type: 'refresh_token', refresh_token: issued.body['refresh_token'] ?? '', client_id: client })
  expect(refreshed).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  const again = await after.tokens(client)
  expect(again).toMatchObject({ status: 200, body: { refresh_token: expect.any(String) } })
  expect(verified.payload.sub).toBe((await jwtVerify(again.body['access_token'] ?? '', createLocalJWKSet(keys as never))).payload.sub)
  // A client with a secret still has it.
  const introspected = await fetch(`${issuer}/oauth/introspect`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` },
    body: new URLSearchParams({ token: again.body['access_token'] ?? '' }),
  })
  expect(await introspected.json()).toMatchObject({ active: true, client_id: client })
})

describe('a configuration that changes during a login', () => {
  /** A login that has got as far as the page of the provider, and then a server with another configuration and the same store. */
  async function changed(stack: AsyncDisposableStack, change: (upstreams: readonly { name: string }[]) => object) {
    const volume = stack.use(new ProjectedVolume())
    volume.publish({ hmac: 'x'.repeat(32) })
    const idp = stack.use(await startOidcServer())
    const store = Object.assign(createMemoryAuthStore(), { [Symbol.asyncDispose]: async () => {} })
    const port = await freePort()
    const { client_id, client_secret } = await registerAt(idp, `http://127.0.0.1:${port}`)
    const oidc_config = { issuer_url: idp.issuer, client_id, client_secret_env_var: 'OWN', scopes: ['openid'], allow_private_ips: true }
    const upstreams = [{ name: 'corp', type: 'oidc', oidc_config }]
    const config = { hmac_secret_files: [volume.path('hmac')] }
    const start = (more: object) =>
      startTestAuthServer({ ...{ idp, store, port, env: { OWN: client_secret } }, config: { ...config, upstreams, ...more } })

    const first = await start({})
    const client = await first.client()
    const browser = new Browser()
    const { url, verifier } = first.authorizeUrl(client)
    const provider = await browser.follow((await browser.submit(await browser.follow(url), { decision: 'allow' })).location ?? '')
    expect(provider.status).toBe(200)
    await first[Symbol.asyncDispose]()
    const second = stack.use(await start(change(upstreams)))
    const sent = await browser.submit(provider, { user: 'ada' })
    const landed = await browser.follow(sent.location ?? '')
    const redeem = (code: string) =>
      second.token({ grant_type: 'authorization_code', code, client_id: client, code_verifier: verifier, redirect_uri: REDIRECT_URI })
    return { landed, redeem, second }
  }

  it('does not matter to a login that it allows', async () => {
    await using stack = new AsyncDisposableStack()
    const { landed, redeem } = await changed(stack, () => ({ scopes_supported: ['openid', 'mcp', 'more'] }))
    const code = landed.location?.searchParams.get('code') ?? ''
    expect(await redeem(code)).toMatchObject({ status: 200, body: { access_token: expect.any(String) } })
  })

  it('ends a login at a provider that is gone, with a page that says so', async () => {
    await using stack = new AsyncDisposableStack()
    const { landed, second } = await changed(stack, ([corp]) => ({ upstreams: [{ ...corp, name: 'other' }] }))
    expect([landed.status, landed.text]).toEqual([400, expect.stringContaining('expired')])
    expect(second.saved).toEqual([])
  })
})
