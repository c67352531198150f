import {
  type CacheShape,
  type ConfigMap,
  configMaps,
  type Deployment,
  deployments,
  events,
  type KubeEvent,
  type KubeObject,
  type NetworkPolicy,
  networkPolicies,
  type Pod,
  pods,
  type Role,
  type RoleBinding,
  roleBindings,
  roles,
  type Secret,
  type Service,
  type ServiceAccount,
  type StatefulSet,
  secrets,
  serviceAccounts,
  services,
  statefulSets,
} from '@thv/kube'
import { RUNNER_CONTROLLER } from '@thv/runconfig/runner-events'
import { MANAGED_LABEL, oursWhole, secretKeys } from './cache-shapes.ts'
import type { CacheSpec } from './cache-spec.ts'

/* The built-in kinds that controllers read. All of them are cached, whichever controllers run. */

const ours = { shape: oursWhole }
const labeled = { labelSelector: `${MANAGED_LABEL}=true` }

/** `namespace/name` of the workload. Of pods by the label that proxy and server pods carry, of Events by the object they are about. */
export const WORKLOAD_INDEX = 'workload'

export function workloadOf({ metadata }: KubeObject): string[] {
  const name = metadata.labels?.['toolhive-name']
  return name === undefined ? [] : [`${metadata.namespace}/${name}`]
}

// The operator's own objects are cached whole, those of others as metadata only.
export const deploymentCache: CacheSpec<Deployment> = { type: deployments, ...ours }
export const serviceCache: CacheSpec<Service> = { type: services, ...ours }
export const serviceAccountCache: CacheSpec<ServiceAccount> = { type: serviceAccounts, ...ours }
export const roleCache: CacheSpec<Role> = { type: roles, ...ours }
export const roleBindingCache: CacheSpec<RoleBinding> = { type: roleBindings, ...ours }
export const networkPolicyCache: CacheSpec<NetworkPolicy> = { type: networkPolicies, ...ours }
export const configMapCache: CacheSpec<ConfigMap> = { type: configMaps, ...ours }
/** Names of the keys, never their values. */
export const secretCache: CacheSpec<Secret> = { type: secrets, shape: secretKeys as CacheShape }
/** Of the operator's workloads only. */
export const podCache: CacheSpec<Pod> = { type: pods, ...labeled, index: { name: WORKLOAD_INDEX, valuesOf: workloadOf } }
export const statefulSetCache: CacheSpec<StatefulSet> = { type: statefulSets, ...labeled }
/** Events that runners record on their MCPServers. */
export const runnerEventCache: CacheSpec<KubeEvent> = {
  type: events,
  fieldSelector: `reportingController=${RUNNER_CONTROLLER}`,
  index: { name: WORKLOAD_INDEX, valuesOf: ({ metadata, regarding }) => [`${metadata.namespace}/${regarding?.name}`] },
}

export const BUILT_IN_CACHES: readonly CacheSpec[] = [
  deploymentCache,
  serviceCache,
  serviceAccountCache,
  roleCache,
  roleBindingCache,
  networkPolicyCache,
  configMapCache,
  secretCache,
  podCache,
  statefulSetCache,
  runnerEventCache,
]
