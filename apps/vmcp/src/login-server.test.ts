import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { startBackend } from '@thv/http/testing/backend'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { isActiveAt, logIn, registerAt } from '@thv/testkit/oidc/log-in'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { openLink } from '@thv/testkit/oidc/sign-in'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callModern, type ModernAnswer } from './testing/call-modern.ts'
import { type GuardedBackend, startGuardedBackend } from './testing/guarded-backend.ts'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

const PROVIDERS = ['corp', 'tickets', 'chat', 'wiki'] as const
type Name = (typeof PROVIDERS)[number]

describe('a virtual server with an authorization server of its own, and backends with providers', () => {
  const stack = new AsyncDisposableStack()
  const idps = {} as Record<Name, OidcServer>
  const backends = {} as Record<Name | 'open' | 'exchanged', GuardedBackend>
  const exchanged: URLSearchParams[] = []
  let vmcp: TestVmcp
  let issuer: string
  let token: string
  let clientId: string

  beforeAll(async () => {
    const port = await freePort()
    issuer = `http://127.0.0.1:${port}`
    const env: Record<string, string> = {}
    const upstreams: object[] = []
    for (const name of PROVIDERS) {
      const idp = stack.use(await startOidcServer())
      idps[name] = idp
      const { client_id, client_secret } = await registerAt(idp, issuer, name)
      env[`SECRET_${name}`] = client_secret
      const oidc_config = {
        issuer_url: idp.issuer,
        client_id,
        client_secret_env_var: `SECRET_${name}`,
        scopes: ['openid'],
        allow_private_ips: true,
      }
      upstreams.push({ name, type: 'oidc', oidc_config, ...(name === 'wiki' && { login_policy: 'onDemand' }) })
      backends[name] = stack.use(await startGuardedBackend())
    }
    for (const name of ['open', 'exchanged'] as const) backends[name] = stack.use(await startGuardedBackend())
    backends.open.accepts = () => true
    const exchange = stack.use(
      await startBackend(({ body }, response) => {
        const form = new URLSearchParams(body)
        exchanged.push(form)
        const answer = { access_token: `new-${exchanged.length}`, token_type: 'Bearer', expires_in: 3_600, issued_token_type: 'x' }
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      }),
    )
    vmcp = stack.use(
      await startTestVmcp({
        port,
        env,
        backends: {
          tickets: backends.tickets.url,
          chat: backends.chat.url,
          wiki: backends.wiki.url,
          open: backends.open.url,
          exchanged: backends.exchanged.url,
        },
        config: {
          aggregation: { conflictResolution: 'prefix' },
          incomingAuth: { type: 'oidc', oidc: { issuer, audience: `${issuer}/mcp`, resource: `${issuer}/mcp`, scopes: ['openid', 'mcp'] } },
          authServer: { issuer, upstreams, scopes_supported: ['openid', 'mcp'], allowed_audiences: [`${issuer}/mcp`] },
          outgoingAuth: {
            source: 'inline',
            backends: {
              tickets: { type: 'upstream_inject', upstreamInject: { providerName: 'tickets' } },
              chat: { type: 'upstream_inject', upstreamInject: { providerName: 'chat' } },
              wiki: { type: 'upstream_inject', upstreamInject: { providerName: 'wiki' } },
              exchanged: {
                type: 'token_exchange',
                tokenExchange: { tokenUrl: `${exchange.url}/token`, clientId: 'us', audience: 'crm', subjectProviderName: 'tickets' },
              },
            },
          },
        },
      }),
    )
    const ada = await logIn(issuer, { user: 'ada', scope: 'openid mcp' })
    token = ada.accessToken
    clientId = ada.clientId
  })
  afterAll(() => stack.disposeAsync())

  const connect = (mode: 'legacy' | 'modern', bearer = token) => {
    const requestInit = { headers: { authorization: `Bearer ${bearer}` } }
    return connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url), { requestInit }), mode)
  }

  it('refuses a request without a token and names itself as the authorization server', async () => {
    const answer = await fetch(vmcp.url, { method: 'POST', body: '{}' })
    expect(answer.status).toBe(401)
    const metadata = /resource_metadata="([^"]+)"/.exec(answer.headers.get('www-authenticate') ?? '')?.[1] ?? ''
    const resource = (await (await fetch(metadata)).json()) as { authorization_servers: string[] }
    expect(resource.authorization_servers).toEqual([issuer])
  })

  it.each(['legacy', 'modern'] as const)(
    'one login leads to the token of the right provider at each backend, and to none elsewhere (%s)',
    async (mode) => {
      await using client = await connect(mode)
      expect((await client.client.listTools()).tools.map(({ name }) => name)).toEqual([
        ...['chat_hello', 'exchanged_hello', 'open_hello', 'tickets_hello'],
      ])
      for (const name of ['tickets', 'chat'] as const) {
        const sent = await client.text(`${name}_hello`)
        expect(sent).toMatch(/^Bearer \S+$/)
        expect(await isActiveAt(idps[name], sent.slice('Bearer '.length))).toBe(true)
      }
      await client.text('open_hello')
      expect(new Set(backends.open.seen)).toEqual(new Set([undefined]))
      for (const name of ['tickets', 'chat'] as const) expect(backends[name].seen).not.toContain(`Bearer ${token}`)
      expect(vmcp.logged.join('\n')).not.toContain(token)
    },
  )

  it('lists and calls tools with the token of a provider on demand only for logins that asked for its scope', async () => {
    const { accessToken } = await logIn(issuer, { user: 'bob', scope: 'openid mcp upstream:wiki', clientId })
    await using bob = await connect('modern', accessToken)
    expect((await bob.client.listTools()).tools.map(({ name }) => name)).toContain('wiki_hello')
    const sent = await bob.text('wiki_hello')
    expect(await isActiveAt(idps.wiki, sent.slice('Bearer '.length))).toBe(true)
    // Health checks have no token.
    const withToken = () => backends.wiki.seen.filter((value) => value !== undefined).length
    const before = withToken()
    const other = (await logIn(issuer, { user: 'bob', scope: 'openid mcp', clientId })).accessToken
    await using without = await connect('modern', other)
    await expect(without.text('wiki_hello')).rejects.toThrow()
    await using ada = await connect('modern')
    expect((await ada.client.listTools()).tools.map(({ name }) => name)).not.toContain('wiki_hello')
    expect(withToken()).toBe(before)
  })

  it('leads the first call to a backend behind a provider on demand to the login there, and to no other', async () => {
    const wire = (bearer: string) => new WireClient(vmcp.url, { authorization: `Bearer ${bearer}` })
    // Only bob has a list of it, so its tools are not known: the name says which backend may have one.
    const legacy = wire(token)
    await legacy.initialize()
    for (const answer of [await wire(token).modernCall('wiki_hello'), await legacy.call('wiki_hello')]) {
      expect(answer.status).toBe(403)
      const challenge = answer.headers.get('www-authenticate') ?? ''
      expect(challenge).toContain('error="insufficient_scope"')
      expect(/scope="([^"]*)"/.exec(challenge)?.[1]?.split(' ').toSorted()).toEqual(['mcp', 'openid', 'upstream:wiki'])
    }
    expect((await wire(token).modernCall('wikis')).messages[0]).toMatchObject({ error: { code: -32602 } })
    expect((await wire(token).modernCall('chat_nothing')).messages[0]).toMatchObject({ error: { code: -32602 } })
    // The next token has the login: the tool is there at once.
    const { accessToken } = await logIn(issuer, { user: 'ada', scope: 'openid mcp upstream:wiki', clientId })
    const sent = (await wire(accessToken).modernCall('wiki_hello')).messages[0].result.content[0].text
    expect(await isActiveAt(idps.wiki, sent.slice('Bearer '.length))).toBe(true)
  })

  it('lists tools that two users of a provider on demand both have before the login to it', async () => {
    // Ada and bob have logged in there.
    const { accessToken } = await logIn(issuer, { user: 'grace', scope: 'openid mcp', clientId })
    for (const mode of ['legacy', 'modern'] as const) {
      await using grace = await connect(mode, accessToken)
      expect((await grace.client.listTools()).tools.map(({ name }) => name)).toContain('wiki_hello')
    }
    const answer = await new WireClient(vmcp.url, { authorization: `Bearer ${accessToken}` }).modernCall('wiki_hello')
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([403, expect.stringContaining('upstream:wiki')])
  })

  describe('a user who has not logged in to a provider on demand', () => {
    const capabilities = { elicitation: { url: {} } }
    /** The link of an answer that asks for one. */
    const linkOf = ({ result }: ModernAnswer) => {
      const { 'login-wiki': request } = (result?.inputRequests ?? {}) as {
        [name: string]: { method: string; params: Record<string, string> }
      }
      expect(request).toMatchObject({ method: 'elicitation/create', params: { mode: 'url' } })
      return request?.params['url'] ?? ''
    }

    it('is led to that login alone by the first call, and goes on in the same session', async () => {
      const { accessToken } = await logIn(issuer, { user: 'carol', scope: 'openid mcp', clientId })
      const call = (more: object = {}) => callModern(vmcp.url, 'wiki_hello', { token: accessToken, capabilities, ...more })
      const asked = await call()
      expect(asked.result?.resultType).toBe('input_required')
      const visits = idps.tickets.hits('/auth')
      const page = await openLink(linkOf(asked), { user: 'carol' })
      expect(page.text).toContain('wiki is connected')
      expect(idps.tickets.hits('/auth')).toBe(visits)
      const answer = await call({ inputResponses: { 'login-wiki': { action: 'accept' } } })
      expect(answer.result).toMatchObject({ resultType: 'complete' })
      const [{ text: sent = '' } = {}] = (answer.result?.content ?? []) as { text?: string }[]
      expect(await isActiveAt(idps.wiki, sent.slice('Bearer '.length))).toBe(true)
    })

    it('cannot have another user connect an account', async () => {
      const { accessToken } = await logIn(issuer, { user: 'mallory', scope: 'openid mcp', clientId })
      const asked = await callModern(vmcp.url, 'wiki_hello', { token: accessToken, capabilities })
      const page = await openLink(linkOf(asked), { user: 'ada' })
      expect([page.status, page.text.includes('for another user')]).toEqual([403, true])
      const again = await callModern(vmcp.url, 'wiki_hello', { token: accessToken, capabilities })
      expect(again.result?.resultType).toBe('input_required')
    })
  })

  it.each(['legacy', 'modern'] as const)('exchanges the token of the provider that a backend names (%s)', async (mode) => {
    await using client = await connect(mode)
    expect(await client.text('exchanged_hello')).toMatch(/^Bearer new-/)
    const form = exchanged.at(-1)
    expect(await isActiveAt(idps.tickets, form?.get('subject_token') ?? '')).toBe(true)
    expect(exchanged.map((each) => each.get('subject_token'))).not.toContain(token)
  })

  it('answers a backend that rejects the token of a dead provider alone, while the others answer', async () => {
    await using client = await connect('modern')
    await client.text('chat_hello')
    idps.chat.fault = 'down'
    backends.chat.accepts = () => false
    await expect(client.text('chat_hello')).rejects.toThrow()
    expect(await client.text('tickets_hello')).toMatch(/^Bearer /)
    expect(await client.text('open_hello')).toBe('')
    expect(vmcp.offer.roster.get('tickets')?.health.status).toBe('healthy')
  })
})

it('policies see the claims of the provider that primaryUpstreamProvider names', async () => {
  await using stack = new AsyncDisposableStack()
  const idp = stack.use(await startOidcServer())
  const backend = stack.use(await startGuardedBackend())
  backend.accepts = () => true
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const { client_id, client_secret } = await registerAt(idp, issuer)
  const client = { issuer_url: idp.issuer, client_id, client_secret_env_var: 'SECRET', scopes: ['openid'], allow_private_ips: true }
  const vmcp = stack.use(
    await startTestVmcp({
      ...{ port, env: { SECRET: client_secret }, backends: { open: backend.url } },
      config: {
        aggregation: { conflictResolution: 'prefix' },
        incomingAuth: {
          ...{ type: 'oidc', oidc: { issuer, audience: `${issuer}/mcp`, resource: `${issuer}/mcp`, scopes: ['openid', 'mcp'] } },
          authz: {
            type: 'cedar',
            // The subject that the provider knows; the tokens of the server have another one.
            policies: ['permit(principal, action, resource) when { principal.claim_sub == "ada" };'],
            primaryUpstreamProvider: 'corp',
          },
        },
        authServer: {
          ...{ issuer, scopes_supported: ['openid', 'mcp'], allowed_audiences: [`${issuer}/mcp`] },
          upstreams: [{ name: 'corp', type: 'oidc', oidc_config: client }],
        },
      },
    }),
  )
  const called = async (user: string) => {
    const { accessToken } = await logIn(issuer, { user, scope: 'openid mcp' })
    return await callModern(vmcp.url, 'open_hello', { token: accessToken })
  }
  expect(await called('ada')).toMatchObject({ result: { resultType: 'complete' } })
  const { result, error } = await called('bob')
  expect([result, error]).toEqual([undefined, expect.anything()])
})
