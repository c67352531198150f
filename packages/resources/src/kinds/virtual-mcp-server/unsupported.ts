/** Fields of the spec that protect or add something that is not built, and what to use. Admission refuses them, `normalise()` reports them. */
export const UNSUPPORTED = {
  telemetryConfigRef: 'use config.telemetry',
  embeddingServerRef: 'use config.optimizer.embeddingService',
  aggregation: 'use config.aggregation',
  operational: 'use config.operational',
  'incomingAuth.oidcConfigRef': 'use incomingAuth.oidcConfig',
  'incomingAuth.authzConfigRef': 'use incomingAuth.authzConfig',
  'config.incomingAuth.oidc.clientSecretEnv': 'use incomingAuth.oidcConfig.inline.clientSecretRef',
  'config.backends': 'backends are the members of the group; make an MCPServerEntry for a remote server',
  'config.outgoingAuth': 'use spec.outgoingAuth',
  'config.sessionStorage': 'use spec.sessionStorage',
  'config.codeMode': 'there is no code mode; use config.compositeTools',
} as const
