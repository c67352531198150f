import type { IncomingProvider, IntrospectionEndpoint } from '@thv/auth/incoming/incoming-provider'
import type { OidcConfig } from '@thv/runconfig/policy-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import { InvalidOptions } from '../pipeline/invalid-options.ts'

type Env = Readonly<Record<string, string | undefined>>

/** The identity provider of a RunConfig. Throws `InvalidOptions` where `oidc_config` cannot work as it is. */
export function incomingProviderOf(config: RunConfig, oidc: OidcConfig, env: Env): IncomingProvider {
  const shared = {
    name: 'oidc',
    // An address that the user gave is what tokens are made for; the Host of a request never is.
    audience: oidc.audience ?? oidc.resource_url,
    requiredSubject: oidc.required_subject,
    introspection: introspectionOf(oidc, env),
    caCertPath: oidc.ca_cert_path ?? config.thv_ca_bundle,
    authTokenFile: oidc.auth_token_file ?? config.jwks_auth_token_file,
    allowHttp: oidc.insecure_allow_http,
  }
  if (oidc.this_cluster) {
    const issuer = apiServerOf(env)
    // The address of the keys in the document may be one that pods do not reach; the API server serves them itself.
    return { ...shared, issuer, discoversIssuer: true, jwksUrl: oidc.jwks_url ?? `${issuer}/openid/v1/jwks`, allowPrivateIP: true }
  }
  return {
    ...shared,
    issuer: oidc.issuer ?? '',
    jwksUrl: oidc.jwks_url,
    allowPrivateIP: oidc.allow_private_ip,
    jwksAllowPrivateIP: oidc.jwks_allow_private_ip,
  }
}

function apiServerOf({ KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443' }: Env): string {
  if (host === '') throw new InvalidOptions('this_cluster needs a proxy in a cluster, and KUBERNETES_SERVICE_HOST is not set')
  return new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`).origin
}

function introspectionOf(oidc: OidcConfig, env: Env): IntrospectionEndpoint | undefined {
  const { introspection_url: url, client_id: clientId } = oidc
  if (url === undefined) return undefined
  const host = new URL(url).hostname
  const vendor = VENDORS.find((name) => host === name || host.endsWith(`.${name}`))
  if (vendor !== undefined)
    throw new InvalidOptions(`introspection_url: ${host} does not offer token introspection (RFC 7662); use a provider that does`)
  return { url, clientId, clientSecret: oidc.client_secret ?? env['TOOLHIVE_OIDC_CLIENT_SECRET'] }
}

/** They have token endpoints of their own making, whose answers do not say for whom a token was made. */
const VENDORS = ['googleapis.com', 'github.com']
