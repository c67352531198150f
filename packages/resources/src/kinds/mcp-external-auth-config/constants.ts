export const MCP_EXTERNAL_AUTH_CONFIG_FINALIZER = 'mcpexternalauthconfig.toolhive.stacklok.dev/finalizer'

export const AUTH_TYPES = [
  'tokenExchange',
  'headerInjection',
  'bearerToken',
  'clientCredentials',
  'unauthenticated',
  'embeddedAuthServer',
  'awsSts',
  'upstreamInject',
  'oidc',
] as const
export type AuthType = (typeof AUTH_TYPES)[number]

export const MCPExternalAuthConfigCondition = {
  Valid: 'Valid',
  /** Embedded server only: whether an OAuth 2 provider without user info makes the server invent subjects. */
  IdentitySynthesized: 'IdentitySynthesized',
  /** Embedded server only. True: the operator makes and rotates its keys. False: it cannot. Absent: the spec names all of them. */
  SigningKeysManaged: 'SigningKeysManaged',
  DeletionBlocked: 'DeletionBlocked',
} as const

export const MCPExternalAuthConfigReason = {
  ValidationSucceeded: 'ValidationSucceeded',
  ValidationFailed: 'ValidationFailed',
  /** The spec is right, but a Secret or a key that it names is not there. */
  SecretNotFound: 'SecretNotFound',
  OAuth2UpstreamWithoutUserInfo: 'OAuth2UpstreamWithoutUserInfo',
  AllUpstreamsHaveUserInfo: 'AllUpstreamsHaveUserInfo',
  ReferencedByWorkloads: 'ReferencedByWorkloads',
  KeysMadeByOperator: 'KeysMadeByOperator',
  SecretNameTaken: 'SecretNameTaken',
} as const
