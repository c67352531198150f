import type { CanonicalMCPExternalAuthConfigSpec } from '@thv/resources/kinds/mcp-external-auth-config/normalise'
import type { CanonicalEmbeddedAuthServer } from '@thv/resources/shared/auth-server/embedded-auth-server'
import type { Lookup } from './lookup.ts'
import { missingSecretKey } from './secret-key.ts'

export interface SecretRef {
  readonly name: string
  readonly key: string
}

export interface SecretUse extends SecretRef {
  /** Path below `spec`. */
  readonly field: string
}

/** Every key of a Secret that the configuration needs. Pure. */
export function secretUses(spec: CanonicalMCPExternalAuthConfigSpec): SecretUse[] {
  const { tokenExchange, headerInjection, bearerToken, clientCredentials, embeddedAuthServer, oidc } = spec
  return [
    ...use('tokenExchange.clientSecretRef', tokenExchange?.clientSecretRef),
    ...use('headerInjection.valueSecretRef', headerInjection?.valueSecretRef),
    ...use('bearerToken.tokenSecretRef', bearerToken?.tokenSecretRef),
    ...use('clientCredentials.clientSecretRef', clientCredentials?.clientSecretRef),
    ...use('oidc.clientSecretRef', oidc?.clientSecretRef),
    ...(embeddedAuthServer ? authServerSecretUses(embeddedAuthServer, 'embeddedAuthServer') : []),
  ]
}

/** `at`: the path of the server below `spec`. */
export function authServerSecretUses(server: CanonicalEmbeddedAuthServer, at: string): SecretUse[] {
  const redis = server.storage.redis
  return [
    ...server.signingKeySecretRefs.flatMap((ref, index) => use(`${at}.signingKeySecretRefs[${index}]`, ref)),
    ...server.hmacSecretRefs.flatMap((ref, index) => use(`${at}.hmacSecretRefs[${index}]`, ref)),
    ...server.upstreamProviders.flatMap(({ name, oidcConfig, oauth2Config }) => [
      ...use(`${at}.upstreamProviders[${name}].oidcConfig.clientSecretRef`, oidcConfig?.clientSecretRef),
      ...use(`${at}.upstreamProviders[${name}].oauth2Config.clientSecretRef`, oauth2Config?.clientSecretRef),
      ...use(
        `${at}.upstreamProviders[${name}].oauth2Config.dcrConfig.initialAccessTokenRef`,
        oauth2Config?.dcrConfig?.initialAccessTokenRef,
      ),
    ]),
    ...server.delegateClients.flatMap(({ clientSecretRef }, index) =>
      use(`${at}.delegateClients[${index}].clientSecretRef`, clientSecretRef),
    ),
    ...use(`${at}.storage.redis.aclUserConfig.usernameSecretRef`, redis?.aclUserConfig.usernameSecretRef),
    ...use(`${at}.storage.redis.aclUserConfig.passwordSecretRef`, redis?.aclUserConfig.passwordSecretRef),
    ...use(`${at}.storage.redis.tls.caCertSecretRef`, redis?.tls?.caCertSecretRef),
    ...use(`${at}.storage.redis.sentinelTls.caCertSecretRef`, redis?.sentinelTls?.caCertSecretRef),
  ]
}

function use(field: string, ref: SecretRef | undefined): SecretUse[] {
  return ref ? [{ field, name: ref.name, key: ref.key }] : []
}

/** The missing parts, and what to do. A pod would wait without end, so nothing is started. */
export function missingSecrets(uses: readonly SecretUse[], lookup: Pick<Lookup, 'secret'>): string[] {
  return uses.flatMap((use) => missingSecretKey(lookup, use, `spec.${use.field}`) ?? [])
}
