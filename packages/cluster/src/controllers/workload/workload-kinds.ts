import type { KubeObject, LabelSelector, ObjectMeta, Pod, ResourceType } from '@thv/kube'

/**
 * The kinds that the workload controllers read and write, with the members that they know. Numbers that the server fills in may be
 * absent all the same: an older server, or a mirror of one, may not have done so.
 */

export interface PodTemplate {
  metadata?: Partial<ObjectMeta>
  spec?: NonNullable<Pod['spec']>
}

/** A number, or a share such as `25%`. */
export type NumberOrPercent = number | string

export interface WorkloadCondition {
  type: string
  status: string
  reason?: string
  message?: string
  lastUpdateTime?: string
  lastTransitionTime?: string
}

export interface Deployment extends KubeObject {
  spec?: {
    replicas?: number
    selector?: LabelSelector
    template?: PodTemplate
    strategy?: { type?: string; rollingUpdate?: { maxSurge?: NumberOrPercent; maxUnavailable?: NumberOrPercent } | null }
    minReadySeconds?: number
    revisionHistoryLimit?: number
    progressDeadlineSeconds?: number
    paused?: boolean
  }
  status?: DeploymentStatus
}

export interface DeploymentStatus {
  observedGeneration?: number
  replicas?: number
  updatedReplicas?: number
  readyReplicas?: number
  availableReplicas?: number
  unavailableReplicas?: number
  conditions?: WorkloadCondition[]
  collisionCount?: number
}

export interface ReplicaSet extends KubeObject {
  spec?: { replicas?: number; minReadySeconds?: number; selector?: LabelSelector; template?: PodTemplate }
  status?: ReplicaSetStatus
}

export interface ReplicationController extends KubeObject {
  spec?: { replicas?: number; minReadySeconds?: number; selector?: Record<string, string>; template?: PodTemplate }
  status?: ReplicaSetStatus
}

/** Either kind that keeps a number of equal pods. */
export type ReplicaOwner = ReplicaSet | ReplicationController

export interface ReplicaSetStatus {
  replicas: number
  fullyLabeledReplicas?: number
  readyReplicas?: number
  availableReplicas?: number
  observedGeneration?: number
  conditions?: WorkloadCondition[]
}

export interface StatefulSet extends KubeObject {
  spec?: {
    replicas?: number
    selector?: LabelSelector
    template?: PodTemplate
    serviceName?: string
    podManagementPolicy?: string
    updateStrategy?: { type?: string; rollingUpdate?: { partition?: number } | null }
    revisionHistoryLimit?: number
    minReadySeconds?: number
    volumeClaimTemplates?: KubeObject[]
    ordinals?: { start?: number }
  }
  status?: StatefulSetStatus
}

export interface StatefulSetStatus {
  observedGeneration?: number
  replicas: number
  readyReplicas?: number
  currentReplicas?: number
  updatedReplicas?: number
  availableReplicas?: number
  currentRevision?: string
  updateRevision?: string
  collisionCount?: number
  conditions?: WorkloadCondition[]
}

/** A former template of a StatefulSet. */
export interface ControllerRevision extends KubeObject {
  revision: number
  data?: { spec?: { template?: PodTemplate & { $patch?: string } } }
}

/** Any kind that makes pods from a template. */
export type Workload = Deployment | ReplicaSet | ReplicationController | StatefulSet

export const deployments: ResourceType<Deployment> = apps('Deployment', 'deployments')
export const replicaSets: ResourceType<ReplicaSet> = apps('ReplicaSet', 'replicasets')
export const replicationControllers: ResourceType<ReplicationController> = {
  group: '',
  version: 'v1',
  kind: 'ReplicationController',
  plural: 'replicationcontrollers',
  namespaced: true,
}
export const statefulSets: ResourceType<StatefulSet> = apps('StatefulSet', 'statefulsets')
export const controllerRevisions: ResourceType<ControllerRevision> = apps('ControllerRevision', 'controllerrevisions')

function apps<T extends KubeObject>(kind: string, plural: string): ResourceType<T> {
  return { group: 'apps', version: 'v1', kind, plural, namespaced: true }
}
