import type { UpstreamTokens } from '@thv/authserver/upstream-tokens'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import { createUpstreamToken, type UpstreamToken, type UpstreamTokenOptions } from '../credentials/upstream-token.ts'
import { protectedResourceOf } from './protected-resource-of.ts'

/** Options for the token of a provider. `field`: where the document names the provider. */
export function upstreamOptions(run: RunConfig, provider: string, field: string): UpstreamTokenOptions {
  const { issuer = '', upstreams = [] } = run.embedded_auth_server_config ?? {}
  const found = upstreams.find(({ name }) => name === provider)
  if (found === undefined) throw runConfigError('run_config_invalid', `${field}: embedded_auth_server_config has no provider ${provider}`)
  return { provider, issuer, isOnDemand: found.login_policy === 'onDemand', resource: protectedResourceOf(run) }
}

/** The token that a token exchange takes, where the document names a provider for it. */
export function exchangedToken(run: RunConfig, tokens: UpstreamTokens | undefined): UpstreamToken | undefined {
  const provider = run.token_exchange_config?.subject_provider_name
  if (provider === undefined) return undefined
  const field = 'token_exchange_config.subject_provider_name'
  const options = upstreamOptions(run, provider, field)
  if (tokens === undefined) throw runConfigError('run_config_invalid', `${field} needs the vault of embedded_auth_server_config`)
  return createUpstreamToken(options, tokens)
}
