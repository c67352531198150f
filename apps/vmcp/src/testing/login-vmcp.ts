import type { Outbound } from '@thv/http/outbound/outbound'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { registerAt } from '@thv/testkit/oidc/log-in'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { startTestVmcp, type TestVmcp } from './test-vmcp.ts'

export interface LoginVmcp {
  readonly vmcp: TestVmcp
  readonly issuer: string
}

/** A virtual server with an authorization server of its own, in front of a server with tools, and a real provider behind it. */
export async function startLoginVmcp(stack: AsyncDisposableStack, more: object = {}, providers?: Outbound): Promise<LoginVmcp> {
  const idp = stack.use(await startOidcServer())
  const fixture = stack.use(await startFixture())
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const { client_id, client_secret } = await registerAt(idp, issuer)
  const oidc_config = { issuer_url: idp.issuer, client_id, client_secret_env_var: 'SECRET', scopes: ['openid'], allow_private_ips: true }
  const vmcp = stack.use(
    await startTestVmcp({
      ...{ port, env: { SECRET: client_secret }, backends: { one: fixture.url }, ...(providers && { providers }) },
      config: {
        incomingAuth: { type: 'oidc', oidc: { issuer, audience: `${issuer}/mcp`, resource: `${issuer}/mcp`, scopes: ['openid', 'mcp'] } },
        authServer: {
          ...{ issuer, scopes_supported: ['openid', 'mcp'], allowed_audiences: [`${issuer}/mcp`] },
          upstreams: [{ name: 'corp', type: 'oidc', oidc_config }],
          ...more,
        },
      },
    }),
  )
  return { vmcp, issuer }
}
