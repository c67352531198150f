export const MCP_REGISTRY_FINALIZER = 'mcpregistry.toolhive.stacklok.dev/finalizer'
/** Any new non-empty value of this annotation asks for a sync. */
export const SYNC_TRIGGER_ANNOTATION = 'toolhive.stacklok.dev/sync-trigger'

export const MCP_REGISTRY_PHASES = ['Pending', 'Ready', 'Failed', 'Syncing', 'Terminating'] as const
export const SYNC_PHASES = ['Syncing', 'Complete', 'Failed'] as const
export const API_PHASES = ['NotStarted', 'Deploying', 'Ready', 'Unhealthy', 'Error'] as const

export const MCPRegistryCondition = {
  Ready: 'Ready',
  SourceAvailable: 'SourceAvailable',
  DataValid: 'DataValid',
  SyncSuccessful: 'SyncSuccessful',
  SourcesValid: 'SourcesValid',
  APIReady: 'APIReady',
  PodTemplateValid: 'PodTemplateValid',
  RegistryExport: 'RegistryExport',
  SharedStore: 'SharedStore',
  NameConflict: 'NameConflict',
} as const

export const MCPRegistryReason = {
  Ready: 'Ready',
  NotReady: 'NotReady',
  ValidationFailed: 'ValidationFailed',
  ConfigMapFailed: 'ConfigMapFailed',
  RBACFailed: 'RBACFailed',
  DeploymentFailed: 'DeploymentFailed',
  ServiceFailed: 'ServiceFailed',
  HandlerCreationFailed: 'HandlerCreationFailed',
  FetchFailed: 'FetchFailed',
  StorageFailed: 'StorageFailed',
  StorageTooLarge: 'StorageTooLarge',
  AggregateTooLarge: 'AggregateTooLarge',
  PartialSyncFailure: 'PartialSyncFailure',
  SharedStoreRequired: 'SharedStoreRequired',
  APIReady: 'APIReady',
  APINotReady: 'APINotReady',
  ValidPodTemplateSpec: 'ValidPodTemplateSpec',
  InvalidPodTemplateSpec: 'InvalidPodTemplateSpec',
  Exported: 'Exported',
  WaitingForGatewayAddress: 'WaitingForGatewayAddress',
  ReferenceNotPermitted: 'ReferenceNotPermitted',
  ConflictingConfiguration: 'ConflictingConfiguration',
  GatewayNotReadable: 'GatewayNotReadable',
} as const
