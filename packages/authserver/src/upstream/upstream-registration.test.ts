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

  it('that the provider refuses fails logins with a retry, and is tried again with back-off', async () => {
    const clock = new TestClock(Date.now())
    Object.assign(provider, { registrationStatus: 400, registration: { error: 'invalid_redirect_uri' } })
    await using server = await start({ registration_endpoint: `${provider.base}/register` }, { clock })
    for (let i = 0; i < 5; i++) expect((await server.begin()).status).toBe(503)
    expect(provider.registrations).toHaveLength(1)
    expect(server.logged()).toContain('it refuses the registration: invalid_redirect_uri')
    Object.assign(provider, { registrationStatus: 500 })
    for (const [waitMs, attempts] of [
      [1_000, 2],
      [900, 2],
      [1_100, 3],
    ] as const) {
      await clock.advance(waitMs)
      expect((await server.begin()).status).toBe(503)
      expect(provider.registrations).toHaveLength(attempts)
    }
    Object.assign(provider, { registrationStatus: 201, registration: { client_id: 'registered' } })
    await clock.advance(300_000)
    expect((await server.begin()).status).toBe(303)
    expect(provider.registrations).toHaveLength(4)
  })

  it('that cannot be renewed stays in use until its secret ends, and is not asked for at each login', async () => {
    const clock = new TestClock(Date.now())
    const end = Math.floor(clock.now() / 1_000) + 10_000
    Object.assign(provider, { registration: { client_id: 'first', client_secret: 's', client_secret_expires_at: end } })
    await using server = await start({ registration_endpoint: `${provider.base}/register` }, { clock })
    await server.begin()
    Object.assign(provider, { registrationStatus: 503 })
    await clock.advance(9_000_000)
    for (let i = 0; i < 5; i++) expect((await server.begin()).status).toBe(303)
    expect(provider.registrations).toHaveLength(2)
    await clock.advance(1_000_000)
    expect((await server.begin()).status).toBe(503)
  })

  it('that is in use is written again long before its record ends', async () => {
    const clock = new TestClock(Date.now())
    const store = createMemoryAuthStore()
    const put = store.put.bind(store)
    const lives: number[] = []
    store.put = (kind, id, record) => {
      if (kind === 'registration') lives.push(record.ttlMs)
      return put(kind, id, record)
    }
    await using server = await start({ registration_endpoint: `${provider.base}/register` }, { clock, store })
    const day = 24 * 3_600_000
    for (const [days, writes] of [
      [0, 1],
      [90, 1],
      [20, 2],
      [90, 2],
      [20, 3],
    ] as const) {
      await clock.advance(days * day)
      expect((await server.begin()).status).toBe(303)
      expect(lives).toEqual(Array.from({ length: writes }, () => 400 * day))
    }
    expect(provider.registrations).toHaveLength(1)
  })
})
