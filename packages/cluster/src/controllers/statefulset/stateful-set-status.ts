import type { Pod } from '@thv/kube'
import { isAvailable, isReady, isTerminating } from '../workload/pod-state.ts'
import type { StatefulSet, StatefulSetStatus } from '../workload/workload-kinds.ts'
import { zeroIsAbsent } from '../workload/zero-is-absent.ts'
import { podRevision } from './pod-identity.ts'
import type { Revisions } from './revision-history.ts'
import type { StatefulSetSettings } from './stateful-set-settings.ts'

export interface StatefulSetObservation {
  readonly pods: readonly Pod[]
  readonly revisions: Revisions
  readonly settings: StatefulSetSettings
  /** Pods of the old revision that were deleted after they were counted. */
  readonly deleted: number
  readonly now: number
}

export function statefulSetStatus(set: StatefulSet, observation: StatefulSetObservation): StatefulSetStatus {
  const { pods, revisions, settings, deleted, now } = observation
  const { current, update, collisionCount } = revisions
  const there = pods.filter(isCreated)
  const ready = there.filter(isRunningAndReady)
  const staying = there.filter((pod) => !isTerminating(pod))
  const replicas = there.length
  const updatedReplicas = staying.filter((pod) => podRevision(pod) === update.metadata.name).length
  const currentReplicas = staying.filter((pod) => podRevision(pod) === current.metadata.name).length - deleted
  const through =
    !settings.onDelete && updatedReplicas === settings.replicas && ready.length === settings.replicas && replicas === settings.replicas
  const counts = zeroIsAbsent({
    observedGeneration: set.metadata.generation ?? 0,
    readyReplicas: ready.length,
    currentReplicas: through ? updatedReplicas : currentReplicas,
    updatedReplicas,
    currentRevision: (through ? update : current).metadata.name,
    updateRevision: update.metadata.name,
  })
  return {
    ...counts,
    replicas,
    availableReplicas: ready.filter((pod) => isAvailable(pod, settings.minReadySeconds, now)).length,
    collisionCount,
  }
}

/** A pod that is only planned has no status. */
export function isCreated({ status }: Pod): boolean {
  return status?.phase !== undefined && status.phase !== ''
}

export function isRunningAndReady(pod: Pod): boolean {
  return pod.status?.phase === 'Running' && isReady(pod)
}
