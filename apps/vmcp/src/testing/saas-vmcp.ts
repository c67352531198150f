import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { logIn, registerAt } from '@thv/testkit/oidc/log-in'
import { type OidcServer, startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { type GuardedBackend, startGuardedBackend } from './guarded-backend.ts'
import { startTestVmcp, type TestVmcp, type TestVmcpOptions } from './test-vmcp.ts'

export interface SaasVmcp<N extends string> {
  readonly vmcp: TestVmcp
  /** `corp` says who the user is; the others are on demand. */
  readonly idps: Readonly<Record<N | 'corp', OidcServer>>
  /** Each takes tokens of its provider; `open` takes anything. */
  readonly backends: Readonly<Record<N | 'open', GuardedBackend>>
  /** The token of a user who has logged in to `corp` alone. */
  logIn(user: string): Promise<string>
}

/** A virtual server over one backend without a login and one for each of these providers, which users log in to on demand. */
export async function startSaasVmcp<N extends string>(
  stack: AsyncDisposableStack,
  names: readonly N[],
  { stores, ...config }: Pick<TestVmcpOptions, 'stores'> & Record<string, unknown> = {},
): Promise<SaasVmcp<N>> {
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const idps = {} as Record<N | 'corp', OidcServer>
  const backends = {} as Record<N | 'open', GuardedBackend>
  const env: Record<string, string> = {}
  const upstreams: object[] = []
  for (const name of ['corp', ...names] as const) {
    const idp = stack.use(await startOidcServer())
    idps[name] = idp
    const { client_id, client_secret } = await registerAt(idp, issuer, name)
    env[`SECRET_${name}`] = client_secret
    const client = { client_id, client_secret_env_var: `SECRET_${name}`, scopes: ['openid'] }
    const oidc_config = { issuer_url: idp.issuer, ...client, allow_private_ips: true }
    upstreams.push({ name, type: 'oidc', oidc_config, ...(name !== 'corp' && { login_policy: 'onDemand' }) })
  }
  for (const name of ['open', ...names] as const) backends[name] = stack.use(await startGuardedBackend())
  backends.open.accepts = () => true
  const inject = (name: string) => [name, { type: 'upstream_inject', upstreamInject: { providerName: name } }]
  const vmcp = stack.use(
    await startTestVmcp({
      stores,
      ...{ port, env, backends: Object.fromEntries(Object.entries<GuardedBackend>(backends).map(([name, { url }]) => [name, url])) },
      config: {
        aggregation: { conflictResolution: 'prefix' },
        incomingAuth: { type: 'oidc', oidc: { issuer, audience: `${issuer}/mcp`, resource: `${issuer}/mcp`, scopes: ['openid', 'mcp'] } },
        authServer: { issuer, upstreams, scopes_supported: ['openid', 'mcp'], allowed_audiences: [`${issuer}/mcp`] },
        outgoingAuth: { source: 'inline', backends: Object.fromEntries(names.map(inject)) },
        ...config,
      },
    }),
  )
  let clientId: string | undefined
  return {
    ...{ vmcp, idps, backends },
    async logIn(user) {
      const login = await logIn(issuer, { user, scope: 'openid mcp', clientId })
      clientId = login.clientId
      return login.accessToken
    },
  }
}
