import { parseDuration, tryParseDuration } from '@thv/kernel/duration'
import type { CanonicalAuthServerStorage } from '../../shared/auth-server/auth-server-storage.ts'
import type { UpstreamProvider } from '../../shared/auth-server/auth-server-upstream.ts'
import type { CanonicalEmbeddedAuthServer } from '../../shared/auth-server/embedded-auth-server.ts'
import { trustedIssuerProblems } from './trusted-issuer-validation.ts'
import { addressProblems, isLoopback, urlProblems } from './url-problems.ts'

/** Rules of the embedded authorization server. Pure. */
export function authServerProblems(at: string, server: CanonicalEmbeddedAuthServer): string[] {
  const issuerRules = { allowHttp: server.insecureAllowHTTP, instead: 'insecureAllowHTTP', isIssuer: true }
  return [
    ...urlProblems(`${at}.issuer`, server.issuer, issuerRules),
    ...urlProblems(`${at}.authorizationEndpointBaseUrl`, server.authorizationEndpointBaseUrl, issuerRules),
    ...upstreamsProblems(at, server),
    ...clientProblems(at, server),
    ...lifespanProblems(`${at}.tokenLifespans`, server.tokenLifespans ?? {}),
    ...durationProblem(`${at}.cimd.cacheFallbackTtl`, server.cimd.cacheFallbackTtl),
    ...keyProblems(`${at}.signingKeySecretRefs`, server.signingKeySecretRefs),
    ...keyProblems(`${at}.hmacSecretRefs`, server.hmacSecretRefs),
    ...storageProblems(`${at}.storage`, server.storage),
    ...repeated(
      `${at}.trustedIssuers[].issuerUrl`,
      server.trustedIssuers.map(({ issuerUrl }) => issuerUrl),
    ),
    ...server.trustedIssuers.flatMap((issuer, index) => trustedIssuerProblems(`${at}.trustedIssuers[${index}]`, issuer)),
  ]
}

function upstreamsProblems(at: string, { upstreamProviders, primaryUpstreamProvider }: CanonicalEmbeddedAuthServer): string[] {
  const names = upstreamProviders.map(({ name }) => name)
  return [
    ...(names.length === 0 ? [`${at}.upstreamProviders must name at least one provider where users log in`] : []),
    ...repeated(`${at}.upstreamProviders[].name`, names),
    ...(primaryUpstreamProvider !== undefined && !names.includes(primaryUpstreamProvider)
      ? [`${at}.primaryUpstreamProvider must be the name of one of upstreamProviders`]
      : []),
    ...(upstreamProviders[0]?.loginPolicy === 'onDemand'
      ? [`${at}.upstreamProviders[${names[0]}].loginPolicy must be required, because the first provider says who the user is`]
      : []),
    ...sharedRedirects(at, upstreamProviders),
    ...upstreamProviders.flatMap((provider) => upstreamProblems(`${at}.upstreamProviders[${provider.name}]`, provider)),
  ]
}

/** Providers with OAuth 2 only do not name themselves in their answers, so the path that they come to distinguishes them (RFC 9700 §4.4). */
function sharedRedirects(at: string, providers: readonly UpstreamProvider[]): string[] {
  const pathOf = (provider: UpstreamProvider) => URL.parse(provider.oauth2Config?.redirectUri ?? '')?.pathname
  return providers
    .filter((provider, index) => {
      const path = pathOf(provider)
      return path !== undefined && providers.findIndex((other) => pathOf(other) === path) < index
    })
    .map(
      ({ name }) =>
        `${at}.upstreamProviders[${name}].oauth2Config.redirectUri has the path of another provider, so that their answers could be mixed up: end it with /oauth/callback/${name}`,
    )
}

function upstreamProblems(at: string, { type, oidcConfig, oauth2Config }: UpstreamProvider): string[] {
  const fits = type === 'oidc' ? oidcConfig && !oauth2Config : oauth2Config && !oidcConfig
  return [
    ...(fits ? [] : [`${at} must set ${type === 'oidc' ? 'oidcConfig' : 'oauth2Config'} and nothing else, because its type is ${type}`]),
    ...(oidcConfig ? oidcProblems(`${at}.oidcConfig`, oidcConfig) : []),
    ...(oauth2Config ? oauth2Problems(`${at}.oauth2Config`, oauth2Config) : []),
  ]
}

function oidcProblems(at: string, config: NonNullable<UpstreamProvider['oidcConfig']>): string[] {
  return [
    ...urlProblems(`${at}.issuerUrl`, config.issuerUrl),
    ...urlProblems(`${at}.redirectUri`, config.redirectUri, { allowHttp: true }),
    ...urlProblems(`${at}.userInfoOverride.endpointUrl`, config.userInfoOverride?.endpointUrl),
    ...parameterProblems(`${at}.additionalAuthorizationParams`, config.additionalAuthorizationParams),
  ]
}

function oauth2Problems(at: string, config: NonNullable<UpstreamProvider['oauth2Config']>): string[] {
  const rules = { allowHttp: config.insecureAllowHTTP ?? false, instead: 'insecureAllowHTTP' }
  const { clientId, clientSecretRef, dcrConfig } = config
  const hasOneEndpoint = (dcrConfig?.discoveryUrl === undefined) !== (dcrConfig?.registrationEndpoint === undefined)
  return [
    ...urlProblems(`${at}.authorizationEndpoint`, config.authorizationEndpoint, rules),
    ...urlProblems(`${at}.tokenEndpoint`, config.tokenEndpoint, rules),
    ...urlProblems(`${at}.userInfo.endpointUrl`, config.userInfo?.endpointUrl, rules),
    ...urlProblems(`${at}.redirectUri`, config.redirectUri, { allowHttp: true }),
    ...(Boolean(clientId) === Boolean(dcrConfig) ? [`${at} must set exactly one of clientId and dcrConfig`] : []),
    ...(dcrConfig && clientSecretRef ? [`${at}.clientSecretRef must not be set with dcrConfig, whose registration yields the secret`] : []),
    ...(dcrConfig && !hasOneEndpoint ? [`${at}.dcrConfig must set exactly one of discoveryUrl and registrationEndpoint`] : []),
    ...urlProblems(`${at}.dcrConfig.discoveryUrl`, dcrConfig?.discoveryUrl),
    ...urlProblems(`${at}.dcrConfig.registrationEndpoint`, dcrConfig?.registrationEndpoint),
    ...parameterProblems(`${at}.additionalAuthorizationParams`, config.additionalAuthorizationParams),
  ]
}

const OWN_PARAMETERS = new Set([
  'response_type',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'nonce',
])

function parameterProblems(at: string, parameters: Readonly<Record<string, string>> = {}): string[] {
  const own = Object.keys(parameters).filter((name) => OWN_PARAMETERS.has(name))
  return own.length === 0 ? [] : [`${at} must not set ${own.toSorted().join(', ')}: the server does so itself`]
}

function clientProblems(at: string, server: CanonicalEmbeddedAuthServer): string[] {
  const { allowConfidentialClientRegistration: confidential, forceConfidentialRedirectUris: forced, delegateClients } = server
  const isHttps = server.issuer.startsWith('https://')
  return [
    ...(confidential && server.insecureAllowHTTP
      ? [`${at}.allowConfidentialClientRegistration must not be used with insecureAllowHTTP: client secrets would travel in the clear`]
      : []),
    ...(confidential && !isHttps && !server.insecureAllowConfidentialOverLoopbackHTTP
      ? [`${at}.allowConfidentialClientRegistration needs an https:// issuer`]
      : []),
    ...(forced.length > 0 && !confidential ? [`${at}.forceConfidentialRedirectUris needs allowConfidentialClientRegistration: true`] : []),
    ...forced.flatMap((uri, index) => confidentialUriProblems(`${at}.forceConfidentialRedirectUris[${index}]`, uri)),
    ...(delegateClients.length > 0 && !isHttps
      ? [`${at}.delegateClients need an issuer that begins with https://, because their secrets are sent to it`]
      : []),
    ...repeated(
      `${at}.delegateClients[].clientId`,
      delegateClients.map(({ clientId }) => clientId),
    ),
  ]
}

function confidentialUriProblems(field: string, uri: string): string[] {
  const leadsHome = URL.canParse(uri) && isLoopback(new URL(uri).hostname)
  return [...urlProblems(field, uri), ...(leadsHome ? [`${field} must not lead to localhost, where no secret can be kept`] : [])]
}

const LIFESPANS = {
  accessTokenLifespan: ['1m', '24h'],
  refreshTokenLifespan: ['1h', '720h'],
  authCodeLifespan: ['30s', '10m'],
} as const

function lifespanProblems(at: string, lifespans: NonNullable<CanonicalEmbeddedAuthServer['tokenLifespans']>): string[] {
  return Object.entries(LIFESPANS).flatMap(([name, [least, most]]) => {
    const text = lifespans[name as keyof typeof LIFESPANS]
    if (text === undefined) return []
    const ms = tryParseDuration(text)
    const fits = ms !== undefined && ms >= parseDuration(least) && ms <= parseDuration(most)
    return fits ? [] : [`${at}.${name} must be a duration between ${least} and ${most}`]
  })
}

function durationProblem(field: string, text: string | undefined): string[] {
  const ms = text === undefined ? undefined : tryParseDuration(text)
  return text === undefined || (ms !== undefined && ms > 0) ? [] : [`${field} must be a duration above 0, such as 5s`]
}

function keyProblems(field: string, refs: readonly { name: string; key: string }[]): string[] {
  return repeated(
    field,
    refs.map(({ name, key }) => `${name}/${key}`),
  )
}

function storageProblems(at: string, { type, redis }: CanonicalAuthServerStorage): string[] {
  if ((type === 'redis') !== (redis !== undefined)) return [`${at}.redis must be set if and only if ${at}.type is redis`]
  if (!redis) return []
  const { addr, clusterMode, sentinelConfig: sentinel, sentinelTls } = redis
  const field = `${at}.redis`
  const hasAddresses = (sentinel?.sentinelAddrs.length ?? 0) > 0
  const hasService = sentinel?.sentinelService !== undefined
  return [
    ...((addr === undefined) === (sentinel === undefined) ? [`${field} must set exactly one of addr and sentinelConfig`] : []),
    ...addressProblems(`${field}.addr`, addr),
    ...(clusterMode && addr === undefined ? [`${field}.clusterMode needs addr`] : []),
    ...(sentinel && hasAddresses === hasService
      ? [`${field}.sentinelConfig must set exactly one of sentinelAddrs and sentinelService`]
      : []),
    ...(sentinel?.sentinelAddrs ?? []).flatMap((address, index) =>
      addressProblems(`${field}.sentinelConfig.sentinelAddrs[${index}]`, address),
    ),
    ...repeated(`${field}.sentinelConfig.sentinelAddrs`, sentinel?.sentinelAddrs ?? []),
    ...(sentinelTls && !sentinel ? [`${field}.sentinelTls needs sentinelConfig`] : []),
    ...durationProblem(`${field}.dialTimeout`, redis.dialTimeout),
    ...durationProblem(`${field}.readTimeout`, redis.readTimeout),
    ...durationProblem(`${field}.writeTimeout`, redis.writeTimeout),
  ]
}

export function repeated(field: string, values: readonly string[]): string[] {
  const twice = new Set(values.filter((value, index) => values.indexOf(value) !== index))
  return twice.size === 0 ? [] : [`${field} holds ${[...twice].toSorted().join(', ')} more than once: keep one`]
}
