import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WireClient } from '@thv/gateway/testing/wire-client'
import type { OAuthClientOptions } from '@thv/testkit/oauth/oauth-client'
import { connectV1, connectV2 } from '@thv/testkit/oauth/typescript-clients'
import { logIn } from '@thv/testkit/oidc/log-in'
import type { OidcServer } from '@thv/testkit/oidc/oidc-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startLoginRunner } from './testing/login-runner.ts'
import type { RunningDocument } from './testing/run-document.ts'

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

it.each(['in the document', 'in a file'])(
  'policies of a runner (%s) see the claims of the provider that primary_upstream_provider names',
  { timeout: 60_000 },
  async (place) => {
    await using stack = new AsyncDisposableStack()
    // The subject that the provider knows; the tokens of the server have another one.
    const policies = ['permit(principal, action, resource) when { principal.claim_sub == "ada" };']
    const authz = { version: '1.0', type: 'cedarv1', cedar: { policies, primary_upstream_provider: 'corp' } }
    const folder = await mkdtemp(join(tmpdir(), 'thv-primary-'))
    stack.defer(() => rm(folder, { recursive: true }))
    const file = join(folder, 'authz.json')
    await writeFile(file, JSON.stringify(authz))
    const document = place === 'in a file' ? { authz_config_path: file, authz_primary_upstream_provider: 'corp' } : { authz_config: authz }
    const { runner, issuer } = await startLoginRunner(stack, { disable_upstream_token_injection: true }, { document })
    const called = async (user: string) => {
      const { accessToken } = await logIn(issuer, { user, scope: 'openid mcp' })
      const client = new WireClient(runner.url, { authorization: `Bearer ${accessToken}` })
      return (await client.modernCall('echo', { text: 'x' })).messages[0]
    }
    expect(await called('ada')).toHaveProperty('result')
    expect(await called('bob')).toMatchObject({ error: { code: 403 } })
  },
)
