import type {
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  CustomResourceDefinition,
  Deployment,
  EndpointSlice,
  KubeEvent,
  KubeNode,
  Lease,
  Namespace,
  NetworkPolicy,
  Pod,
  ReplicaSet,
  Role,
  RoleBinding,
  Secret,
  Service,
  ServiceAccount,
  StatefulSet,
} from './builtin-kinds.ts'
import type { KubeObject, ResourceType } from './types.ts'

export const namespaces = core<Namespace>('Namespace', 'namespaces', { clusterWide: true })
export const nodes = core<KubeNode>('Node', 'nodes', { clusterWide: true })
export const configMaps = core<ConfigMap>('ConfigMap', 'configmaps')
export const secrets = core<Secret>('Secret', 'secrets')
export const services = core<Service>('Service', 'services')
export const serviceAccounts = core<ServiceAccount>('ServiceAccount', 'serviceaccounts')
export const pods = core<Pod>('Pod', 'pods')

export const events: ResourceType<KubeEvent> = inGroup('events.k8s.io', 'Event', 'events')
export const deployments: ResourceType<Deployment> = inGroup('apps', 'Deployment', 'deployments')
export const replicaSets: ResourceType<ReplicaSet> = inGroup('apps', 'ReplicaSet', 'replicasets')
export const statefulSets: ResourceType<StatefulSet> = inGroup('apps', 'StatefulSet', 'statefulsets')
export const leases: ResourceType<Lease> = inGroup('coordination.k8s.io', 'Lease', 'leases')
export const networkPolicies: ResourceType<NetworkPolicy> = inGroup('networking.k8s.io', 'NetworkPolicy', 'networkpolicies')
export const endpointSlices: ResourceType<EndpointSlice> = inGroup('discovery.k8s.io', 'EndpointSlice', 'endpointslices')

const RBAC = 'rbac.authorization.k8s.io'
export const roles: ResourceType<Role> = inGroup(RBAC, 'Role', 'roles')
export const roleBindings: ResourceType<RoleBinding> = inGroup(RBAC, 'RoleBinding', 'rolebindings')
export const clusterRoles: ResourceType<ClusterRole> = clusterWide(inGroup(RBAC, 'ClusterRole', 'clusterroles'))
export const clusterRoleBindings: ResourceType<ClusterRoleBinding> = clusterWide(inGroup(RBAC, 'ClusterRoleBinding', 'clusterrolebindings'))

export const customResourceDefinitions: ResourceType<CustomResourceDefinition> = clusterWide(
  inGroup('apiextensions.k8s.io', 'CustomResourceDefinition', 'customresourcedefinitions'),
)

function core<T extends KubeObject>(kind: string, plural: string, scope: { clusterWide?: boolean } = {}): ResourceType<T> {
  return { group: '', version: 'v1', kind, plural, namespaced: scope.clusterWide !== true }
}

function inGroup<T extends KubeObject>(group: string, kind: string, plural: string): ResourceType<T> {
  return { group, version: 'v1', kind, plural, namespaced: true }
}

function clusterWide<T extends KubeObject>(type: ResourceType<T>): ResourceType<T> {
  return { ...type, namespaced: false }
}
