import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { startFixture } from '@thv/testkit/mcp/fixture'
import type { OAuthClientOptions } from '@thv/testkit/oauth/oauth-client'
import { connectV1, connectV2 } from '@thv/testkit/oauth/typescript-clients'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningDocument, runDocument } from './testing/run-document.ts'

const GRANTS = ['authorization_code', 'refresh_token']

describe('a runner with an authorization server of its own', () => {
  const stack = new AsyncDisposableStack()
  let idp: OidcServer
  let runner: RunningDocument
  let issuer: string

  beforeAll(async () => {
    ;({ idp, runner, issuer } = await startLoginRunner(stack, { disable_upstream_token_injection: true }))
  })
  afterAll(() => stack.disposeAsync())

  it.each([
    ['TypeScript v1', connectV1, 'legacy'],
    ['TypeScript v2', connectV2, 'modern'],
  ] as const)(
    'lets an official client (%s) register, log its user in at the provider, and call a tool [002-092]',
    async (_, connect, era) => {
      const options: OAuthClientOptions = { url: runner.url, user: 'ada', era, grantTypes: GRANTS }
      await using client = await connect(options)
      expect(await client.tools()).toContain('echo')
      const { content } = await client.call('report_request')
      expect(JSON.stringify(content)).not.toMatch(/bearer/i)
      expect(client.visits).toHaveLength(1)
      expect(client.visits[0]?.origin).toBe(issuer)
      // Tokens of the runner itself are verified without asking anybody.
      expect(idp.grants.every(({ grantType }) => grantType === 'authorization_code')).toBe(true)
    },
  )

  it('refuses a request without a token and names itself as the authorization server', async () => {
    const answer = await fetch(runner.url, { method: 'POST', body: '{}' })
    expect(answer.status).toBe(401)
    const metadata = /resource_metadata="([^"]+)"/.exec(answer.headers.get('www-authenticate') ?? '')?.[1] ?? ''
    const resource = (await (await fetch(metadata)).json()) as { authorization_servers: string[] }
    expect(resource.authorization_servers).toEqual([issuer])
    const server = (await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json()) as { issuer: string }
    expect(server.issuer).toBe(issuer)
  })
})

describe('a runner that sends tokens of its upstream provider to its backend', () => {
  const stack = new AsyncDisposableStack()
  let idp: OidcServer
  let runner: RunningDocument

  beforeAll(async () => {
    ;({ idp, runner } = await startLoginRunner(stack, {}))
  })
  afterAll(() => stack.disposeAsync())

  it('gives the backend the token that the user has there, and goes on while the provider is down', async () => {
    await using client = await connectV2({ url: runner.url, user: 'ada', era: 'modern', grantTypes: GRANTS })
    const sent = async () => {
      const { content } = await client.call('report_request')
      const { headers } = JSON.parse(content[0]?.text ?? '{}') as { headers: Record<string, string> }
      return headers['authorization'] ?? ''
    }
    const authorization = await sent()
    expect(authorization).toMatch(/^Bearer \S+$/)
    const basic = Buffer.from(`${idp.clientId}:${idp.clientSecret}`).toString('base64')
    const introspected = await fetch(idp.introspectionUrl, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams({ token: authorization.slice('Bearer '.length) }),
    })
    expect(await introspected.json()).toMatchObject({ active: true, sub: 'ada' })
    idp.fault = 'down'
    expect(await sent()).toBe(authorization)
    expect(runner.log.lines.join('\n')).not.toContain(authorization.slice('Bearer '.length))
  })
})

async function startLoginRunner(stack: AsyncDisposableStack, more: object) {
  const idp = stack.use(await startOidcServer())
  const fixture = stack.use(await startFixture({ transport: 'http' }))
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const { client_id, client_secret } = await registered(idp, `${issuer}/oauth/callback`)
  const upstream = {
    issuer_url: idp.issuer,
    client_id,
    client_secret_env_var: 'UPSTREAM_SECRET',
    scopes: ['openid'],
    allow_private_ips: true,
  }
  const document = {
    port,
    oidc_config: { issuer, audience: `${issuer}/mcp`, resource_url: `${issuer}/mcp`, scopes: ['openid', 'mcp'] },
    embedded_auth_server_config: {
      issuer,
      upstreams: [{ name: 'corp', type: 'oidc', oidc_config: upstream }],
      scopes_supported: ['openid', 'mcp'],
      allowed_audiences: [`${issuer}/mcp`],
      ...more,
    },
  }
  const runner = stack.use(await runDocument(fixture.url, document, { UPSTREAM_SECRET: client_secret }))
  return { idp, runner, issuer }
}

async function registered(idp: OidcServer, redirectUri: string): Promise<{ client_id: string; client_secret: string }> {
  const answer = await fetch(`${idp.issuer}/reg`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [redirectUri], token_endpoint_auth_method: 'client_secret_basic' }),
  })
  return (await answer.json()) as { client_id: string; client_secret: string }
}
