import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { registerAt } from '@thv/testkit/oidc/log-in'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { type RunDocumentOptions, type RunningDocument, runDocument } from './run-document.ts'

export interface LoginRunner {
  readonly idp: OidcServer
  /** Of `moreProviders`. */
  readonly more: Readonly<Record<string, OidcServer>>
  readonly runner: RunningDocument
  readonly issuer: string
}

export interface LoginRunnerOptions extends RunDocumentOptions {
  /** Members of the document beside the authorization server. */
  readonly document?: object
  /** After the first one, by name. */
  readonly moreProviders?: Readonly<Record<string, 'required' | 'onDemand'>>
}

/** A runner with an authorization server of its own, in front of a server with tools, and a real provider behind it. */
export async function startLoginRunner(
  stack: AsyncDisposableStack,
  more: object,
  { document: beside, moreProviders = {}, ...options }: LoginRunnerOptions = {},
): Promise<LoginRunner> {
  const idp = stack.use(await startOidcServer())
  const fixture = stack.use(await startFixture({ transport: 'http' }))
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const env: Record<string, string> = {}
  const upstreamOf = async (at: OidcServer, variable: string, name?: string) => {
    const { client_id, client_secret } = await registerAt(at, issuer, name)
    env[variable] = client_secret
    return { issuer_url: at.issuer, client_id, client_secret_env_var: variable, scopes: ['openid'], allow_private_ips: true }
  }
  const upstreams: object[] = [{ name: 'corp', type: 'oidc', oidc_config: await upstreamOf(idp, 'UPSTREAM_SECRET') }]
  const others: Record<string, OidcServer> = {}
  for (const [name, login_policy] of Object.entries(moreProviders)) {
    const other = stack.use(await startOidcServer())
    others[name] = other
    upstreams.push({ name, type: 'oidc', login_policy, oidc_config: await upstreamOf(other, `SECRET_${name}`, name) })
  }
  const document = {
    port,
    oidc_config: { issuer, audience: `${issuer}/mcp`, resource_url: `${issuer}/mcp`, scopes: ['openid', 'mcp'] },
    embedded_auth_server_config: {
      issuer,
      upstreams,
      scopes_supported: ['openid', 'mcp'],
      allowed_audiences: [`${issuer}/mcp`],
      ...more,
    },
    ...beside,
  }
  const runner = stack.use(await runDocument(fixture.url, document, env, options))
  return { idp, more: others, runner, issuer }
}
