import { WireClient } from '@thv/gateway/testing/wire-client'
import { startBackend } from '@thv/http/testing/backend'
import type { OAuthClient } from '@thv/testkit/oauth/oauth-client'
import { connectV2 } from '@thv/testkit/oauth/typescript-clients'
import { isActiveAt, logIn } from '@thv/testkit/oidc/log-in'
import { OIDC_PATHS } from '@thv/testkit/oidc/oidc-configuration'
import type { OidcServer } from '@thv/testkit/oidc/oidc-server'
import { openLink } from '@thv/testkit/oidc/sign-in'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type LoginRunner, startLoginRunner } from './testing/login-runner.ts'

const ERAS = ['legacy', 'modern'] as const
const PROVIDERS = { crm: 'onDemand', other: 'onDemand' } as const

/** The token that the server behind the runner gets. */
async function tokenAt(client: OAuthClient): Promise<string | undefined> {
  return reported((await client.call('report_request')).content[0]?.text ?? '')
}

function reported(text: string): string | undefined {
  const { headers } = JSON.parse(text) as { headers: Record<string, string | undefined> }
  return headers['authorization']?.replace(/^Bearer /, '')
}

describe('a runner whose server gets the token of a provider on demand', () => {
  const stack = new AsyncDisposableStack()
  let login: LoginRunner

  beforeAll(async () => {
    login = await startLoginRunner(stack, {}, { moreProviders: PROVIDERS, document: { upstream_swap_config: { provider_name: 'crm' } } })
  })
  afterAll(() => stack.disposeAsync())

  const visits = () => [login.idp, login.more['crm'], login.more['other']].map((idp) => idp?.hits(OIDC_PATHS.authorization) ?? 0)

  /** Every request to the server needs the token, the first one too. */
  it.each(ERAS)('leads an official client to the first login and then to that one, and to no other (%s)', async (era) => {
    const { runner, more } = login
    const before = visits()
    const options = { url: runner.url, user: `ada-${era}`, era, grantTypes: ['authorization_code'], cookies: new Map<string, string>() }
    await using client = await connectV2(options)
    const token = await tokenAt(client)
    expect(await isActiveAt(more['crm'] as OidcServer, token ?? '')).toBe(true)
    const asked = client.visits.map((url) => url.searchParams.get('scope')?.split(' ').toSorted())
    expect(asked).toEqual([
      ['mcp', 'openid'],
      ['mcp', 'openid', 'upstream:crm'],
    ])
    expect(visits().map((count, at) => count - (before[at] ?? 0))).toEqual([1, 1, 0])
    expect(await tokenAt(client)).toBe(token)
    expect(client.visits).toHaveLength(2)
  })

  it('gives a client that shows links one to that login, and the same session goes on', async () => {
    const { issuer, runner, more } = login
    const user = 'links'
    const { accessToken } = await logIn(issuer, { user, scope: 'openid mcp' })
    const wire = new WireClient(runner.url, { authorization: `Bearer ${accessToken}` })
    const meta = { _meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } } } }
    const call = async () => (await wire.modern('tools/call', { name: 'report_request', arguments: {}, ...meta })).messages.at(-1).result
    const before = visits()
    const { resultType, inputRequests } = await call()
    expect([resultType, Object.keys(inputRequests)]).toEqual(['input_required', ['login-crm']])
    const { mode, url } = inputRequests['login-crm'].params
    expect([mode, url]).toEqual(['url', expect.stringContaining(`${issuer}/oauth/connect/crm?`)])
    expect((await openLink(url, { user })).text).toContain('crm is connected')
    expect(visits()[2]).toBe(before[2])
    const { content } = await call()
    expect(await isActiveAt(more['crm'] as OidcServer, reported(content[0].text) ?? '')).toBe(true)
  })
})

it('a runner exchanges the token that its user has at the provider that is named, and sends no other', async () => {
  await using stack = new AsyncDisposableStack()
  const forms: URLSearchParams[] = []
  const exchange = stack.use(
    await startBackend(({ body }, response) => {
      forms.push(new URLSearchParams(body))
      const answer = { access_token: `new-${forms.length}`, token_type: 'Bearer', expires_in: 3_600, issued_token_type: 'x' }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    }),
  )
  const token_exchange_config = { token_url: `${exchange.url}/token`, client_id: 'us', audience: 'crm', subject_provider_name: 'crm' }
  const { runner, more } = await startLoginRunner(stack, {}, { moreProviders: { crm: 'required' }, document: { token_exchange_config } })
  await using client = await connectV2({ url: runner.url, user: 'ada', era: 'modern', grantTypes: ['authorization_code'] })
  expect(await tokenAt(client)).toBe('new-1')
  expect(forms).toHaveLength(1)
  expect(await isActiveAt(more['crm'] as OidcServer, forms[0]?.get('subject_token') ?? '')).toBe(true)
})
