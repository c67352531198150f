export const VirtualMCPServerPhase = { Pending: 'Pending', Ready: 'Ready', Degraded: 'Degraded', Failed: 'Failed' } as const

export const VirtualMCPServerCondition = {
  /** False while the spec has a problem that admission cannot see, such as two spellings that differ. */
  Valid: 'Valid',
  Ready: 'Ready',
  Degraded: 'Degraded',
  GroupRefValidated: 'GroupRefValidated',
  CompositeToolRefsValidated: 'CompositeToolRefsValidated',
  PodTemplateSpecValid: 'PodTemplateSpecValid',
  AuthConfigured: 'AuthConfigured',
  AuthServerConfigValidated: 'AuthServerConfigValidated',
  AuthzUpstreamSelectionWarning: 'AuthzUpstreamSelectionWarning',
  IdentitySynthesized: 'IdentitySynthesized',
  /** True: the operator makes and rotates the keys of the authorization server. Absent: the spec names all of them. */
  SigningKeysManaged: 'SigningKeysManaged',
  /** True: the authorization server keeps logins in memory, so there is one replica only. Absent otherwise. */
  AuthServerReplicaCapped: 'AuthServerReplicaCapped',
  SessionStorageWarning: 'SessionStorageWarning',
  BackendsDiscovered: 'BackendsDiscovered',
  /** True: some items of backends are not offered as they are listed. Written by the virtual server. */
  ToolConflicts: 'ToolConflicts',
  DefaultAuthConfig: 'DefaultAuthConfig',
  /** False: settings name backends that the group does not have. Absent otherwise. */
  BackendNamesResolved: 'BackendNamesResolved',
  /** True: something the spec asks for cannot be applied, so no pod runs. */
  MiddlewareUnsupported: 'MiddlewareUnsupported',
  /** True: another workload of the same name owns the objects. */
  NameConflict: 'NameConflict',
  /** True: the API server keeps refusing an object of the latest spec. What ran before goes on. Absent otherwise. */
  WriteRefused: 'WriteRefused',
  /** True: the Service that is named like the resource itself is not made. */
  ServiceAliasSkipped: 'ServiceAliasSkipped',
  /** True: a variable is set twice and only one of the values is used. */
  EnvironmentShadowed: 'EnvironmentShadowed',
  /** False: what the pods ask for exceeds the level `baseline` of the Pod Security Standards. Absent otherwise. */
  PodSecurity: 'PodSecurity',
  /** True: a secret stands in clear where a Secret could be named. */
  PlaintextSecret: 'PlaintextSecret',
  /** Whether registries list the server; absent for one that is not marked for export. */
  RegistryExport: 'RegistryExport',
} as const

/** Conditions of single backends: how their authentication could be worked out. */
export const backendAuthCondition = (backend: string) => `BackendAuthConfig-${backend}` as const
export const discoveredAuthCondition = (backend: string) => `DiscoveredAuthConfig-${backend}` as const

export const VirtualMCPServerReason = {
  ValidationSucceeded: 'ValidationSucceeded',
  ValidationFailed: 'ValidationFailed',
  SecretNotFound: 'SecretNotFound',
  CABundleRefNotFound: 'CABundleRefNotFound',
  CABundleRefInvalid: 'CABundleRefInvalid',

  DeploymentReady: 'DeploymentReady',
  DeploymentNotReady: 'DeploymentNotReady',
  DeploymentFailed: 'DeploymentFailed',
  BackendsUnavailable: 'BackendsUnavailable',
  BackendsDegraded: 'BackendsDegraded',
  BackendsUnknown: 'BackendsUnknown',
  BackendsDiscoveredSuccessfully: 'BackendsDiscoveredSuccessfully',
  BackendDiscoveryFailed: 'BackendDiscoveryFailed',
  NamesConflict: 'NamesConflict',
  /** Several backends have a name and nothing says which one gets it, so none is offered. */
  UnresolvedConflict: 'UnresolvedConflict',
  NamesMoved: 'NamesMoved',
  NoConflicts: 'NoConflicts',

  GroupRefValid: 'GroupRefValid',
  GroupRefNotFound: 'GroupRefNotFound',
  GroupRefNotReady: 'GroupRefNotReady',
  CompositeToolRefsValid: 'CompositeToolRefsValid',
  CompositeToolRefNotFound: 'CompositeToolRefNotFound',
  CompositeToolRefInvalid: 'CompositeToolRefInvalid',
  PodTemplateSpecValid: 'PodTemplateSpecValid',
  InvalidPodTemplateSpec: 'InvalidPodTemplateSpec',

  AuthValid: 'AuthValid',
  AuthInvalid: 'AuthInvalid',
  AuthzConfigMapNotFound: 'AuthzConfigMapNotFound',
  AuthzConfigMapInvalid: 'AuthzConfigMapInvalid',
  AuthServerConfigValid: 'AuthServerConfigValid',
  AuthServerConfigInvalid: 'AuthServerConfigInvalid',
  AuthzRequiresUpstream: 'AuthzRequiresUpstream',
  AuthzUpstreamUnknown: 'AuthzUpstreamUnknown',
  AuthzPrimaryProviderRequiresAuthServer: 'AuthzPrimaryProviderRequiresAuthServer',
  AuthzUpstreamAutoSelected: 'AuthzUpstreamAutoSelected',
  OAuth2UpstreamWithoutUserInfo: 'OAuth2UpstreamWithoutUserInfo',
  AllUpstreamsHaveUserInfo: 'AllUpstreamsHaveUserInfo',
  KeysMadeByOperator: 'KeysMadeByOperator',
  AuthServerStorageInMemory: 'AuthServerStorageInMemory',
  ConversionSucceeded: 'ConversionSucceeded',
  ConversionFailed: 'ConversionFailed',
  AmbiguousSubjectProvider: 'AmbiguousSubjectProvider',
  /** The backend's proxy accepts tokens of another issuer or audience. */
  AudienceDiffers: 'AudienceDiffers',
  UnknownBackend: 'UnknownBackend',
  SealSecretInvalid: 'SealSecretInvalid',

  SessionStorageConfigured: 'SessionStorageConfigured',
  SessionStorageNotEncrypted: 'SessionStorageNotEncrypted',
  SessionStorageMissingForReplicas: 'SessionStorageMissingForReplicas',
  DefaultRedisSecretNotFound: 'DefaultRedisSecretNotFound',
  SessionStorageWarningNotApplicable: 'SessionStorageWarningNotApplicable',
  MiddlewareUnsupported: 'MiddlewareUnsupported',
  NameTakenByOtherWorkload: 'NameTakenByOtherWorkload',
  ServiceNameTaken: 'ServiceNameTaken',
  ServiceNameReserved: 'ServiceNameReserved',
} as const

export const VirtualMCPServerEvent = {
  DeploymentCreated: 'DeploymentCreated',
  DeploymentUpdated: 'DeploymentUpdated',
  ServiceCreated: 'ServiceCreated',
  HMACSecretCreated: 'HMACSecretCreated',
  DeploymentCreationFailed: 'DeploymentCreationFailed',
  DeploymentUpdateFailed: 'DeploymentUpdateFailed',
  ServiceCreationFailed: 'ServiceCreationFailed',
  HMACSecretGenerationFailed: 'HMACSecretGenerationFailed',
  HMACSecretCreationFailed: 'HMACSecretCreationFailed',
  HMACSecretValidationFailed: 'HMACSecretValidationFailed',
  SecretValidationFailed: 'SecretValidationFailed',
  AuthzConfigMapInvalid: 'AuthzConfigMapInvalid',
  AuthzConfigMapNotFound: 'AuthzConfigMapNotFound',
  InvalidPodTemplateSpec: 'InvalidPodTemplateSpec',
  AuthzPrimaryUpstreamProviderDeprecated: 'AuthzPrimaryUpstreamProviderDeprecated',
} as const

export const BackendStatus = {
  ready: 'ready',
  degraded: 'degraded',
  unavailable: 'unavailable',
  unauthenticated: 'unauthenticated',
  unknown: 'unknown',
} as const

export const CircuitBreakerState = { closed: 'closed', open: 'open', 'half-open': 'half-open' } as const
