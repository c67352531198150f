import type { CanonicalEmbeddedAuthServer } from '@thv/resources/shared/auth-server/embedded-auth-server'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { OidcConfig } from '@thv/runconfig/policy-config'
import { type EnvVar, secretVariable, type Volume, type VolumeMount } from '../../deployment/contribution.ts'
import type { Contribution } from '../contribution.ts'
import {
  type AuthServerPlace,
  authServerConfig,
  DCR_TOKEN,
  delegateSecretVariable,
  HMAC_DIR,
  hmacFile,
  KEY_DIR,
  keyFile,
  REDIS_PASSWORD,
  REDIS_TLS_DIR,
  REDIS_USERNAME,
  UPSTREAM_SECRET,
  upstreamVariable,
} from './auth-server-config.ts'

/**
 * Why the server does not fit the door that it stands at: the proxy must accept exactly the tokens that its own server gives out. Pure.
 */
export function authServerMismatches(
  server: CanonicalEmbeddedAuthServer,
  { oidc, resourceUrl }: { oidc: OidcConfig | 'unresolved' | undefined; resourceUrl: string },
): string[] {
  if (oidc === 'unresolved') return ['it needs spec.oidcConfig, which has a problem of its own: correct that first']
  if (oidc === undefined) {
    return [`set spec.oidcConfig with issuer ${server.issuer} and its audience and resourceUrl both to the URL that clients use`]
  }
  const scopes = new Set(oidc.scopes)
  const unknown = server.baselineClientScopes.filter((scope) => !scopes.has(scope))
  return [
    ...(oidc.issuer === server.issuer
      ? []
      : [
          `the issuer of spec.oidcConfig must be that of the embedded server, ${server.issuer}: the proxy accepts the tokens of its own server`,
        ]),
    ...(oidc.audience !== undefined && oidc.audience === resourceUrl
      ? []
      : [`the audience of spec.oidcConfig must be its resourceUrl, ${resourceUrl}: that is what tokens of the embedded server carry`]),
    ...(unknown.length === 0
      ? []
      : [`baselineClientScopes holds ${unknown.join(', ')}, which spec.oidcConfig does not list in scopes: add them there`]),
  ]
}

/** RunConfig, variables and files of an embedded server that fits. Pure. */
export function authServerContribution(server: CanonicalEmbeddedAuthServer, place: AuthServerPlace): Contribution {
  const files = [...keyFiles(server), ...redisFiles(server)]
  return {
    // As a document: the reader of the runner fills in what is absent.
    runConfig: { embedded_auth_server_config: authServerConfig(server, place) as unknown as AuthServerConfig },
    env: variables(server),
    volumes: files.map(({ volume }) => volume),
    volumeMounts: files.map(({ mount }) => mount),
  }
}

function variables({ upstreamProviders, delegateClients, storage }: CanonicalEmbeddedAuthServer): EnvVar[] {
  const variable = (name: string, ref: { name: string; key: string } | undefined) => (ref ? [secretVariable(name, ref)] : [])
  return [
    ...upstreamProviders.flatMap(({ name, oidcConfig, oauth2Config }) => [
      ...variable(upstreamVariable(UPSTREAM_SECRET, name), oidcConfig?.clientSecretRef ?? oauth2Config?.clientSecretRef),
      ...variable(upstreamVariable(DCR_TOKEN, name), oauth2Config?.dcrConfig?.initialAccessTokenRef),
    ]),
    ...delegateClients.flatMap(({ clientSecretRef }, index) => variable(delegateSecretVariable(index), clientSecretRef)),
    ...variable(REDIS_USERNAME, storage.redis?.aclUserConfig.usernameSecretRef),
    ...variable(REDIS_PASSWORD, storage.redis?.aclUserConfig.passwordSecretRef),
  ]
}

interface SecretFile {
  readonly volume: Volume
  readonly mount: VolumeMount
}

function keyFiles({ signingKeySecretRefs, hmacSecretRefs }: CanonicalEmbeddedAuthServer): SecretFile[] {
  return [
    ...signingKeySecretRefs.map((ref, index) => secretFile(`authserver-signing-key-${index}`, ref, { dir: KEY_DIR, file: keyFile(index) })),
    ...hmacSecretRefs.map((ref, index) => secretFile(`authserver-hmac-secret-${index}`, ref, { dir: HMAC_DIR, file: hmacFile(index) })),
  ]
}

function redisFiles({ storage }: CanonicalEmbeddedAuthServer): SecretFile[] {
  const file = (volume: string, ref: { name: string; key: string } | undefined, name: string) =>
    ref ? [secretFile(volume, ref, { dir: REDIS_TLS_DIR, file: name })] : []
  return [
    ...file('redis-tls-ca-master', storage.redis?.tls?.caCertSecretRef, 'ca.crt'),
    ...file('redis-tls-ca-sentinel', storage.redis?.sentinelTls?.caCertSecretRef, 'sentinel-ca.crt'),
  ]
}

/** One key of a Secret as one file, so that nothing else of the Secret is in the pod. */
function secretFile(name: string, ref: { name: string; key: string }, { dir, file }: { dir: string; file: string }): SecretFile {
  return {
    volume: { name, secret: { secretName: ref.name, defaultMode: 0o400, items: [{ key: ref.key, path: file }] } },
    mount: { name, mountPath: `${dir}/${file}`, subPath: file, readOnly: true },
  }
}
