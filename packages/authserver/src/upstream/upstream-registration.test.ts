import { TestClock } from '@thv/kernel/clock'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type PlainProvider, startPlainProvider } from '../testing/plain-provider.ts'
import { startTestAuthServer } from '../testing/test-auth-server.ts'

describe('registration at a provider', () => {
  let provider: PlainProvider
  beforeAll(async () => {
    provider = await startPlainProvider()
  })
  beforeEach(() => {
    provider.registrations.length = 0
    provider.forms.length = 0
    Object.assign(provider, {
      answer: { access_token: 'at', id: '1' },
      registration: { client_id: 'registered', client_secret: 'secret-of-ours' },
      registrationStatus: 201,
    })
  })
  afterAll(async () => await provider[Symbol.asyncDispose]())

  const start = (dcr: object, more: Parameters<typeof startTestAuthServer>[0] = {}, redirect?: string) =>
    startTestAuthServer({
      config: {
        upstreams: [
          {
            name: 'chat',
            type: 'oauth2',
            oauth2_config: {
              authorization_endpoint: `${provider.base}/authorize`,
              token_endpoint: `${provider.base}/token`,
              scopes: ['read', 'write'],
              identity_from_token: { subject_path: 'id' },
              allow_private_ips: true,
              dcr_config: dcr,
              ...(redirect !== undefined && { redirect_uri: redirect }),
            },
          },
        ],
      },
      env: { INITIAL: 'initial-token' },
      ...more,
    })

  it('happens once, with all that the configuration says, and the client it brings is used (RFC 7591 §3)', async () => {
    const software = { software_id: 'thv', software_statement: 'a.b.c' }
    await using server = await start({
      registration_endpoint: `${provider.base}/register`,
      initial_access_token_env_var: 'INITIAL',
      ...software,
    })
    const client = await server.client()
    expect((await server.tokens(client)).status).toBe(200)
    expect((await server.tokens(client)).status).toBe(200)
    expect(provider.registrations).toEqual([
      {
        method: 'POST',
        authorization: 'Bearer initial-token',
        body: {
          client_name: 'ToolHive',
          redirect_uris: [`${server.issuer}/oauth/callback`],
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
          token_endpoint_auth_method: 'client_secret_post',
          scope: 'read write',
          ...software,
        },
      },
    ])
    expect(provider.seen.join(' ')).toContain('client_id=registered')
    expect(Object.fromEntries(provider.forms.at(-1) ?? [])).toMatchObject({ client_id: 'registered', client_secret: 'secret-of-ours' })
    expect(server.logged()).not.toMatch(/secret-of-ours|initial-token/)
  })

  it('finds the endpoint by discovery, and is shared by all replicas and restarts that have the same store', async () => {
    const store = Object.assign(createMemoryAuthStore(), { [Symbol.asyncDispose]: async () => {} })
    const discovery_url = `${provider.base}/.well-known/oauth-authorization-server`
    await using first = await start({ discovery_url }, { store }, 'http://127.0.0.1:9/oauth/callback')
    await using second = await start({ discovery_url }, { store }, 'http://127.0.0.1:9/oauth/callback')
    await Promise.all([first.begin(), second.begin(), first.begin(), second.begin()])
    expect(provider.registrations).toHaveLength(1)
  })

  it.each<[string, object, number, string[]]>([
    [
      'changed where the provider manages registrations (RFC 7592 §2.2)',
      { client_id: 'registered', client_secret: 'second' },
      200,
      ['POST', 'PUT'],
    ],
    ['made again where it does not know it any more', { error: 'invalid_token' }, 401, ['POST', 'PUT', 'POST']],
  ])('is %s, before the secret ends', async (_, answer, status, methods) => {
    const clock = new TestClock(Date.now())
    const end = Math.floor(clock.now() / 1_000) + 1_000
    Object.assign(provider, {
      registration: {
        client_id: 'registered',
        client_secret: 'first',
        client_secret_expires_at: end,
        registration_client_uri: `${provider.base}/register/registered`,
        registration_access_token: 'manage',
      },
    })
    await using server = await start({ registration_endpoint: `${provider.base}/register` }, { clock })
    await server.begin()
    await clock.advance(700_000)
    await server.begin()
    expect(provider.registrations).toHaveLength(1)
    Object.assign(provider, { registration: answer, registrationStatus: status })
    await clock.advance(200_000)
    await server.begin()
    expect(provider.registrations.map(({ method }) => method)).toEqual(methods)
    expect(provider.registrations[1]).toMatchObject({ authorization: 'Bearer manage', body: { client_id: 'registered' } })
  })

  it('that the provider refuses fails the login with a retry, and is tried again', async () => {
    Object.assign(provider, { registrationStatus: 400, registration: { error: 'invalid_redirect_uri' } })
    await using server = await start({ registration_endpoint: `${provider.base}/register` })
    expect((await server.begin()).status).toBe(503)
    expect(server.logged()).toContain('it refuses the registration: invalid_redirect_uri')
    Object.assign(provider, { registrationStatus: 500 })
    expect((await server.begin()).status).toBe(503)
    Object.assign(provider, { registrationStatus: 201, registration: { client_id: 'registered' } })
    expect((await server.begin()).status).toBe(303)
  })
})
