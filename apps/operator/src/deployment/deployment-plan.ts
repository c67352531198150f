import type {
  ConditionUpdate,
  ConfigMap,
  Deployment,
  KubeObject,
  NetworkPolicy,
  ResourceType,
  Role,
  RoleBinding,
  Service,
  ServiceAccount,
} from '@thv/kube'
import type { UnsupportedField } from '@thv/runconfig/middleware-table'
import {
  configMapCache,
  deploymentCache,
  networkPolicyCache,
  roleBindingCache,
  roleCache,
  serviceAccountCache,
  serviceCache,
} from '../caches/built-in-caches.ts'
import type { CacheSpec } from '../caches/cache-spec.ts'
import type { KindCache } from '../caches/kind-cache.ts'
import type { OperatorCaches } from '../caches/operator-caches.ts'
import type { Blocker } from './contribution.ts'

/** All that one workload needs, as its controller found out. Pure data. */
export interface WorkloadPlan {
  /** In the order in which they must exist; the Deployment last. */
  readonly children: readonly PlannedChild[]
  /** Made first, and also when the rest is blocked: what runs must not run without them meanwhile. */
  readonly guards: readonly PlannedChild[]
  /** The Service with the workload's own name: gives way to one of somebody else. */
  readonly alias: Service | undefined
  /** Children of an earlier state that must go. */
  readonly unwanted: readonly { readonly kind: ChildKind; readonly name: string }[]
  readonly conditions: readonly ConditionUpdate[]
  /** Members of the status besides phase, conditions and counts. */
  readonly status: Readonly<Record<string, string>>
  /** Not empty: nothing but the guards is made or changed. */
  readonly blockers: readonly Blocker[]
  /** Fields that no runner implements yet; not empty: the Deployment has no pods. */
  readonly unsupported: readonly UnsupportedField[]
  /** The running version lacks a protection that the spec requires, so it must stop although it cannot be replaced. */
  readonly stopsWhatRuns: boolean
  /** Undefined while it is unknown. */
  readonly url: string | undefined
}

/** On a Deployment: `true` after the operator scaled it to zero because it ran unprotected; the next apply takes it back. */
export const STOPPED_ANNOTATION = 'toolhive.stacklok.dev/stopped-by-operator'

/** The kinds of objects that workloads are made of. */
const CHILD_CACHES = {
  ServiceAccount: serviceAccountCache,
  Role: roleCache,
  RoleBinding: roleBindingCache,
  ConfigMap: configMapCache,
  NetworkPolicy: networkPolicyCache,
  Service: serviceCache,
  Deployment: deploymentCache,
} as const

export type ChildKind = keyof typeof CHILD_CACHES

export type PlannedChild =
  | { readonly kind: 'ServiceAccount'; readonly object: ServiceAccount }
  | { readonly kind: 'Role'; readonly object: Role }
  | { readonly kind: 'RoleBinding'; readonly object: RoleBinding }
  | { readonly kind: 'ConfigMap'; readonly object: ConfigMap }
  | { readonly kind: 'NetworkPolicy'; readonly object: NetworkPolicy }
  | { readonly kind: 'Service'; readonly object: Service }
  | { readonly kind: 'Deployment'; readonly object: Deployment }

export interface CachedKind {
  readonly type: ResourceType<KubeObject>
  readonly cache: KindCache<KubeObject>
}

export function cachedKind(kind: ChildKind, caches: OperatorCaches): CachedKind {
  const spec = CHILD_CACHES[kind] as unknown as CacheSpec
  return { type: spec.type, cache: caches.of(spec) }
}
