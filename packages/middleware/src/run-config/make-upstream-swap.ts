import type { UpstreamTokens } from '@thv/authserver/upstream-tokens'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import { createUpstreamInjection } from '../credentials/upstream-injection.ts'
import type { Middleware } from '../pipeline/middleware.ts'
import { fromField } from '../pipeline/run-config-options.ts'
import { protectedResourceOf } from './protected-resource-of.ts'

export interface UpstreamSwapDeps {
  /** The vault of the embedded authorization server. */
  readonly upstreamTokens?: UpstreamTokens | undefined
}

/** The tokens of users at an upstream provider reach the backend, unless the document says that they must not. */
export function sendsUpstreamTokens({ embedded_auth_server_config: server, upstream_swap_config: swap }: RunConfig): boolean {
  return server !== undefined && (swap !== undefined || !server.disable_upstream_token_injection)
}

/** With the first provider where the document names none. */
export function makeUpstreamSwap(config: RunConfig, { upstreamTokens }: UpstreamSwapDeps): Middleware | undefined {
  const { embedded_auth_server_config: server, upstream_swap_config: swap } = config
  if (server === undefined && swap !== undefined)
    throw runConfigError('run_config_invalid', 'upstream_swap_config needs embedded_auth_server_config')
  if (server === undefined || upstreamTokens === undefined || !sendsUpstreamTokens(config)) return undefined
  const providers = server.upstreams.map(({ name }) => name)
  const provider = swap?.provider_name ?? providers[0] ?? ''
  if (!providers.includes(provider))
    throw runConfigError(
      'run_config_invalid',
      `upstream_swap_config.provider_name: embedded_auth_server_config has no provider ${provider}`,
    )
  const header = swap?.header_strategy === 'custom' ? swap.custom_header_name : undefined
  const options = { provider, header, issuer: server.issuer, resource: protectedResourceOf(config) }
  return fromField('upstream_swap_config.custom_header_name', () => createUpstreamInjection(options, upstreamTokens))
}
