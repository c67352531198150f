import { parseDuration } from '@thv/kernel/duration'
import { type AuthServerConfig, callbackPath, type OAuth2UpstreamConfig, type UpstreamConfig } from './auth-server-config.ts'
import type { OidcConfig } from './policy-config.ts'

/** Tokens that the proxy in front accepts. */
type Front = Pick<OidcConfig, 'issuer' | 'audience' | 'resource_url'>
type Report = (path: string, message: string) => void

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Rules that join several members of `embedded_auth_server_config`. Pure. */
export function checkAuthServer(config: AuthServerConfig, oidc: Front | undefined, problem: Report): void {
  const { issuer, insecure_allow_http: allowsHttp, upstreams } = config
  for (const [name, url] of [
    ['issuer', issuer] as const,
    ['authorization_endpoint_base_url', config.authorization_endpoint_base_url] as const,
  ])
    if (url !== undefined && !allowsHttp && !isSafe(url))
      problem(name, 'expects https, or http on localhost, unless insecure_allow_http is true')
  if (config.allow_confidential_client_registration) checkConfidential(config, problem)
  else if (config.force_confidential_redirect_uris.length > 0)
    problem('force_confidential_redirect_uris', 'needs allow_confidential_client_registration: true')
  checkLifespans(config, problem)
  if (upstreams.length === 0) problem('upstreams', 'expects at least one provider')
  for (const [index, upstream] of upstreams.entries()) checkUpstream(upstream, `upstreams[${index}]`, problem)
  const names = upstreams.map(({ name }) => name)
  names.forEach((name, index) => {
    if (names.indexOf(name) !== index) problem(`upstreams[${index}].name`, 'is the name of another provider')
  })
  checkRedirectUris(config, problem)
  if (upstreams[0]?.login_policy === 'onDemand')
    problem('upstreams[0].login_policy', 'expects required: the first provider says who the user is')
  if (config.allowed_audiences.length === 0) problem('allowed_audiences', 'expects at least one resource')
  const unknown = config.baseline_client_scopes.filter((scope) => !config.scopes_supported.includes(scope))
  if (unknown.length > 0) problem('baseline_client_scopes', 'holds a scope that scopes_supported does not list')
  const { type, redis_config: redis } = config.storage
  if ((type === 'redis') !== (redis !== undefined)) problem('storage.redis_config', 'is needed with type redis, and only then')
  const user = redis?.acl_user_config
  for (const name of ['username', 'password'] as const)
    if (user?.[`${name}_env_var`] !== undefined && user[`${name}_file`] !== undefined)
      problem(`storage.redis_config.acl_user_config.${name}_file`, `must not be given together with ${name}_env_var`)
  checkDelegation(config, problem)
  checkFront(config, oidc, problem)
}

/** The path that they answer to distinguishes providers that do not name themselves in their answers (RFC 9207, RFC 9700 §4.4). */
function checkRedirectUris({ issuer, upstreams }: AuthServerConfig, problem: Report): void {
  const pathOf = ({ name, oauth2_config: oauth2 }: UpstreamConfig) =>
    URL.parse(oauth2?.redirect_uri ?? `${issuer}${callbackPath(upstreams, name)}`)?.pathname
  const plain = upstreams.filter(({ oauth2_config: oauth2 }) => oauth2 !== undefined)
  for (const [index, upstream] of upstreams.entries()) {
    const at = plain.indexOf(upstream)
    if (plain.slice(0, Math.max(at, 0)).some((other) => pathOf(other) === pathOf(upstream)))
      problem(`upstreams[${index}].oauth2_config.redirect_uri`, 'has the path of another provider: their answers could be mixed up')
  }
}

function checkDelegation({ delegate_clients: clients, trusted_issuers: issuers }: AuthServerConfig, problem: Report): void {
  for (const [index, client] of clients.entries()) {
    const at = `delegate_clients[${index}]`
    const { client_id: id } = client
    if (clients.findIndex((other) => other.client_id === id) !== index) problem(`${at}.client_id`, 'is the id of another client')
    if (/^c1\.|^https?:/.test(id)) problem(`${at}.client_id`, 'must not look like the id of a client that registered itself')
    if ((client.client_secret_file === undefined) === (client.client_secret_env_var === undefined))
      problem(at, 'expects exactly one of client_secret_file and client_secret_env_var')
  }
  for (const [index, issuer] of issuers.entries()) {
    const at = `trusted_issuers[${index}]`
    const { issuer_url: url, jwks_url: keys, insecure_allow_http: allowsHttp, allowed_delegate_clients: allowed } = issuer
    if (issuers.findIndex((other) => other.issuer_url === url) !== index) problem(`${at}.issuer_url`, 'is that of another issuer')
    if (!allowsHttp && [url, keys].some((each) => each !== undefined && !isSafe(each)))
      problem(at, 'expects https, or http on localhost, unless insecure_allow_http is true')
    if (issuer.allow_private_ips && keys === undefined)
      problem(`${at}.allow_private_ips`, 'needs jwks_url, so that no discovery leads to a private address')
    if (allowed.includes('*') && allowed.length > 1) problem(`${at}.allowed_delegate_clients`, 'expects * alone')
    if (allowed.includes('*') && issuer.allow_may_act)
      problem(`${at}.allowed_delegate_clients`, 'must name the clients when allow_may_act is true')
    if (allowed.length > 0 && issuer.expected_audience === undefined)
      problem(`${at}.expected_audience`, 'is needed with allowed_delegate_clients')
  }
}

/** The proxy must accept exactly the tokens that its own server gives out. */
function checkFront({ issuer, allowed_audiences: audiences }: AuthServerConfig, oidc: Front | undefined, problem: Report): void {
  const audience = oidc?.audience ?? oidc?.resource_url
  if (oidc === undefined) problem('', 'needs oidc_config with the same issuer: without it the proxy asks for no token')
  else if (oidc.issuer !== issuer) problem('issuer', 'expects the issuer of oidc_config')
  else if (audience === undefined || !audiences.includes(audience)) problem('allowed_audiences', 'expects the audience of oidc_config')
}

function checkConfidential(config: AuthServerConfig, problem: Report): void {
  const at = 'allow_confidential_client_registration'
  if (config.insecure_allow_http) problem(at, 'must not be used with insecure_allow_http: secrets would travel in the clear')
  else if (!config.issuer.startsWith('https://') && !config.insecure_allow_confidential_over_loopback_http)
    problem(at, 'needs an https issuer')
}

function checkLifespans({ token_lifespans: lifespans, delegation_token_lifespan: delegation }: AuthServerConfig, problem: Report): void {
  const check = (path: string, text: string, [least, most]: readonly [number, number], words: string) => {
    const ms = parseDuration(text)
    if (ms < least || ms > most) problem(path, `expects ${words}`)
  }
  check('token_lifespans.access_token_lifespan', lifespans.access_token_lifespan, [MINUTE, 24 * HOUR], '1m to 24h')
  check('token_lifespans.refresh_token_lifespan', lifespans.refresh_token_lifespan, [HOUR, 720 * HOUR], '1h to 720h')
  check('token_lifespans.auth_code_lifespan', lifespans.auth_code_lifespan, [MINUTE / 2, 10 * MINUTE], '30s to 10m')
  check('delegation_token_lifespan', delegation, [1_000, 24 * HOUR], '1s to 24h')
}

function checkUpstream({ type, oidc_config: oidc, oauth2_config: oauth2 }: UpstreamConfig, at: string, problem: Report): void {
  if ((type === 'oidc') !== (oidc !== undefined)) problem(`${at}.oidc_config`, 'is needed with type oidc, and only then')
  if ((type === 'oauth2') !== (oauth2 !== undefined)) problem(`${at}.oauth2_config`, 'is needed with type oauth2, and only then')
  if (oauth2 !== undefined && (oauth2.client_id === undefined) === (oauth2.dcr_config === undefined))
    problem(`${at}.oauth2_config`, 'expects exactly one of client_id and dcr_config')
  if (oauth2?.dcr_config !== undefined) checkRegistration(oauth2, `${at}.oauth2_config`, problem)
  const config = oidc ?? oauth2
  const urls = [
    oidc?.issuer_url,
    oauth2?.authorization_endpoint,
    oauth2?.token_endpoint,
    (oidc?.userinfo_override ?? oauth2?.userinfo)?.endpoint_url,
  ]
  if (config !== undefined && !config.insecure_allow_http && urls.some((url) => url !== undefined && !isSafe(url)))
    problem(at, 'expects https, or http on localhost, unless insecure_allow_http is true')
}

function checkRegistration(oauth2: OAuth2UpstreamConfig, at: string, problem: Report): void {
  const { dcr_config: dcr, client_secret_file: file, client_secret_env_var: variable } = oauth2
  if ((dcr?.discovery_url === undefined) === (dcr?.registration_endpoint === undefined))
    problem(`${at}.dcr_config`, 'expects exactly one of discovery_url and registration_endpoint')
  if (dcr?.initial_access_token_file !== undefined && dcr.initial_access_token_env_var !== undefined)
    problem(`${at}.dcr_config`, 'expects at most one of initial_access_token_file and initial_access_token_env_var')
  if (file !== undefined || variable !== undefined) problem(at, 'expects no client secret with dcr_config: the registration brings one')
  const urls = [dcr?.discovery_url, dcr?.registration_endpoint]
  if (!oauth2.insecure_allow_http && urls.some((url) => url !== undefined && !isSafe(url)))
    problem(`${at}.dcr_config`, 'expects https, or http on localhost, unless insecure_allow_http is true')
}

function isSafe(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'https:' || ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname))
}
