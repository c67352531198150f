import { readFile } from 'node:fs/promises'
import { TokenCache } from '@thv/auth/outgoing/token-cache'
import { createTokenEndpoint, type TokenClient } from '@thv/auth/outgoing/token-endpoint'
import { createTokenUrlDiscovery } from '@thv/auth/outgoing/token-url-discovery'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { RemoteAuthConfig } from '@thv/runconfig/policy-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { Log } from '@thv/telemetry/log'
import type { Middleware } from '../pipeline/middleware.ts'
import { type Env, fromField, optionalSecretVariable, secretVariable, secretVariableName } from '../pipeline/run-config-options.ts'
import { createBearerFile } from './bearer-file.ts'
import { createClientCredentials } from './client-credentials.ts'
import { createFailureLog } from './failure-log.ts'
import { createHeaderInjection } from './header-injection.ts'
import { createTokenExchange } from './token-exchange.ts'
import type { UpstreamToken } from './upstream-token.ts'

export interface CredentialsDeps {
  readonly env: Env
  readonly log: Log
  readonly clock: Clock
  /** Without a policy of its own. */
  readonly outbound: Outbound
  /** The token that is exchanged instead of the caller's own. */
  readonly upstreamToken?: UpstreamToken | undefined
}

const TOKEN_EXCHANGE_SECRET = 'TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET'
const REMOTE_BEARER = 'TOOLHIVE_REMOTE_AUTH_BEARER_TOKEN'

export function makeHeaderInjection({ header_injection_config: config }: RunConfig, { env }: CredentialsDeps): Middleware | undefined {
  if (config === undefined) return undefined
  const field = 'header_injection_config'
  const value = secretVariable(config.header_value_env, `${field}.header_value_env`, env)
  return fromField(field, () => createHeaderInjection({ header: config.header_name, value }))
}

export function makeTokenExchange(run: RunConfig, deps: CredentialsDeps): Middleware | undefined {
  const { token_exchange_config: config, oidc_config: oidc } = run
  if (config === undefined) return undefined
  const secret = optionalSecretVariable(TOKEN_EXCHANGE_SECRET, deps.env) ?? config.client_secret
  const client = { id: config.client_id, ...(secret !== undefined && { secret: () => secret }) }
  const closing = new AbortController()
  const endpoint = createTokenEndpoint({ ...deps, url: () => config.token_url, client, signal: closing.signal })
  const options = {
    tokenUrl: config.token_url,
    clientId: config.client_id,
    audience: config.audience,
    scopes: config.scopes,
    subjectTokenType: config.subject_token_type,
    header: config.header_strategy === 'custom' ? config.external_token_header_name : undefined,
    authenticates: oidc !== undefined,
  }
  const { upstreamToken } = deps
  const parts = { endpoint, cache: new TokenCache(deps), failures: createFailureLog('token exchange', deps), upstreamToken }
  return closedBy(
    closing,
    fromField('token_exchange_config', () => createTokenExchange(options, parts)),
  )
}

export function makeRemoteAuth(run: RunConfig, deps: CredentialsDeps): Middleware | undefined {
  const { remote_auth_config: config } = run
  const bearer = config === undefined ? undefined : bearerToken(config, deps.env)
  if (bearer !== undefined) {
    const injected = fromField('remote_auth_config.bearer_token', () =>
      createHeaderInjection({ header: 'Authorization', value: `Bearer ${bearer}` }),
    )
    return { ...injected, name: 'remote-auth' }
  }
  if (config?.bearer_token_file !== undefined) return createBearerFile(config.bearer_token_file, deps)
  return config?.client_id === undefined ? undefined : clientCredentials(config, config.client_id, deps)
}

function clientCredentials(config: RemoteAuthConfig, clientId: string, deps: CredentialsDeps): Middleware {
  const { issuer, token_url: tokenUrl, scopes, resource } = config
  const closing = new AbortController()
  const { signal } = closing
  const url =
    tokenUrl === undefined ? createTokenUrlDiscovery({ ...deps, issuer: issuer ?? '', signal }) : (): string | Promise<string> => tokenUrl
  const client: TokenClient = { id: clientId, secret: clientSecret(config, deps.env) }
  const parts = {
    endpoint: createTokenEndpoint({ ...deps, url, client, signal }),
    cache: new TokenCache(deps),
    failures: createFailureLog('client credentials', deps),
  }
  return closedBy(closing, createClientCredentials({ source: tokenUrl ?? issuer ?? '', clientId, scopes, resource }, parts))
}

function clientSecret({ client_secret: given, client_secret_file: file }: RemoteAuthConfig, env: Env): TokenClient['secret'] {
  if (file !== undefined) return async () => (await readFile(mountedPath(file), 'utf8')).trim()
  if (given === undefined) return undefined
  const secret = secretOf(given, 'remote_auth_config.client_secret', env)
  return () => secret
}

function bearerToken({ bearer_token: given, bearer_token_file: file, client_id: client }: RemoteAuthConfig, env: Env): string | undefined {
  if (given !== undefined) return secretOf(given, 'remote_auth_config.bearer_token', env)
  return file === undefined && client === undefined ? optionalSecretVariable(REMOTE_BEARER, env) : undefined
}

/** The value itself, or the secret that `NAME,target=…` names. */
function secretOf(given: string, field: string, env: Env): string {
  const name = /^([^,\s]+),target=[A-Za-z_][A-Za-z0-9_]*$/.exec(given)?.[1]
  return name === undefined ? given : secretVariable(secretVariableName(name), field, env)
}

function closedBy(closing: AbortController, middleware: Middleware): Middleware {
  return { ...middleware, close: async () => closing.abort() }
}
