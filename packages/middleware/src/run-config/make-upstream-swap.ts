import type { UpstreamTokens } from '@thv/authserver/upstream-tokens'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import { createUpstreamInjection } from '../credentials/upstream-injection.ts'
import type { Middleware } from '../pipeline/middleware.ts'
import { fromField } from '../pipeline/run-config-options.ts'
import { upstreamOptions } from './upstream-options.ts'

export interface UpstreamSwapDeps {
  /** The vault of the embedded authorization server. */
  readonly upstreamTokens?: UpstreamTokens | undefined
}

/** Tokens of users at an upstream provider are needed: they reach the backend, or are exchanged for one that does. */
export function sendsUpstreamTokens(config: RunConfig): boolean {
  return injectsUpstreamTokens(config) || config.token_exchange_config?.subject_provider_name !== undefined
}

/** By default, unless the document says that they must not, or a token exchange has taken the place. */
function injectsUpstreamTokens(config: RunConfig): boolean {
  const { embedded_auth_server_config: server, upstream_swap_config: swap, token_exchange_config: exchange } = config
  return server !== undefined && (swap !== undefined || (exchange === undefined && !server.disable_upstream_token_injection))
}

/** With the first provider where the document names none. */
export function makeUpstreamSwap(config: RunConfig, { upstreamTokens }: UpstreamSwapDeps): Middleware | undefined {
  const { embedded_auth_server_config: server, upstream_swap_config: swap } = config
  if (server === undefined && swap !== undefined)
    throw runConfigError('run_config_invalid', 'upstream_swap_config needs embedded_auth_server_config')
  if (server === undefined || upstreamTokens === undefined || !injectsUpstreamTokens(config)) return undefined
  const provider = swap?.provider_name ?? server.upstreams[0]?.name ?? ''
  const header = swap?.header_strategy === 'custom' ? swap.custom_header_name : undefined
  const options = { ...upstreamOptions(config, provider, 'upstream_swap_config.provider_name'), header }
  return fromField('upstream_swap_config.custom_header_name', () => createUpstreamInjection(options, upstreamTokens))
}
