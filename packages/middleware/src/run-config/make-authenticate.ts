import type { Identity } from '@thv/auth/incoming/authenticator'
import type { LocalKeys } from '@thv/auth/incoming/incoming-provider'
import { createAuthenticator } from '@thv/auth/incoming/token-authenticator'
import type { LoginListener } from '@thv/authserver/login-events'
import type { UpstreamTokens } from '@thv/authserver/upstream-tokens'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import type { Log } from '@thv/telemetry/log'
import { createAuthenticate } from '../authenticate/authenticate.ts'
import { type Challenges, createChallenges } from '../authenticate/challenges.ts'
import { createUpstreamClaims, type SeenClaims } from '../authenticate/upstream-claims.ts'
import type { PolicyHolder } from '../authorize/authorize.ts'
import { createUpstreamToken } from '../credentials/upstream-token.ts'
import type { Middleware } from '../pipeline/middleware.ts'
import { incomingProviderOf } from './incoming-provider-of.ts'
import { protectedResourceOf } from './protected-resource-of.ts'
import { upstreamOptions } from './upstream-options.ts'

export interface AuthenticateMakerDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly clock: Clock
  /** Without a policy: the provider brings its own. */
  readonly outbound: Outbound
  /** The authorization server in this program, whose tokens are verified without a network. */
  readonly ownIssuer?: OwnIssuer | undefined
  /** They may see claims of an upstream provider. */
  readonly policies?: PolicyHolder | undefined
  /** The vault with its tokens. */
  readonly upstreamTokens?: UpstreamTokens | undefined
}

export interface OwnIssuer {
  findKeys: LocalKeys
  isRevoked(claims: Identity['claims']): boolean
  /** For audit. */
  observe?(listener: LoginListener): void
}

/** Undefined: the document asks for no authentication. Starts to fetch the keys and does not wait for them. */
export function makeAuthenticate(
  config: RunConfig,
  { env, log, clock, outbound, ownIssuer, policies, upstreamTokens }: AuthenticateMakerDeps,
): Middleware | undefined {
  const { oidc_config: oidc } = config
  const challenges = challengesOf(config)
  if (oidc === undefined || challenges === undefined) return undefined
  const seenClaims = seenClaimsOf(config, policies?.current.primaryUpstreamProvider, upstreamTokens)
  const provider = { ...incomingProviderOf(config, oidc, env), ...(ownIssuer && { localKeys: ownIssuer.findKeys }) }
  if (provider.audience === undefined) log.warn('oidc_config: tokens for any audience are accepted; set audience')
  if (oidc.client_id !== undefined && oidc.introspection_url === undefined)
    log.warn('oidc_config: client_id has no effect without introspection_url')
  const authenticator = createAuthenticator({
    providers: [provider],
    outbound,
    clock,
    onProblem: (_name, error) => log.warn('identity provider cannot be asked', { problem: errorMessage(error) }),
    onRejected: (_name, reason) => log.debug('token rejected', { reason }),
  })
  void authenticator.warm()
  const middleware = createAuthenticate(
    { forwardToken: oidc.forward_token },
    { authenticator, challenges, clock, isRevoked: ownIssuer?.isRevoked, seenClaims },
  )
  return { ...middleware, close: async () => await authenticator[Symbol.asyncDispose]() }
}

function seenClaimsOf(config: RunConfig, provider: string | undefined, tokens: UpstreamTokens | undefined): SeenClaims | undefined {
  if (provider === undefined) return undefined
  const field = 'authz_config.cedar.primary_upstream_provider'
  const options = upstreamOptions(config, provider, field)
  if (tokens === undefined) throw runConfigError('run_config_invalid', `${field} needs the vault of embedded_auth_server_config`)
  return createUpstreamClaims(createUpstreamToken(options, tokens))
}

/** The challenges of a runner, for every middleware that rejects a token. Undefined: it does not authenticate clients. */
export function challengesOf(config: RunConfig): Challenges | undefined {
  const resource = protectedResourceOf(config)
  return resource && createChallenges({ realm: config.oidc_config?.issuer ?? 'kubernetes', resource })
}
