import type { AuthServer, AuthServerOptions } from '@thv/authserver/auth-server'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Exchange } from '@thv/http/server/exchange'
import type { Clock } from '@thv/kernel/clock'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { RecordCipher } from '@thv/store/redis/record-cipher'
import type { Log } from '@thv/telemetry/log'
import { createSourceAddress } from '../audit/source-address.ts'
import { openLoginStore } from './login-store.ts'

export interface LoginServerDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly clock: Clock
  readonly outbound: Outbound
  readonly lifecycle: Lifecycle
  /** Some backend gets tokens of upstream providers; otherwise none is kept. */
  readonly keepsTokens: boolean
}

/** The authorization server that the document asks for; its code is loaded only then. */
export async function openLoginServer(config: RunConfig, deps: LoginServerDeps): Promise<AuthServer | undefined> {
  const { embedded_auth_server_config: login } = config
  if (login === undefined) return undefined
  const { env, log, clock, outbound, lifecycle, keepsTokens } = deps
  const [{ createAuthServer }, { NO_UPSTREAM_TOKENS }, { UpstreamVault }] = await Promise.all([
    import('@thv/authserver/auth-server'),
    import('@thv/authserver/no-upstream-tokens'),
    import('@thv/authserver/vault/upstream-vault'),
  ])
  const records = await openLoginStore(login, { env, log, clock, name: config.name })
  const store = (cipher: RecordCipher) => records.open(cipher)
  const tokens: AuthServerOptions['tokens'] = (refreshers, sealed) =>
    keepsTokens ? new UpstreamVault({ ...sealed, cipher: () => sealed.cipher, refreshers, clock }) : NO_UPSTREAM_TOKENS
  const addressOf = createSourceAddress({ trustProxyHeaders: config.trust_proxy_headers, trustedProxies: config.trusted_proxies })
  const server = await createAuthServer({ config: login, env, store, tokens, outbound, clock, log, addressOf })
  lifecycle.onShutdown('login', async () => {
    await server[Symbol.asyncDispose]()
    await records[Symbol.asyncDispose]()
  })
  return server
}

/** Routes of the server, for a gateway. */
export interface LoginMount {
  readonly guarded: false
  serves(path: string): boolean
  handle(exchange: Exchange): Promise<void>
}

/** Open to everyone: who logs in has no token yet. */
export function mountOf(server: AuthServer): LoginMount {
  return { guarded: false, serves: (path) => server.serves(path), handle: (exchange) => server.handle(exchange) }
}
