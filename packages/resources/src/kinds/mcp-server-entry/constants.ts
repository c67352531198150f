export const MCPServerEntryPhase = { Pending: 'Pending', Ready: 'Ready', Failed: 'Failed' } as const

export const ConditionTypeMCPServerEntryReady = 'Ready'
/** Same status as Ready; the name that earlier releases of the API gave to it. */
export const ConditionTypeMCPServerEntryValid = 'Valid'
export const ConditionTypeMCPServerEntryRemoteURLValidated = 'RemoteURLValidated'
export const ConditionTypeMCPServerEntryGroupRefValidated = 'GroupRefValidated'
export const ConditionTypeMCPServerEntryExternalAuthConfigValidated = 'ExternalAuthConfigValidated'
export const ConditionTypeMCPServerEntryCABundleRefValidated = 'CABundleRefValidated'
export const ConditionTypeMCPServerEntryHeaderSecretRefsValidated = 'HeaderSecretRefsValidated'

export const MCPServerEntryCondition = {
  Ready: ConditionTypeMCPServerEntryReady,
  Valid: ConditionTypeMCPServerEntryValid,
  RemoteURLValidated: ConditionTypeMCPServerEntryRemoteURLValidated,
  GroupRefValidated: ConditionTypeMCPServerEntryGroupRefValidated,
  ExternalAuthConfigValidated: ConditionTypeMCPServerEntryExternalAuthConfigValidated,
  CABundleRefValidated: ConditionTypeMCPServerEntryCABundleRefValidated,
  HeaderSecretRefsValidated: ConditionTypeMCPServerEntryHeaderSecretRefsValidated,
} as const

/** An entry has no proxy to log in to, so no embedded server suits it. */
export const ConditionReasonExternalAuthConfigMultiUpstream = 'MultiUpstreamNotSupported'

export const MCPServerEntryReason = {
  ConfigValid: 'ConfigValid',
  ConfigInvalid: 'ConfigInvalid',
  RemoteURLValid: 'RemoteURLValid',
  RemoteURLInvalid: 'RemoteURLInvalid',
  GroupRefIsValid: 'GroupRefIsValid',
  GroupRefNotFound: 'GroupRefNotFound',
  GroupRefNotReady: 'GroupRefNotReady',
  AuthConfigValid: 'AuthConfigValid',
  AuthConfigNotConfigured: 'AuthConfigNotConfigured',
  AuthConfigNotFound: 'AuthConfigNotFound',
  /** The MCPExternalAuthConfig is there, but its own condition Valid is False. */
  AuthConfigInvalid: 'AuthConfigInvalid',
  /** Its type makes no sense for a server that has no proxy. */
  AuthConfigTypeNotSupported: 'AuthConfigTypeNotSupported',
  ExternalAuthConfigMultiUpstream: ConditionReasonExternalAuthConfigMultiUpstream,
  CABundleRefValid: 'CABundleRefValid',
  CABundleRefNotConfigured: 'CABundleRefNotConfigured',
  CABundleRefNotFound: 'CABundleRefNotFound',
  CABundleRefInvalid: 'CABundleRefInvalid',
  HeaderSecretsValid: 'HeaderSecretsValid',
  HeaderSecretNotFound: 'HeaderSecretNotFound',
} as const
