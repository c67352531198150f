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
} from './client/client.ts'
export { createKubeClient } from './client/client.ts'
export type { AuthSource, Connection, TlsSettings } from './client/connection.ts'
export { basicAuth, bearerToken, noAuth } from './client/connection.ts'
export { type ApiResource, createDiscovery, type Discovery, type ServerVersion } from './client/discovery.ts'
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
} from './client/kube-api-error.ts'
export { apiVersionOf, resourceName } from './client/paths.ts'
export { type DefaultConnectionOptions, defaultConnection } from './config/default-connection.ts'
export { type InClusterOptions, inClusterConnection, isInCluster } from './config/in-cluster.ts'
export { type KubeconfigOptions, loadKubeconfig } from './config/kubeconfig.ts'
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
} from './objects/builtin-kinds.ts'
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
} from './objects/resource-types.ts'
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
} from './objects/types.ts'

// runtime

export {
  type EventHandler,
  type ObjectEvent,
  Reflector,
  type ReflectorClient,
  type ReflectorOptions,
  type ReflectorPhase,
  type ReflectorStats,
} from './cache/reflector.ts'
export { type CacheScope, type CacheShape, createSharedCaches, type SharedCaches, type SharedCachesOptions } from './cache/shared-caches.ts'
export { metadataOnly, ObjectStore, type ReadonlyStore, type StoreFilter, withoutManagedFields } from './cache/store.ts'
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
} from './controller/controller.ts'
export { addFinalizer, dropFinalizer, ensureFinalizer, hasFinalizer, removeFinalizer } from './controller/finalizers.ts'
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
} from './controller/predicates.ts'
export { refusedWrite } from './controller/refused-write.ts'
export { type StatusTarget, type StatusWrite, writeStatus } from './controller/status-writer.ts'
export { WorkQueue, type WorkQueueOptions } from './controller/work-queue.ts'
export {
  createEventRecorder,
  type EventInput,
  type EventRecorder,
  type EventRecorderOptions,
  type EventRecorderStats,
} from './events/events.ts'
export { type LeaseLog, type LeaseOptions, runWithLease } from './leader-election/lease-election.ts'
export { onlyIfAbsent, onlyIfSame } from './objects/apply-guards.ts'
export {
  type Condition,
  type ConditionStatus,
  type Conditions,
  type ConditionUpdate,
  getCondition,
  isTrue,
  removeCondition,
  setCondition,
} from './objects/conditions.ts'
export {
  type LabelMatcher,
  type LabelSelector,
  type LabelSelectorExpression,
  labelSelectorProblem,
  parseLabelSelector,
} from './objects/label-selector.ts'
export { compareResourceVersions, formatKey, keyOf, parseKey } from './objects/object-key.ts'
export { controllerOf, controllerRef, isControlledBy, type OwnerFilter, ownerKeys, setControllerReference } from './objects/owners.ts'
