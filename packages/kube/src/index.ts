export type {
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  Container,
  ContainerState,
  ContainerStatus,
  CustomResourceDefinition,
  Deployment,
  EndpointSlice,
  KubeEvent,
  KubeNode,
  Lease,
  Namespace,
  NetworkPolicy,
  ObjectReference,
  Pod,
  PodSpec,
  PodTemplateSpec,
  PolicyRule,
  ReplicaSet,
  Role,
  RoleBinding,
  Secret,
  Service,
  ServiceAccount,
  StatefulSet,
  StatusCondition,
  WorkloadSpec,
  WorkloadStatus,
} from './builtin-kinds.ts'
export type {
  ApplyOptions,
  CallOptions,
  DeleteCollectionOptions,
  DeleteOptions,
  GetOptions,
  HttpMethod,
  JsonPatchOp,
  KubeClient,
  KubeClientOptions,
  ListOptions,
  Patch,
  RawOptions,
  RawResponse,
  RetryOptions,
  StreamOptions,
  WatchOptions,
  WriteOptions,
} from './client.ts'
export { createKubeClient } from './client.ts'
export type { AuthSource, Connection, TlsSettings } from './connection.ts'
export { basicAuth, bearerToken, noAuth } from './connection.ts'
export { type DefaultConnectionOptions, defaultConnection } from './default-connection.ts'
export { type ApiResource, createDiscovery, type Discovery, type ServerVersion } from './discovery.ts'
export { type InClusterOptions, inClusterConnection } from './in-cluster.ts'
export {
  isAlreadyExists,
  isConflict,
  isExpired,
  isForbidden,
  isGone,
  isInvalid,
  isNotFound,
  isTooManyRequests,
  KubeApiError,
  type KubeStatusCause,
} from './kube-api-error.ts'
export { type KubeconfigOptions, loadKubeconfig } from './kubeconfig.ts'
export { apiVersionOf, resourceName } from './paths.ts'
export {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  customResourceDefinitions,
  deployments,
  endpointSlices,
  events,
  leases,
  namespaces,
  networkPolicies,
  nodes,
  pods,
  replicaSets,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
  services,
  statefulSets,
} from './resource-types.ts'
export type {
  KubeList,
  KubeObject,
  KubeStatus,
  ObjectKey,
  ObjectMeta,
  OwnerReference,
  ResourceType,
  WatchEvent,
  WatchEventType,
} from './types.ts'

// runtime

export {
  type Condition,
  type ConditionStatus,
  type Conditions,
  type ConditionUpdate,
  getCondition,
  isTrue,
  removeCondition,
  setCondition,
} from './conditions.ts'
export {
  type Controller,
  type ControllerOptions,
  type ControllerStats,
  createController,
  done,
  type Outcome,
  type Reconcile,
  type ReconcileContext,
  type ReconcileReport,
  requeueAfter,
  retry,
  type Source,
  watchMapped,
  watchOwned,
  watchSelf,
} from './controller.ts'
export {
  createEventRecorder,
  type EventInput,
  type EventRecorder,
  type EventRecorderOptions,
  type EventRecorderStats,
} from './events.ts'
export { addFinalizer, dropFinalizer, ensureFinalizer, hasFinalizer, removeFinalizer } from './finalizers.ts'
export {
  type LabelMatcher,
  type LabelSelector,
  type LabelSelectorExpression,
  labelSelectorProblem,
  parseLabelSelector,
} from './label-selector.ts'
export { type LeaseLog, type LeaseOptions, runWithLease } from './lease-election.ts'
export { compareResourceVersions, formatKey, keyOf, parseKey } from './object-key.ts'
export { controllerOf, controllerRef, isControlledBy, type OwnerFilter, ownerKeys, setControllerReference } from './owners.ts'
export {
  and,
  annotationsChanged,
  deletionStarted,
  generationChanged,
  labelsChanged,
  not,
  or,
  type Predicate,
  resourceVersionChanged,
} from './predicates.ts'
export {
  type EventHandler,
  type ObjectEvent,
  Reflector,
  type ReflectorClient,
  type ReflectorOptions,
  type ReflectorPhase,
  type ReflectorStats,
} from './reflector.ts'
export { type CacheScope, type CacheShape, createSharedCaches, type SharedCaches, type SharedCachesOptions } from './shared-caches.ts'
export { type StatusTarget, type StatusWrite, writeStatus } from './status-writer.ts'
export { metadataOnly, ObjectStore, type ReadonlyStore, type StoreFilter, withoutManagedFields } from './store.ts'
export { WorkQueue, type WorkQueueOptions } from './work-queue.ts'
