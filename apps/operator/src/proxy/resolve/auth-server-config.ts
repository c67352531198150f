import { compact } from '@thv/resources/schema/normalize'
import type { CanonicalAuthServerRedis, CanonicalSentinelConfig } from '@thv/resources/shared/auth-server/auth-server-storage'
import type { UpstreamProvider } from '@thv/resources/shared/auth-server/auth-server-upstream'
import type { CanonicalEmbeddedAuthServer } from '@thv/resources/shared/auth-server/embedded-auth-server'
import { callbackPath } from '@thv/runconfig/auth-server-config'
import { managedHmacFiles, managedKeyFiles } from '../../auth-server/managed-keys.ts'

export const KEY_DIR = '/etc/toolhive/authserver/keys'
export const HMAC_DIR = '/etc/toolhive/authserver/hmac'
/** Of secrets that the server has as a client, and that clients have here. */
export const CLIENT_DIR = '/etc/toolhive/authserver/clients'
export const REDIS_DIR = '/etc/toolhive/authserver/redis'
export const REDIS_TLS_DIR = '/etc/toolhive/authserver/redis-tls'
export const REDIS_USERNAME_FILE = 'username'
export const REDIS_PASSWORD_FILE = 'password'

export const keyFile = (index: number) => `key-${index}.pem`
export const hmacFile = (index: number) => `hmac-${index}`
export const upstreamSecretFile = (upstream: string) => `upstream-${upstream}`
export const registrationTokenFile = (upstream: string) => `registration-${upstream}`
export const delegateSecretFile = (index: number) => `delegate-${index}`

type Json = Record<string, unknown>

export interface AuthServerPlace {
  /** Of the OIDC configuration that the server belongs to. */
  readonly scopes: readonly string[]
  readonly name: string
  readonly namespace: string
  readonly resourceUrl: string
  readonly clusterDomain?: string | undefined
  /** With the keys that the operator makes where the spec names none. */
  readonly managedSecret: string
}

/** `embedded_auth_server_config` of a RunConfig: secrets only as names of files. Pure. */
export function authServerConfig(server: CanonicalEmbeddedAuthServer, place: AuthServerPlace): Json {
  const { tokenLifespans: lifespans, cimd } = server
  return compact({
    schema_version: 'v0.1.0',
    issuer: server.issuer,
    authorization_endpoint_base_url: server.authorizationEndpointBaseUrl,
    signing_key_config: signingKeys(server.signingKeySecretRefs.length || managedKeyFiles.length),
    hmac_secret_files: Array.from(
      { length: server.hmacSecretRefs.length || managedHmacFiles.length },
      (_, index) => `${HMAC_DIR}/${hmacFile(index)}`,
    ),
    token_lifespans:
      lifespans &&
      compact({
        access_token_lifespan: lifespans.accessTokenLifespan,
        refresh_token_lifespan: lifespans.refreshTokenLifespan,
        auth_code_lifespan: lifespans.authCodeLifespan,
      }),
    upstreams: server.upstreamProviders.map((provider) => upstream(provider, server, place)),
    scopes_supported: [...place.scopes],
    baseline_client_scopes: listOrNone(server.baselineClientScopes),
    allowed_audiences: [place.resourceUrl],
    storage: storage(server, place),
    disable_upstream_token_injection: server.disableUpstreamTokenInjection,
    insecure_allow_http: server.insecureAllowHTTP,
    cimd: compact({ enabled: cimd.enabled, cache_max_size: cimd.cacheMaxSize, cache_fallback_ttl: cimd.cacheFallbackTtl }),
    allow_confidential_client_registration: server.allowConfidentialClientRegistration,
    insecure_allow_confidential_over_loopback_http: server.insecureAllowConfidentialOverLoopbackHTTP,
    force_confidential_redirect_uris: listOrNone(server.forceConfidentialRedirectUris),
    delegate_clients: listOrNone(
      server.delegateClients.map(({ clientId, scopes, audiences }, index) => ({
        client_id: clientId,
        client_secret_file: `${CLIENT_DIR}/${delegateSecretFile(index)}`,
        scopes,
        audiences,
      })),
    ),
    trusted_issuers: listOrNone(server.trustedIssuers.map(trustedIssuer)),
  })
}

/** The first signs, the others verify. */
function signingKeys(count: number): Json {
  const [signing, ...fallback] = Array.from({ length: count }, (_, index) => keyFile(index))
  return compact({ key_dir: KEY_DIR, signing_key_file: signing, fallback_key_files: listOrNone(fallback) })
}

function upstream(provider: UpstreamProvider, { upstreamProviders }: CanonicalEmbeddedAuthServer, place: AuthServerPlace): Json {
  const { name, type, loginPolicy, oidcConfig: oidc, oauth2Config: oauth2 } = provider
  const redirectUri = `${place.resourceUrl.replace(/\/+$/, '')}${callbackPath(upstreamProviders, name)}`
  const secret = (ref: unknown) => (ref === undefined ? undefined : `${CLIENT_DIR}/${upstreamSecretFile(name)}`)
  return compact({
    name,
    type,
    login_policy: loginPolicy,
    oidc_config:
      oidc &&
      compact({
        issuer_url: oidc.issuerUrl,
        client_id: oidc.clientId,
        client_secret_file: secret(oidc.clientSecretRef),
        redirect_uri: oidc.redirectUri ?? redirectUri,
        scopes: oidc.scopes,
        subject_claim: oidc.subjectClaim,
        additional_authorization_params: oidc.additionalAuthorizationParams,
        userinfo_override: oidc.userInfoOverride && userInfo(oidc.userInfoOverride),
      }),
    oauth2_config:
      oauth2 &&
      compact({
        authorization_endpoint: oauth2.authorizationEndpoint,
        token_endpoint: oauth2.tokenEndpoint,
        client_id: oauth2.clientId,
        client_secret_file: secret(oauth2.clientSecretRef),
        redirect_uri: oauth2.redirectUri ?? redirectUri,
        scopes: oauth2.scopes,
        additional_authorization_params: oauth2.additionalAuthorizationParams,
        userinfo: oauth2.userInfo && userInfo(oauth2.userInfo),
        token_response_mapping: oauth2.tokenResponseMapping && tokenResponse(oauth2.tokenResponseMapping),
        identity_from_token: oauth2.identityFromToken && identity(oauth2.identityFromToken),
        dcr_config: oauth2.dcrConfig && registration(oauth2.dcrConfig, name),
        allow_private_ips: oauth2.allowPrivateIPs,
        insecure_allow_http: oauth2.insecureAllowHTTP,
      }),
  })
}

type OAuth2 = NonNullable<UpstreamProvider['oauth2Config']>

function userInfo(info: NonNullable<OAuth2['userInfo']>): Json {
  const { fieldMapping: fields } = info
  return compact({
    endpoint_url: info.endpointUrl,
    http_method: info.httpMethod,
    additional_headers: info.additionalHeaders,
    field_mapping:
      fields && compact({ subject_fields: fields.subjectFields, name_fields: fields.nameFields, email_fields: fields.emailFields }),
  })
}

function tokenResponse(mapping: NonNullable<OAuth2['tokenResponseMapping']>): Json {
  return compact({
    access_token_path: mapping.accessTokenPath,
    refresh_token_path: mapping.refreshTokenPath || undefined,
    expires_in_path: mapping.expiresInPath || undefined,
    scope_path: mapping.scopePath || undefined,
  })
}

function identity(paths: NonNullable<OAuth2['identityFromToken']>): Json {
  return compact({ subject_path: paths.subjectPath, name_path: paths.namePath, email_path: paths.emailPath })
}

function registration(dcr: NonNullable<OAuth2['dcrConfig']>, name: string): Json {
  return compact({
    discovery_url: dcr.discoveryUrl,
    registration_endpoint: dcr.registrationEndpoint,
    initial_access_token_file: dcr.initialAccessTokenRef && `${CLIENT_DIR}/${registrationTokenFile(name)}`,
    software_id: dcr.softwareId,
    software_statement: dcr.softwareStatement,
  })
}

function storage({ storage: { type, redis } }: CanonicalEmbeddedAuthServer, place: AuthServerPlace): Json {
  return compact({ type, redis_config: redis && redisConfig(redis, place) })
}

function redisConfig(redis: CanonicalAuthServerRedis, { namespace, name, clusterDomain = 'cluster.local' }: AuthServerPlace): Json {
  const { usernameSecretRef } = redis.aclUserConfig
  return compact({
    addr: redis.addr,
    cluster_mode: redis.clusterMode || undefined,
    sentinel_config: redis.sentinelConfig && sentinel(redis.sentinelConfig, { namespace, clusterDomain }),
    auth_type: 'aclUser',
    acl_user_config: compact({
      username_file: usernameSecretRef && `${REDIS_DIR}/${REDIS_USERNAME_FILE}`,
      password_file: `${REDIS_DIR}/${REDIS_PASSWORD_FILE}`,
    }),
    // The braces make Redis Cluster keep all keys of one server in one slot.
    key_prefix: `thv:auth:{${namespace}:${name}}:`,
    dial_timeout: redis.dialTimeout,
    read_timeout: redis.readTimeout,
    write_timeout: redis.writeTimeout,
    tls: redis.tls && tls(redis.tls, 'ca.crt'),
    sentinel_tls: redis.sentinelTls && tls(redis.sentinelTls, 'sentinel-ca.crt'),
  })
}

function sentinel(
  { masterName, sentinelAddrs, sentinelService: service, db }: CanonicalSentinelConfig,
  { namespace, clusterDomain }: { namespace: string; clusterDomain: string },
): Json {
  const address = service && `${service.name}.${service.namespace ?? namespace}.svc.${clusterDomain}:${service.port}`
  return { master_name: masterName, sentinel_addrs: address === undefined ? sentinelAddrs : [address], db }
}

function tls({ caCertSecretRef, insecureSkipVerify }: NonNullable<CanonicalAuthServerRedis['tls']>, file: string): Json {
  return compact({ ca_cert_file: caCertSecretRef && `${REDIS_TLS_DIR}/${file}`, insecure_skip_verify: insecureSkipVerify ?? false })
}

function trustedIssuer(issuer: CanonicalEmbeddedAuthServer['trustedIssuers'][number]): Json {
  const { jwtBearerGrant: grant } = issuer
  return compact({
    issuer_url: issuer.issuerUrl,
    jwks_url: issuer.jwksUrl,
    expected_audience: issuer.expectedAudience,
    allowed_delegate_clients: issuer.allowedDelegateClients,
    allowed_actors: issuer.allowedActors,
    actor_claim: issuer.actorClaim,
    actor_matcher: issuer.actorMatcher,
    allow_may_act: issuer.allowMayAct,
    allow_private_ips: issuer.allowPrivateIPs,
    insecure_allow_http: issuer.insecureAllowHTTP,
    jwt_bearer_grant:
      grant &&
      compact({
        max_assertion_age: grant.maxAssertionAge,
        accepted_audiences: grant.acceptedAudiences,
        subject_bindings: grant.subjectBindings.map(({ subject, allowedResources }) => ({ subject, allowed_resources: allowedResources })),
      }),
  })
}

function listOrNone<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list
}
