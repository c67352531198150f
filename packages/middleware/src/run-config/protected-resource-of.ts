import type { RunConfig } from '@thv/runconfig/run-config'
import type { ProtectedResource } from '../authenticate/protected-resource.ts'

/** Content of the metadata and the challenges of a runner. Undefined: it does not authenticate clients. */
export function protectedResourceOf(config: RunConfig): ProtectedResource | undefined {
  const { oidc_config: oidc, trust_proxy_headers: trustProxyHeaders, endpoint_prefix: endpointPrefix } = config
  if (oidc === undefined) return undefined
  return {
    url: oidc.resource_url,
    authorizationServers: oidc.issuer === undefined ? [] : [oidc.issuer],
    scopes: oidc.scopes,
    trustProxyHeaders,
    endpointPrefix,
  }
}
