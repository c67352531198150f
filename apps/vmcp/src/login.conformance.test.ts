import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { AUTHORIZATION_PASSED, runAuthorizationSuite } from '@thv/testkit/oauth/authorization-suite'
import { registerAt } from '@thv/testkit/oidc/log-in'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { expect, it } from 'vitest'
import { startTestVmcp } from './testing/test-vmcp.ts'

it('conformance authorization: a virtual server with an authorization server passes both scenarios', async () => {
  await using idp = await startOidcServer()
  await using fixture = await startFixture()
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const { client_id, client_secret } = await registerAt(idp, issuer)
  const oidc_config = { issuer_url: idp.issuer, client_id, client_secret_env_var: 'SECRET', scopes: ['openid'], allow_private_ips: true }
  await using vmcp = await startTestVmcp({
    port,
    env: { SECRET: client_secret },
    backends: { one: fixture.url },
    config: {
      incomingAuth: { type: 'oidc', oidc: { issuer, audience: `${issuer}/mcp`, resource: `${issuer}/mcp`, scopes: ['openid', 'mcp'] } },
      authServer: {
        ...{ issuer, scopes_supported: ['openid', 'mcp'], allowed_audiences: [`${issuer}/mcp`] },
        upstreams: [{ name: 'corp', type: 'oidc', oidc_config }],
      },
    },
  })
  const { exitCode, output } = await runAuthorizationSuite({ issuer, resource: vmcp.url, user: 'ada' })
  for (const line of AUTHORIZATION_PASSED) expect(output).toContain(line)
  expect(exitCode).toBe(0)
})
