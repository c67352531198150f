import type { CanonicalEmbeddedAuthServer } from '@thv/resources/shared/auth-server/embedded-auth-server'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { OidcConfig } from '@thv/runconfig/policy-config'
import { managedHmacFiles, managedKeyFiles } from '../../auth-server/managed-keys.ts'
import type { Volume, VolumeMount } from '../../deployment/contribution.ts'
import type { Contribution } from '../contribution.ts'
import {
  type AuthServerPlace,
  authServerConfig,
  CLIENT_DIR,
  delegateSecretFile,
  HMAC_DIR,
  hmacFile,
  KEY_DIR,
  keyFile,
  REDIS_DIR,
  REDIS_PASSWORD_FILE,
  REDIS_TLS_DIR,
  REDIS_USERNAME_FILE,
  registrationTokenFile,
  upstreamSecretFile,
} from './auth-server-config.ts'

/** Tokens that the proxy in front accepts. */
type AcceptedTokens = Pick<OidcConfig, 'issuer' | 'audience' | 'scopes'>

/**
 * Why the server does not fit the door that it stands at: the proxy must accept exactly the tokens that its own server gives out. Pure.
 */
export function authServerMismatches(
  server: CanonicalEmbeddedAuthServer,
  { oidc, resourceUrl }: { oidc: AcceptedTokens | 'unresolved' | undefined; resourceUrl: string },
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

/** RunConfig and files of an embedded server that fits. All files are read again when they change, so no pod is replaced. Pure. */
export function authServerContribution(server: CanonicalEmbeddedAuthServer, place: AuthServerPlace): Contribution {
  const directories = [
    directory('authserver-keys', KEY_DIR, keyFiles(server, place)),
    directory('authserver-hmac', HMAC_DIR, hmacFiles(server, place)),
    directory('authserver-clients', CLIENT_DIR, clientFiles(server)),
    directory('authserver-redis', REDIS_DIR, redisFiles(server)),
    directory('authserver-redis-tls', REDIS_TLS_DIR, redisCertificates(server)),
  ].filter((each) => each !== undefined)
  return {
    // As a document: the reader of the runner fills in what is absent.
    runConfig: { embedded_auth_server_config: authServerConfig(server, place) as unknown as AuthServerConfig },
    volumes: directories.map(({ volume }) => volume),
    volumeMounts: directories.map(({ mount }) => mount),
  }
}

/** One key of a Secret as one file, so that nothing else of the Secret is in the pod. */
interface SecretFile {
  readonly secret: string
  readonly key: string
  readonly file: string
}

function keyFiles({ signingKeySecretRefs: refs }: CanonicalEmbeddedAuthServer, { managedSecret: secret }: AuthServerPlace): SecretFile[] {
  if (refs.length === 0) return managedKeyFiles.map((file) => ({ secret, key: file, file }))
  return refs.map(({ name, key }, index) => ({ secret: name, key, file: keyFile(index) }))
}

function hmacFiles({ hmacSecretRefs: refs }: CanonicalEmbeddedAuthServer, { managedSecret: secret }: AuthServerPlace): SecretFile[] {
  if (refs.length === 0) return managedHmacFiles.map((file) => ({ secret, key: file, file }))
  return refs.map(({ name, key }, index) => ({ secret: name, key, file: hmacFile(index) }))
}

function clientFiles({ upstreamProviders, delegateClients }: CanonicalEmbeddedAuthServer): SecretFile[] {
  return [
    ...upstreamProviders.flatMap(({ name, oidcConfig, oauth2Config }) => [
      ...fileOf(oidcConfig?.clientSecretRef ?? oauth2Config?.clientSecretRef, upstreamSecretFile(name)),
      ...fileOf(oauth2Config?.dcrConfig?.initialAccessTokenRef, registrationTokenFile(name)),
    ]),
    ...delegateClients.flatMap(({ clientSecretRef }, index) => fileOf(clientSecretRef, delegateSecretFile(index))),
  ]
}

function redisFiles({ storage }: CanonicalEmbeddedAuthServer): SecretFile[] {
  const { usernameSecretRef: username, passwordSecretRef: password } = storage.redis?.aclUserConfig ?? {}
  return [...fileOf(username, REDIS_USERNAME_FILE), ...fileOf(password, REDIS_PASSWORD_FILE)]
}

function redisCertificates({ storage }: CanonicalEmbeddedAuthServer): SecretFile[] {
  return [
    ...fileOf(storage.redis?.tls?.caCertSecretRef, 'ca.crt'),
    ...fileOf(storage.redis?.sentinelTls?.caCertSecretRef, 'sentinel-ca.crt'),
  ]
}

function fileOf(ref: { readonly name: string; readonly key: string } | undefined, file: string): SecretFile[] {
  return ref ? [{ secret: ref.name, key: ref.key, file }] : []
}

/** One volume for all files of a directory. Not one for each with `subPath`: the kubelet never refreshes those. */
function directory(name: string, mountPath: string, files: readonly SecretFile[]): { volume: Volume; mount: VolumeMount } | undefined {
  if (files.length === 0) return undefined
  const bySecret = Map.groupBy(files, ({ secret }) => secret)
  const sources = [...bySecret].map(([secret, of]) => ({
    secret: { name: secret, items: of.map(({ key, file }) => ({ key, path: file })) },
  }))
  return { volume: { name, projected: { defaultMode: 0o400, sources } }, mount: { name, mountPath, readOnly: true } }
}
