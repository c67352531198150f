import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { registerAt } from '@thv/testkit/oidc/log-in'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { type RunDocumentOptions, type RunningDocument, runDocument } from './run-document.ts'

export interface LoginRunner {
  readonly idp: OidcServer
  readonly runner: RunningDocument
  readonly issuer: string
}

export interface LoginRunnerOptions extends RunDocumentOptions {
  /** Members of the document beside the authorization server. */
  readonly document?: object
}

/** A runner with an authorization server of its own, in front of a server with tools, and a real provider behind it. */
export async function startLoginRunner(
  stack: AsyncDisposableStack,
  more: object,
  { document: beside, ...options }: LoginRunnerOptions = {},
): Promise<LoginRunner> {
  const idp = stack.use(await startOidcServer())
  const fixture = stack.use(await startFixture({ transport: 'http' }))
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const { client_id, client_secret } = await registerAt(idp, issuer)
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
    ...beside,
  }
  const runner = stack.use(await runDocument(fixture.url, document, { UPSTREAM_SECRET: client_secret }, options))
  return { idp, runner, issuer }
}
