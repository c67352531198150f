import type { AuthServer, AuthServerOptions } from '@thv/authserver/auth-server'
import type { UpstreamVaultOptions } from '@thv/authserver/vault/upstream-vault'
import type { Mount } from '@thv/gateway/gateway'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { Lifecycle } from '@thv/kernel/lifecycle'
import { createSourceAddress } from '@thv/middleware/audit/source-address'
import { sendsUpstreamTokens } from '@thv/middleware/run-config/make-upstream-swap'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { RecordCipher } from '@thv/store/redis/record-cipher'
import type { Logger } from '@thv/telemetry/log'
import { openLoginStore } from './login-store.ts'
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
  const [{ createAuthServer }, { NO_UPSTREAM_TOKENS }, { UpstreamVault }] = await Promise.all([
    import('@thv/authserver/auth-server'),
    import('@thv/authserver/no-upstream-tokens'),
    import('@thv/authserver/vault/upstream-vault'),
  ])
  const records = await openLoginStore(login, { env, log, clock, name: config.name })
  const store = (cipher: RecordCipher) => records.open(cipher)
  const onRefreshFailed: UpstreamVaultOptions['onRefreshFailed'] = ({ provider }, failure, reason) =>
    log.warn('token of an upstream provider could not be refreshed', { provider, failure, reason: errorMessage(reason ?? 'refused') })
  const tokens: AuthServerOptions['tokens'] = (refreshers, sealed) =>
    sendsUpstreamTokens(config)
      ? new UpstreamVault({ ...sealed, cipher: () => sealed.cipher, refreshers, clock, onRefreshFailed })
      : NO_UPSTREAM_TOKENS
  const addressOf = createSourceAddress({ trustProxyHeaders: config.trust_proxy_headers, trustedProxies: config.trusted_proxies })
  const server = await createAuthServer({ config: login, env, store, tokens, outbound, clock, log, addressOf })
  lifecycle.onShutdown('login', async () => {
    await server[Symbol.asyncDispose]()
    await records[Symbol.asyncDispose]()
  })
  return server
}

/** Open to everyone: who logs in has no token yet. */
export function mountOf(server: AuthServer): Mount {
  return { guarded: false, serves: (path) => server.serves(path), handle: (exchange) => server.handle(exchange) }
}
