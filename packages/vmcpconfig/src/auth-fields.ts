import type { FieldTable } from '@thv/runconfig/field'
import { anyObject, flag, httpUrl, listOf, mapOf, objectOf, oneOf, text } from '@thv/runconfig/value-readers'
import {
  type AuthzFileConfig,
  BACKEND_AUTH_TYPES,
  type BackendAuthConfig,
  type BearerTokenFileConfig,
  type ClientCredentialsFileConfig,
  type HeaderInjectionFileConfig,
  type IncomingAuthConfig,
  type OidcClientConfig,
  type OutgoingAuthConfig,
  type TokenExchangeFileConfig,
  type UpstreamInjectFileConfig,
} from './vmcp-config.ts'

const OIDC: FieldTable<OidcClientConfig> = {
  issuer: { reader: text(), required: true, doc: 'Issuer that tokens must name.' },
  audience: { reader: text(), required: true, doc: 'Audience that tokens must carry.' },
  clientId: { reader: text(), doc: 'Client of the introspection endpoint.' },
  clientSecretEnv: { reader: text(), doc: 'Variable that holds its secret.' },
  resource: { reader: httpUrl(), doc: 'URL of this server in the protected resource metadata.' },
  jwksUrl: { reader: httpUrl(), doc: 'URL of the keys, when the issuer does not announce it.' },
  introspectionUrl: { reader: httpUrl(), doc: 'URL where opaque tokens are looked up.' },
  scopes: { reader: listOf(text()), default: [], doc: 'Scopes that the metadata and the challenges list.' },
  protectedResourceAllowPrivateIp: { reader: flag, default: false, doc: 'Whether the issuer may have a private address.' },
  jwksAllowPrivateIp: { reader: flag, default: false, doc: 'Whether the keys may be at a private address.' },
  insecureAllowHttp: { reader: flag, default: false, doc: 'Whether the issuer may be called without TLS.' },
  caBundlePath: { reader: text(), doc: 'File with CA certificates of the issuer.' },
}

const AUTHZ: FieldTable<AuthzFileConfig> = {
  type: { reader: oneOf(['cedar', 'none']), required: true, doc: 'Policy engine.' },
  policies: { reader: listOf(text()), default: [], doc: 'Cedar policies. They see the names that clients see.' },
  entitiesJson: { reader: text(), default: '[]', doc: 'Cedar entities, as JSON inside a text.' },
  primaryUpstreamProvider: {
    reader: text(),
    doc: 'Provider of `authServer` whose claims the policies see. Callers without a token of it are led to its login.',
  },
  groupClaimName: { reader: text(), doc: 'Claim that holds the groups of the caller.' },
  roleClaimName: { reader: text(), doc: 'Claim that holds the roles of the caller.' },
  groupEntityType: { reader: text(), doc: 'Cedar type of groups.' },
}

export const INCOMING_AUTH: FieldTable<IncomingAuthConfig> = {
  type: { reader: oneOf(['oidc', 'local', 'anonymous']), required: true, doc: 'How clients authenticate.' },
  oidc: { reader: objectOf(OIDC), doc: 'For `oidc`.' },
  authz: { reader: objectOf(AUTHZ), doc: 'Policies for clients.' },
}

const HEADER_INJECTION: FieldTable<HeaderInjectionFileConfig> = {
  headerName: { reader: text(), required: true, doc: 'Header to set.' },
  headerValue: { reader: text(), doc: 'Its value.' },
  headerValueEnv: { reader: text(), doc: 'Variable that holds its value.' },
}

const BEARER_TOKEN: FieldTable<BearerTokenFileConfig> = {
  tokenEnv: { reader: text(), doc: 'Variable that holds the token.' },
  tokenFile: { reader: text(), doc: 'File that holds the token; read again when it changes.' },
}

const CLIENT_CREDENTIALS: FieldTable<ClientCredentialsFileConfig> = {
  clientId: { reader: text(), required: true, doc: 'Client id at the token endpoint.' },
  clientSecretEnv: { reader: text(), required: true, doc: 'Variable that holds its secret.' },
  tokenUrl: { reader: httpUrl(), doc: 'Token endpoint. Set this or `issuer`.' },
  issuer: { reader: httpUrl(), doc: 'Issuer whose metadata names the token endpoint.' },
  scopes: { reader: listOf(text()), default: [], doc: 'Scopes of the token.' },
  resource: { reader: text(), doc: 'Resource that the token is for (RFC 8707).' },
}

const TOKEN_EXCHANGE: FieldTable<TokenExchangeFileConfig> = {
  tokenUrl: { reader: httpUrl(), required: true, doc: 'Token endpoint (RFC 8693).' },
  clientId: { reader: text(), doc: 'Client of that endpoint.' },
  clientSecret: { reader: text(), doc: 'Its secret.' },
  clientSecretEnv: { reader: text(), doc: 'Variable that holds its secret.' },
  audience: { reader: text(), doc: 'Audience of the new token.' },
  scopes: { reader: listOf(text()), default: [], doc: 'Scopes of the new token.' },
  subjectTokenType: { reader: text(), doc: 'Type of the token that is exchanged.' },
  subjectProviderName: {
    reader: text(),
    doc: 'Provider of `authServer` whose token is exchanged; the first if absent. Without `authServer` it is the token of the caller.',
  },
  headerName: { reader: text(), doc: 'Header that carries the new token instead of Authorization.' },
}

const UPSTREAM_INJECT: FieldTable<UpstreamInjectFileConfig> = {
  providerName: { reader: text(), doc: 'Provider of `authServer` whose token the backend gets; the first if absent.' },
}

const BACKEND_AUTH: FieldTable<BackendAuthConfig> = {
  type: { reader: oneOf(BACKEND_AUTH_TYPES), required: true, doc: 'How the virtual server authenticates to the backend.' },
  headerInjection: { reader: objectOf(HEADER_INJECTION), doc: 'For `header_injection`.' },
  bearerToken: { reader: objectOf(BEARER_TOKEN), doc: 'For `bearer_token`.' },
  clientCredentials: { reader: objectOf(CLIENT_CREDENTIALS), doc: 'For `client_credentials`.' },
  tokenExchange: { reader: objectOf(TOKEN_EXCHANGE), doc: 'For `token_exchange`.' },
  upstreamInject: { reader: objectOf(UPSTREAM_INJECT), doc: 'For `upstream_inject`.' },
  awsSts: { reader: anyObject, doc: 'For `aws_sts`.' },
  obo: { reader: anyObject, doc: 'For `obo`.' },
  xaa: { reader: anyObject, doc: 'For `xaa`.' },
}

export const OUTGOING_AUTH: FieldTable<OutgoingAuthConfig> = {
  source: { reader: oneOf(['inline', 'discovered']), required: true, doc: 'Where backends and their authentication come from.' },
  default: { reader: objectOf(BACKEND_AUTH), doc: 'For backends without an entry in `backends`.' },
  backends: { reader: mapOf(objectOf(BACKEND_AUTH)), default: {}, doc: 'For single backends, by name.' },
}
