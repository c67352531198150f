import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import { JWT_BEARER, TOKEN_EXCHANGE } from '../exchange/grant-types.ts'
import { loginBase, PATHS } from '../paths/server-paths.ts'

/** Authorization server metadata (RFC 8414 §2), which OpenID discovery answers too. */
export function serverMetadata(config: AuthServerConfig, algorithms: readonly string[]): Readonly<Record<string, unknown>> {
  const { issuer } = config
  const hasSecrets = config.allow_confidential_client_registration || config.delegate_clients.length > 0
  const methods = hasSecrets ? ['none', 'client_secret_basic', 'client_secret_post'] : ['none']
  return {
    issuer,
    authorization_endpoint: `${loginBase(config)}${PATHS.authorize}`,
    token_endpoint: `${issuer}${PATHS.token}`,
    jwks_uri: `${issuer}${PATHS.jwks}`,
    registration_endpoint: `${issuer}${PATHS.register}`,
    revocation_endpoint: `${issuer}${PATHS.revoke}`,
    introspection_endpoint: `${issuer}${PATHS.introspect}`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    scopes_supported: config.scopes_supported,
    grant_types_supported: [
      ...['authorization_code', 'refresh_token'],
      ...(config.delegate_clients.length > 0 ? [TOKEN_EXCHANGE] : []),
      ...(config.trusted_issuers.some(({ jwt_bearer_grant: grant }) => grant !== undefined) ? [JWT_BEARER] : []),
    ],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_methods_supported: methods,
    introspection_endpoint_auth_methods_supported: methods.filter((method) => method !== 'none'),
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: config.cimd.enabled,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: algorithms,
  }
}
