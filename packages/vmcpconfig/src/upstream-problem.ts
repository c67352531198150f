import type { BackendAuthConfig, VmcpConfig } from './vmcp-config.ts'

type Config = { readonly authServer?: VmcpConfig['authServer'] | undefined }

/** Why no token of a provider can be sent to a backend, or exchanged for it. Begins with the field. Pure. */
export function upstreamProblem(config: Config, { upstreamInject, tokenExchange }: BackendAuthConfig): string | undefined {
  const subject = tokenExchange?.subjectProviderName
  if (upstreamInject === undefined && subject === undefined) return undefined
  const field = upstreamInject === undefined ? 'tokenExchange.subjectProviderName' : 'upstreamInject'
  const problem = providerProblem(config, upstreamInject === undefined ? subject : upstreamInject.providerName)
  return problem === undefined ? undefined : `${field} ${problem}`
}

/** The provider whose token a backend gets, or that is exchanged for it: the first where none is named. Pure. */
export function upstreamProvider({ authServer }: Config, { upstreamInject, tokenExchange }: BackendAuthConfig): string | undefined {
  const first = authServer?.disable_upstream_token_injection === false ? authServer.upstreams[0]?.name : undefined
  if (upstreamInject !== undefined) return upstreamInject.providerName ?? first
  return tokenExchange === undefined ? undefined : (tokenExchange.subjectProviderName ?? first)
}

export function providerProblem({ authServer }: Config, providerName: string | undefined): string | undefined {
  if (authServer === undefined) return 'needs authServer, whose providers it names'
  if (authServer.disable_upstream_token_injection) return 'must not stand beside authServer.disable_upstream_token_injection'
  const isKnown = providerName === undefined || authServer.upstreams.some(({ name }) => name === providerName)
  return isKnown ? undefined : `authServer has no provider ${providerName}`
}
