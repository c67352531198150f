import type { UpstreamInjectFileConfig, VmcpConfig } from './vmcp-config.ts'

/** Why no token of a provider can be sent to a backend. Pure. */
export function upstreamProblem(
  { authServer }: { readonly authServer?: VmcpConfig['authServer'] | undefined },
  { providerName }: UpstreamInjectFileConfig,
): string | undefined {
  if (authServer === undefined) return 'needs authServer, whose providers it names'
  if (authServer.disable_upstream_token_injection) return 'must not stand beside authServer.disable_upstream_token_injection'
  const isKnown = providerName === undefined || authServer.upstreams.some(({ name }) => name === providerName)
  return isKnown ? undefined : `authServer has no provider ${providerName}`
}
