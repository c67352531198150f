import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type PlainProvider, startPlainProvider } from '../testing/plain-provider.ts'
import { startTestAuthServer } from '../testing/test-auth-server.ts'

describe('a login at a provider with OAuth 2 only', () => {
  let provider: PlainProvider
  beforeAll(async () => {
    provider = await startPlainProvider()
  })
  afterAll(async () => await provider[Symbol.asyncDispose]())

  const upstream = (more: object) => ({
    upstreams: [
      {
        name: 'chat',
        type: 'oauth2',
        oauth2_config: {
          authorization_endpoint: `${provider.base}/authorize`,
          token_endpoint: `${provider.base}/token`,
          client_id: 'us',
          client_secret_env_var: 'CHAT_SECRET',
          scopes: ['read'],
          additional_authorization_params: { team: 'a' },
          allow_private_ips: true,
          ...more,
        },
      },
    ],
  })
  const start = (more: object) => startTestAuthServer({ config: upstream(more), env: { CHAT_SECRET: 'chat-secret' } })

  it('takes tokens and identity from a nonstandard answer', async () => {
    provider.answer = {
      ok: true,
      authed_user: { id: 4711, access_token: 'at', refresh_token: 'rt', expires_in: '60', scope: 'read', name: 'Ada' },
    }
    await using server = await start({
      token_response_mapping: {
        access_token_path: 'authed_user.access_token',
        refresh_token_path: 'authed_user.refresh_token',
        expires_in_path: 'authed_user.expires_in',
        scope_path: 'authed_user.scope',
      },
      identity_from_token: { subject_path: 'authed_user.id', name_path: 'authed_user.name' },
    })
    const { body } = await server.tokens(await server.client())
    expect(decodeJwt(body['access_token'] ?? '')).toMatchObject({ name: 'Ada' })
    expect(server.saved).toMatchObject([
      {
        provider: 'chat',
        subject: '4711',
        tokens: { accessToken: 'at', refreshToken: 'rt', scope: 'read', expiresAt: expect.any(Number) },
      },
    ])
    const form = provider.forms.at(-1)
    expect(Object.fromEntries(form ?? [])).toMatchObject({
      grant_type: 'authorization_code',
      code: 'upstream-code',
      client_id: 'us',
      client_secret: 'chat-secret',
      code_verifier: expect.stringMatching(/.{43}/),
    })
    expect(provider.seen.join(' ')).toMatch(/team=a.*code_challenge_method=S256/)
    expect(server.logged()).not.toMatch(/chat-secret|upstream-code/)
  })

  it('asks the userinfo endpoint, and reads an answer in form encoding', async () => {
    provider.answer = { access_token: 'at2', token_type: 'bearer' }
    provider.answerType = 'application/x-www-form-urlencoded'
    provider.user = { id: 7, login: 'ada', mail: 'ada@example.com' }
    await using server = await start({
      userinfo: {
        endpoint_url: `${provider.base}/me`,
        http_method: 'POST',
        additional_headers: { 'X-Extra': 'e' },
        field_mapping: { name_fields: ['displayName', 'login'], email_fields: ['mail'] },
      },
    })
    const { body } = await server.tokens(await server.client())
    expect(decodeJwt(body['access_token'] ?? '')).toMatchObject({ name: 'ada', email: 'ada@example.com' })
    expect(server.saved).toMatchObject([{ subject: '7', tokens: { accessToken: 'at2' } }])
    expect(provider.seen).toContain('POST Bearer at2 e')
    provider.answerType = 'application/json'
  })

  it('gives the same person the same account, and another person another one', async () => {
    provider.answer = { access_token: 'at', id: 'a' }
    await using server = await start({ identity_from_token: { subject_path: 'id' } })
    const client = await server.client()
    const subject = async () => decodeJwt((await server.tokens(client)).body['access_token'] ?? '').sub
    const [first, again] = [await subject(), await subject()]
    provider.answer = { access_token: 'at', id: 'b' }
    expect(first).toBe(again)
    expect(await subject()).not.toBe(first)
  })

  it.each<[string, object]>([
    ['an error with status 200', { error: 'bad_verification_code' }],
    ['no token', { token_type: 'bearer' }],
    ['no subject', { access_token: 'at' }],
  ])('sends the client access_denied after %s', async (_, answer) => {
    provider.answer = answer
    await using server = await start({ identity_from_token: { subject_path: 'id' } })
    const { landed } = await server.login(await server.client())
    expect(landed.searchParams.get('error')).toBe('access_denied')
    expect(server.saved).toEqual([])
  })

  it('walks over all providers in turn, and the first says who the user is', async () => {
    provider.answer = { access_token: 'at', id: 'a' }
    const [chat] = upstream({ identity_from_token: { subject_path: 'id' } }).upstreams
    const other = { ...chat, name: 'second' }
    await using server = await startTestAuthServer({ config: { upstreams: [chat, other] }, env: { CHAT_SECRET: 'chat-secret' } })
    const { body } = await server.tokens(await server.client())
    const { sub } = decodeJwt(body['access_token'] ?? '')
    expect(server.saved.map(({ provider: name, account }) => [name, account])).toEqual([
      ['chat', sub],
      ['second', sub],
    ])
  })
})
