export const MCP_REGISTRY_FINALIZER = 'mcpregistry.toolhive.stacklok.dev/finalizer'
/** Any new non-empty value of this annotation asks for a sync. */
export const SYNC_TRIGGER_ANNOTATION = 'toolhive.stacklok.dev/sync-trigger'
/** On a selected ConfigMap, for the conflict strategy `priority`: an integer, higher first. */
export const REGISTRY_PRIORITY_ANNOTATION = 'toolhive.stacklok.dev/registry-priority'

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
  StorageEphemeral: 'StorageEphemeral',
  ServersEnforced: 'ServersEnforced',
  NameConflict: 'NameConflict',
  /** True: the API server keeps refusing an object of the latest spec. What ran before goes on. Absent otherwise. */
  WriteRefused: 'WriteRefused',
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
  SharedStoreAvailable: 'SharedStoreAvailable',
  EmptyDirStorage: 'EmptyDirStorage',
  SourcesAvailable: 'SourcesAvailable',
  SourceNotFound: 'SourceNotFound',
  DataValid: 'DataValid',
  InvalidData: 'InvalidData',
  SyncComplete: 'SyncComplete',
  SyncInProgress: 'SyncInProgress',
  StatusNotReadable: 'StatusNotReadable',
  SourcesValid: 'SourcesValid',
  NoConfigMaps: 'NoConfigMaps',
  NameConflict: 'NameConflict',
  NameTakenByOtherWorkload: 'NameTakenByOtherWorkload',
  APIDisabled: 'APIDisabled',
  NotBuiltYet: 'NotBuiltYet',
  ImagesListed: 'ImagesListed',
  ImagesUnknown: 'ImagesUnknown',
  SyncTriggerUnsupported: 'SyncTriggerUnsupported',
  APIReady: 'APIReady',
  APINotReady: 'APINotReady',
  ValidPodTemplateSpec: 'ValidPodTemplateSpec',
  InvalidPodTemplateSpec: 'InvalidPodTemplateSpec',
  Exported: 'Exported',
  WaitingForGatewayAddress: 'WaitingForGatewayAddress',
  ReferenceNotPermitted: 'ReferenceNotPermitted',
  ConflictingConfiguration: 'ConflictingConfiguration',
  GatewayNotReadable: 'GatewayNotReadable',
  NoServer: 'NoServer',
  ExportTooLarge: 'ExportTooLarge',
  ExportNamespaceNotAllowed: 'ExportNamespaceNotAllowed',
} as const
