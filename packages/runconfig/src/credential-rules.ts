import type { RemoteAuthConfig, TokenExchangeConfig, UpstreamSwapConfig } from './policy-config.ts'
import type { RunConfig } from './run-config.ts'

type Report = (path: string, message: string) => void

/** Rules for the fields that authenticate the proxy at its backend. */
export function credentialProblems(config: RunConfig, problem: Report): void {
  const exchange = config.token_exchange_config
  const remote = config.remote_auth_config
  if (config.transport === 'stdio') {
    for (const field of HEADER_FIELDS) {
      if (config[field] !== undefined && (field !== 'remote_auth_config' || isUsed(remote)))
        problem(field, 'sets a header, and a server that speaks stdio gets none; use env_vars or secrets')
    }
  }
  if (exchange !== undefined) {
    if (exchange.header_strategy === 'custom' && exchange.external_token_header_name === undefined)
      problem('token_exchange_config.external_token_header_name', 'is required beside header_strategy custom')
    if (exchange.subject_provider_name !== undefined && config.embedded_auth_server_config === undefined)
      problem('token_exchange_config.subject_provider_name', 'needs embedded_auth_server_config with a provider of that name')
    if (exchange.subject_provider_name !== undefined && config.embedded_auth_server_config?.disable_upstream_token_injection === true)
      problem('token_exchange_config.subject_provider_name', 'needs tokens of the provider: disable_upstream_token_injection must be false')
    if (config.upstream_swap_config !== undefined && headerOf(exchange) === headerOfSwap(config.upstream_swap_config))
      problem('token_exchange_config', 'sets the header that upstream_swap_config sets; use header_strategy custom for one of them')
  }
  if (remote !== undefined && isUsed(remote)) checkRemoteAuth(remote, problem)
}

function headerOf({ header_strategy: strategy, external_token_header_name: name }: TokenExchangeConfig): string | undefined {
  return strategy === 'custom' ? name?.toLowerCase() : 'authorization'
}

function headerOfSwap({ header_strategy: strategy, custom_header_name: name }: UpstreamSwapConfig): string | undefined {
  return strategy === 'custom' ? name?.toLowerCase() : 'authorization'
}

const HEADER_FIELDS = ['token_exchange_config', 'header_injection_config', 'remote_auth_config'] as const
const INTERACTIVE = 'is for logins in a browser, which a proxy cannot do; use a bearer token or client credentials'

/** ToolHive (Go) writes this part even when nothing in it is set. */
function isUsed(remote: RemoteAuthConfig | undefined): boolean {
  return remote !== undefined && Object.values(remote).some((value) => value !== undefined && value !== false && !isEmpty(value))
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

function checkRemoteAuth(remote: RemoteAuthConfig, problem: Report): void {
  const at = 'remote_auth_config'
  if (remote.authorize_url !== undefined) problem(`${at}.authorize_url`, INTERACTIVE)
  if (remote.use_pkce) problem(`${at}.use_pkce`, INTERACTIVE)
  if (!isEmpty(remote.oauth_params)) problem(`${at}.oauth_params`, INTERACTIVE)
  if (remote.scope_param_name !== undefined) problem(`${at}.scope_param_name`, INTERACTIVE)

  const bearers = [remote.bearer_token, remote.bearer_token_file].filter((value) => value !== undefined).length
  const isClient = remote.client_id !== undefined
  if (bearers > 1) problem(`${at}.bearer_token_file`, 'must not stand beside bearer_token')
  if (bearers > 0 && isClient) problem(`${at}.client_id`, 'must not stand beside a bearer token')
  if (isClient) {
    const secrets = [remote.client_secret, remote.client_secret_file].filter((value) => value !== undefined).length
    if (secrets !== 1) problem(`${at}.client_secret`, 'expects exactly one of client_secret and client_secret_file beside client_id')
    if (remote.token_url === undefined && remote.issuer === undefined)
      problem(`${at}.token_url`, 'expects token_url or issuer beside client_id')
    if (remote.token_url === undefined && remote.issuer !== undefined && !isHttpUrl(remote.issuer))
      problem(`${at}.issuer`, 'expects an http or https URL')
    return
  }
  for (const member of CLIENT_MEMBERS) {
    const value = remote[member]
    if (value !== undefined && !isEmpty(value)) problem(`${at}.${member}`, 'needs client_id: it is about client credentials')
  }
}

const CLIENT_MEMBERS = ['client_secret', 'client_secret_file', 'scopes', 'issuer', 'token_url', 'resource'] as const

function isHttpUrl(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? '')
}
