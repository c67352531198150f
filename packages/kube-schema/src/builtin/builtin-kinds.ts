/** The built-in kinds that the embedded API server has, by the OpenAPI document that describes them. */
export const BUILTIN_KINDS: Readonly<Record<string, readonly string[]>> = {
  v1: ['Namespace', 'Node', 'Pod', 'Service', 'ConfigMap', 'Secret', 'ServiceAccount', 'Event', 'PodTemplate', 'ReplicationController'],
  'apps/v1': ['Deployment', 'ReplicaSet', 'StatefulSet', 'ControllerRevision'],
  'autoscaling/v1': ['Scale'],
  'discovery.k8s.io/v1': ['EndpointSlice'],
  'coordination.k8s.io/v1': ['Lease'],
  'events.k8s.io/v1': ['Event'],
  'networking.k8s.io/v1': ['NetworkPolicy'],
  'rbac.authorization.k8s.io/v1': ['Role', 'ClusterRole', 'RoleBinding', 'ClusterRoleBinding'],
  'apiextensions.k8s.io/v1': ['CustomResourceDefinition'],
}

/** The real server describes this group only where it is used. */
export const DOCUMENTED_IN: Readonly<Record<string, string>> = { 'autoscaling/v1': 'apps/v1' }
