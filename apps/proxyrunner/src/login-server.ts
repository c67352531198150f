import type { AuthServer } from '@thv/authserver/auth-server'
import type { Mount } from '@thv/gateway/gateway'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import { createSourceAddress } from '@thv/middleware/audit/source-address'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { Logger } from '@thv/telemetry/log'
import type { Env } from './runner-settings.ts'

export interface LoginServerDeps {
  readonly env: Env
  readonly log: Logger
  readonly clock: Clock
  readonly outbound: Outbound
  readonly lifecycle: Lifecycle
}

/** The authorization server that the document asks for; its code is loaded only then. */
export async function openLoginServer(config: RunConfig, deps: LoginServerDeps): Promise<AuthServer | undefined> {
  const { embedded_auth_server_config: login } = config
  if (login === undefined) return undefined
  const { env, log, clock, outbound, lifecycle } = deps
  const [{ createAuthServer }, { NO_UPSTREAM_TOKENS }, { createMemoryAuthStore }] = await Promise.all([
    import('@thv/authserver/auth-server'),
    import('@thv/authserver/no-upstream-tokens'),
    import('@thv/store/auth/memory-auth-store'),
  ])
  const store = createMemoryAuthStore({ clock })
  const addressOf = createSourceAddress({ trustProxyHeaders: config.trust_proxy_headers, trustedProxies: config.trusted_proxies })
  const server = await createAuthServer({ config: login, env, store, tokens: () => NO_UPSTREAM_TOKENS, outbound, clock, log, addressOf })
  lifecycle.onShutdown('login', async () => {
    await server[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
  })
  return server
}

/** Open to everyone: who logs in has no token yet. */
export function mountOf(server: AuthServer): Mount {
  return { guarded: false, serves: (path) => server.serves(path), handle: (exchange) => server.handle(exchange) }
}
