import { controllerOf, type KubeObject, type ObjectKey, type Predicate, type Source } from '@thv/kube'
import {
  configMapCache,
  deploymentCache,
  networkPolicyCache,
  podCache,
  roleBindingCache,
  roleCache,
  serviceAccountCache,
  serviceCache,
  workloadOf,
} from '../caches/built-in-caches.ts'
import type { KindCache } from '../caches/kind-cache.ts'
import type { OperatorCaches } from '../caches/operator-caches.ts'
import { ownedBy } from '../caches/predicates.ts'
import { exportSource } from '../export/follower-of.ts'
import { type ProxyKind, workloadsThatName } from './names.ts'

type Workloads = Pick<KindCache, 'get'>

/** The objects that a kind with a Deployment owns, and the pods that show its health. */
export function proxySources(caches: OperatorCaches, kind: ProxyKind | 'VirtualMCPServer', workloads: Workloads): Source[] {
  /** Pods carry the name of their workload. Workloads of two kinds may have the same name, so it must exist here. */
  const workloadsOfPod = (object: KubeObject): ObjectKey[] => {
    const { namespace = '', labels } = object.metadata
    const key = { namespace, name: labels?.['toolhive-name'] ?? '' }
    return workloadOf(object).length > 0 && workloads.get(key) !== undefined ? [key] : []
  }
  return [
    ...caches.of(deploymentCache).owned(ownedBy(kind)),
    ...caches.of(serviceCache).owned(ownedBy(kind)),
    ...caches.of(configMapCache).owned(ownedBy(kind)),
    ...caches.of(serviceAccountCache).owned(ownedBy(kind)),
    ...caches.of(podCache).mapped(workloadsOfPod),
    ...freedNames(caches, kind, workloads),
    exportSource(caches, kind),
  ]
}

/** A workload waits while objects of others have its names; the deletion of such an object wakes it. */
function freedNames(caches: OperatorCaches, kind: ProxyKind | 'VirtualMCPServer', workloads: Workloads): Source[] {
  const waiting = (object: KubeObject): ObjectKey[] => {
    const { namespace = '', name } = object.metadata
    if (controllerOf(object)?.kind === kind) return [] // its own
    return workloadsThatName(kind, name)
      .map((workload) => ({ namespace, name: workload }))
      .filter((key) => workloads.get(key) !== undefined)
  }
  const gone: Predicate = ({ type }) => type === 'DELETED'
  return [
    ...caches.of(deploymentCache).mapped(waiting, gone),
    ...caches.of(serviceCache).mapped(waiting, gone),
    ...caches.of(configMapCache).mapped(waiting, gone),
    ...caches.of(serviceAccountCache).mapped(waiting, gone),
    ...caches.of(roleCache).mapped(waiting, gone),
    ...caches.of(roleBindingCache).mapped(waiting, gone),
    ...caches.of(networkPolicyCache).mapped(waiting, gone),
  ]
}
