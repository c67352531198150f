import type {
  IdentityPaths,
  OAuth2UpstreamConfig,
  OidcUpstreamConfig,
  TokenResponseMapping,
  UpstreamClientConfig,
  UpstreamConfig,
  UpstreamRegistrationConfig,
  UserInfoConfig,
  UserInfoFields,
} from './auth-server-config.ts'
import type { FieldTable } from './field.ts'
import { flag, httpUrl, listOf, mapOf, objectOf, oneOf, text } from './value-readers.ts'

/** A login that is protected less than its author thinks is worse than none: an unknown member is an error. */
export const STRICT = { rejectUnknown: true } as const

const providerName = text({
  like: { test: (value) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(value), words: 'a name of lower-case letters, digits and dashes' },
})
const headerName = text({
  like: { test: (value) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(value), words: 'a name that an HTTP header can have' },
})
const headerValue = text({ like: { test: (value) => !/[\r\n]/.test(value), words: 'a text of one line' } })

/** Set by the login itself: a parameter of the configuration must not replace them. */
const OWN_PARAMETERS = new Set([
  ...['response_type', 'client_id', 'redirect_uri', 'scope', 'state', 'nonce'],
  ...['code_challenge', 'code_challenge_method', 'response_mode', 'request', 'request_uri'],
])
const parameterName = text({
  like: { test: (value) => !OWN_PARAMETERS.has(value), words: 'a parameter that the login does not set itself' },
})

const CLIENT_FIELDS: FieldTable<UpstreamClientConfig> = {
  client_secret_file: { reader: text(), doc: 'File with the client secret.' },
  client_secret_env_var: { reader: text(), doc: 'Variable with the client secret.' },
  redirect_uri: {
    reader: httpUrl(),
    doc: 'Where the provider sends users back. If absent: the issuer and `/oauth/callback`, and `/oauth/callback/NAME` for providers after the first.',
  },
  scopes: { reader: listOf(text()), default: [], doc: 'Scopes to request; `openid` for OIDC if there are none.' },
  additional_authorization_params: {
    reader: mapOf(text({ allowEmpty: true }), parameterName),
    default: {},
    doc: 'Further parameters of the authorization request.',
  },
  allow_private_ips: { reader: flag, default: false, doc: 'Whether the endpoints may have private addresses.' },
  insecure_allow_http: { reader: flag, default: false, doc: 'Whether the endpoints may be plain HTTP. For tests only.' },
}

const USER_INFO_NAMES: FieldTable<UserInfoFields> = {
  subject_fields: { reader: listOf(text()), default: ['sub', 'id'], doc: 'Members to take the subject from; the first that is there.' },
  name_fields: { reader: listOf(text()), default: ['name', 'login'], doc: 'Members to take the name from.' },
  email_fields: { reader: listOf(text()), default: ['email'], doc: 'Members to take the e-mail address from.' },
}

const USER_INFO_FIELDS: FieldTable<UserInfoConfig> = {
  endpoint_url: { reader: httpUrl(), required: true, doc: 'Userinfo endpoint.' },
  http_method: { reader: oneOf(['GET', 'POST']), default: 'GET', doc: 'Method of the request.' },
  additional_headers: { reader: mapOf(headerValue, headerName), default: {}, doc: 'Further headers of the request.' },
  field_mapping: {
    reader: objectOf(USER_INFO_NAMES, STRICT),
    default: { subject_fields: ['sub', 'id'], name_fields: ['name', 'login'], email_fields: ['email'] },
    doc: 'Members of the answer.',
  },
}

const OIDC_UPSTREAM_FIELDS: FieldTable<OidcUpstreamConfig> = {
  ...CLIENT_FIELDS,
  issuer_url: { reader: httpUrl(), required: true, doc: 'Issuer of the provider.' },
  client_id: { reader: text(), required: true, doc: 'Client id at the provider.' },
  subject_claim: { reader: text(), doc: 'Claim with the subject; `sub` if absent.' },
  userinfo_override: {
    reader: objectOf(USER_INFO_FIELDS, STRICT),
    doc: 'Where name and e-mail address come from, instead of the ID token.',
  },
}

const MAPPING_FIELDS: FieldTable<TokenResponseMapping> = {
  access_token_path: { reader: text(), required: true, doc: 'Path of the access token in the token response, with dots.' },
  refresh_token_path: { reader: text(), doc: 'Path of the refresh token.' },
  expires_in_path: { reader: text(), doc: 'Path of the lifetime in seconds.' },
  scope_path: { reader: text(), doc: 'Path of the scope.' },
}

const IDENTITY_FIELDS: FieldTable<IdentityPaths> = {
  subject_path: { reader: text(), required: true, doc: 'Path of the subject in the token response, with dots.' },
  name_path: { reader: text(), doc: 'Path of the name.' },
  email_path: { reader: text(), doc: 'Path of the e-mail address.' },
}

const REGISTRATION_FIELDS: FieldTable<UpstreamRegistrationConfig> = {
  discovery_url: { reader: httpUrl(), doc: 'Metadata document that names the registration endpoint.' },
  registration_endpoint: { reader: httpUrl(), doc: 'The registration endpoint itself.' },
  initial_access_token_file: { reader: text(), doc: 'File with the token that allows the registration.' },
  initial_access_token_env_var: { reader: text(), doc: 'Variable with that token.' },
  software_id: { reader: text(), doc: 'The `software_id` of the registration.' },
  software_statement: { reader: text(), doc: 'The `software_statement` of the registration.' },
}

const OAUTH2_UPSTREAM_FIELDS: FieldTable<OAuth2UpstreamConfig> = {
  ...CLIENT_FIELDS,
  authorization_endpoint: { reader: httpUrl(), required: true, doc: 'Authorization endpoint.' },
  token_endpoint: { reader: httpUrl(), required: true, doc: 'Token endpoint.' },
  client_id: { reader: text(), doc: 'Client id at the provider. This or `dcr_config`.' },
  userinfo: { reader: objectOf(USER_INFO_FIELDS, STRICT), doc: 'Userinfo endpoint.' },
  token_response_mapping: { reader: objectOf(MAPPING_FIELDS, STRICT), doc: 'Members of a nonstandard token response.' },
  identity_from_token: { reader: objectOf(IDENTITY_FIELDS, STRICT), doc: 'Members of the token response with the identity of the user.' },
  dcr_config: { reader: objectOf(REGISTRATION_FIELDS, STRICT), doc: 'Registers this server as a client at the provider (RFC 7591).' },
}

export const UPSTREAM_FIELDS: FieldTable<UpstreamConfig> = {
  name: { reader: providerName, default: 'default', doc: 'Name of the provider.' },
  type: { reader: oneOf(['oidc', 'oauth2']), required: true, doc: 'Protocol of the provider.' },
  login_policy: {
    reader: oneOf(['required', 'onDemand']),
    default: 'required',
    doc: 'Whether every login leads to this provider, or only one that a call needs. The first provider is always `required`.',
  },
  oidc_config: { reader: objectOf(OIDC_UPSTREAM_FIELDS, STRICT), doc: 'For `oidc`.' },
  oauth2_config: { reader: objectOf(OAUTH2_UPSTREAM_FIELDS, STRICT), doc: 'For `oauth2`.' },
}
