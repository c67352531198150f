/* Condition types and reasons that MCPServer and MCPRemoteProxy have in common. */

export const WorkloadCondition = {
  /** Mirrors the phase. */
  Ready: 'Ready',
  /** False while `normalise()` finds a problem that admission cannot see, or a referenced object is missing or wrong. */
  ConfigurationValid: 'ConfigurationValid',
  GroupRefValidated: 'GroupRefValidated',
  PodTemplateValid: 'PodTemplateValid',
  /** True: the authorization server keeps logins in memory, so there is one replica only. Absent otherwise. */
  AuthServerReplicaCapped: 'AuthServerReplicaCapped',
  CABundleRefValidated: 'CABundleRefValidated',
  ExternalAuthConfigValidated: 'ExternalAuthConfigValidated',
  AuthServerRefValidated: 'AuthServerRefValidated',
  AuthzPrimaryUpstreamProviderIgnored: 'AuthzPrimaryUpstreamProviderIgnored',
  /** True: policies name tools by names that only clients see. They decide by the names of the server. */
  AuthzVisibleToolNames: 'AuthzVisibleToolNames',
  SessionStorageWarning: 'SessionStorageWarning',
  ToolConfigValidated: 'ToolConfigValidated',
  /** True: something the spec asks for cannot be applied, so no proxy runs. */
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
  /** False: clients need not say who they are, or their authentication is misconfigured. An MCPServer without oidcConfig has none. */
  Authenticated: 'Authenticated',
  /** True: a secret stands in clear where a Secret could be named. */
  PlaintextSecret: 'PlaintextSecret',
  /** Whether registries list the resource; absent for one that is not marked for export. */
  RegistryExport: 'RegistryExport',
} as const

export const WorkloadReason = {
  Exported: 'Exported',
  ConflictingConfiguration: 'ConflictingConfiguration',
  NoRegistry: 'NoRegistry',
  NotOptedIn: 'NotOptedIn',
  NotReady: 'NotReady',
  ConfigurationValid: 'ConfigurationValid',
  ConflictingSpellings: 'ConflictingSpellings',
  InvalidSpec: 'InvalidSpec',
  OIDCConfigMapNotFound: 'OIDCConfigMapNotFound',
  OIDCConfigMapInvalid: 'OIDCConfigMapInvalid',
  OIDCIssuerInsecure: 'OIDCIssuerInsecure',
  OIDCIssuerInvalid: 'OIDCIssuerInvalid',
  JWKSURLInvalid: 'JWKSURLInvalid',
  IntrospectionURLInvalid: 'IntrospectionURLInvalid',
  ResourceURLInvalid: 'ResourceURLInvalid',
  ClientSecretInPlainText: 'ClientSecretInPlainText',
  AuthzConfigMapNotFound: 'AuthzConfigMapNotFound',
  AuthzConfigMapInvalid: 'AuthzConfigMapInvalid',
  AuthzPolicySyntaxInvalid: 'AuthzPolicySyntaxInvalid',
  PolicyNamesVisibleTool: 'PolicyNamesVisibleTool',
  SecretNotFound: 'SecretNotFound',
  /** `oidcConfig.external` names an MCPExternalAuthConfig that says nothing about clients. */
  NotIncomingAuth: 'NotIncomingAuth',

  AuthValid: 'AuthValid',
  AuthInvalid: 'AuthInvalid',
  /** Clients authenticate, but tokens that were made for other servers are accepted, too. */
  AudienceNotChecked: 'AudienceNotChecked',

  GroupRefIsValid: 'GroupRefIsValid',
  GroupRefNotFound: 'GroupRefNotFound',
  GroupRefNotReady: 'GroupRefNotReady',
  ValidPodTemplateSpec: 'ValidPodTemplateSpec',
  InvalidPodTemplateSpec: 'InvalidPodTemplateSpec',
  CABundleRefValid: 'CABundleRefValid',
  CABundleRefInvalid: 'CABundleRefInvalid',
  CABundleRefNotFound: 'CABundleRefNotFound',
  ToolConfigValid: 'ToolConfigValid',
  ToolConfigNotFound: 'ToolConfigNotFound',
  ToolConfigFetchError: 'ToolConfigFetchError',

  ExternalAuthConfigValid: 'ExternalAuthConfigValid',
  ExternalAuthConfigNotFound: 'ExternalAuthConfigNotFound',
  ExternalAuthConfigFetchError: 'ExternalAuthConfigFetchError',
  /** When the referenced object is invalid but gives no reason of its own to mirror. */
  InvalidExternalAuthConfig: 'InvalidExternalAuthConfig',
  InvalidConfig: 'InvalidConfig',
  AuthServerStorageInMemory: 'AuthServerStorageInMemory',
  AuthServerRefValid: 'AuthServerRefValid',
  AuthServerRefInvalidKind: 'AuthServerRefInvalidKind',
  AuthServerRefNotFound: 'AuthServerRefNotFound',
  AuthServerRefFetchError: 'AuthServerRefFetchError',
  AuthServerRefInvalidType: 'AuthServerRefInvalidType',
  AuthServerRefInvalidConfig: 'AuthServerRefInvalidConfig',
  PrimaryUpstreamProviderIgnored: 'PrimaryUpstreamProviderIgnored',

  SessionStorageConfigured: 'SessionStorageConfigured',
  /** Sessions lie in Redis in the clear. */
  SessionStorageNotEncrypted: 'SessionStorageNotEncrypted',
  SessionStorageMissingForReplicas: 'SessionStorageMissingForReplicas',
  SessionStorageWarningNotApplicable: 'SessionStorageWarningNotApplicable',
  /** Sessions stay in memory: the password of the operator's Redis is not in this namespace. */
  DefaultRedisSecretNotFound: 'DefaultRedisSecretNotFound',

  MiddlewareUnsupported: 'MiddlewareUnsupported',
  NameTakenByOtherWorkload: 'NameTakenByOtherWorkload',
  ServiceNameTaken: 'ServiceNameTaken',
  ServiceNameReserved: 'ServiceNameReserved',
  /** The API server keeps refusing an object that the operator or the runner writes. */
  WriteRefused: 'WriteRefused',
  VariableSetTwice: 'VariableSetTwice',
  ExceedsBaseline: 'ExceedsBaseline',

  /* Reported by the runner of an MCPServer in Events, shown as the reason of Ready. */
  BackendPortClosed: 'BackendPortClosed',
  BackendNotMcp: 'BackendNotMcp',
  HandshakeTimedOut: 'HandshakeTimedOut',
  ServerEnded: 'ServerEnded',
  WorkloadForeign: 'WorkloadForeign',

  /* Reported by a pod, shown as the reason of Ready. */
  ImagePullBackOff: 'ImagePullBackOff',
  ErrImagePull: 'ErrImagePull',
  InvalidImageName: 'InvalidImageName',
  CrashLoopBackOff: 'CrashLoopBackOff',
  CreateContainerError: 'CreateContainerError',
  ContainerTerminated: 'ContainerTerminated',
  PodFailed: 'PodFailed',
  ErrImageNeverPull: 'ErrImageNeverPull',
  CreateContainerConfigError: 'CreateContainerConfigError',
  RunContainerError: 'RunContainerError',
  Unschedulable: 'Unschedulable',
  /** The Deployment may not make pods: a quota, an admission rule or a missing ServiceAccount. */
  PodCreationFailed: 'PodCreationFailed',
  ScaledToZero: 'ScaledToZero',
} as const
