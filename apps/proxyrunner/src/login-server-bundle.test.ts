import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectV2 } from '@thv/testkit/oauth/typescript-clients'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { expect, it } from 'vitest'
import { spawnReadyRunner } from './testing/runner-process.ts'

/* The library files its records under names of classes, which a bundler may drop. */

it('the bundled runner lets a client register, log its user in and call a tool', async () => {
  await using idp = await startOidcServer()
  await using fixture = await startFixture({ transport: 'http' })
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const metadata = { redirect_uris: [`${issuer}/oauth/callback`], token_endpoint_auth_method: 'client_secret_basic' }
  const headers = { 'content-type': 'application/json' }
  const registered = await fetch(`${idp.issuer}/reg`, { method: 'POST', headers, body: JSON.stringify(metadata) })
  const { client_id, client_secret } = (await registered.json()) as { client_id: string; client_secret: string }
  const upstream = {
    issuer_url: idp.issuer,
    client_id,
    client_secret_env_var: 'UPSTREAM_SECRET',
    scopes: ['openid'],
    allow_private_ips: true,
  }
  const document = {
    transport: 'streamable-http',
    remote_url: fixture.url,
    remote_policy: { allow_loopback: true },
    port,
    telemetry_config: { prometheus_port: await freePort() },
    oidc_config: { issuer, audience: `${issuer}/mcp`, resource_url: `${issuer}/mcp`, scopes: ['openid', 'mcp'] },
    embedded_auth_server_config: {
      issuer,
      upstreams: [{ name: 'corp', type: 'oidc', oidc_config: upstream }],
      scopes_supported: ['openid', 'mcp'],
      allowed_audiences: [`${issuer}/mcp`],
      disable_upstream_token_injection: true,
    },
  }
  await using runner = await spawnReadyRunner(document, { UPSTREAM_SECRET: client_secret })
  const grantTypes = ['authorization_code', 'refresh_token']
  await using client = await connectV2({ url: runner.url, user: 'ada', era: 'modern', grantTypes })
  expect(await client.tools()).toContain('echo')
  expect(runner.log.join('')).not.toMatch(/oidc-provider|Unsupported runtime/)
})
