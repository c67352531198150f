import type { Pod } from '@thv/kube'
import { apiTime } from '../workload/api-time.ts'
import { isAvailable, isReady } from '../workload/pod-state.ts'
import type { ReplicaOwner, ReplicaSetStatus, WorkloadCondition } from '../workload/workload-kinds.ts'
import { zeroIsAbsent } from '../workload/zero-is-absent.ts'

export interface ReplicaSetObservation {
  /** As it was when its pods were counted. */
  readonly set: ReplicaOwner
  readonly active: readonly Pod[]
  /** Why pods could not be created or deleted. */
  readonly failure: string | undefined
  readonly now: number
}

/** `current` is the object that the status is written to, which may be newer than the one that was observed. */
export function replicaSetStatus(current: ReplicaOwner, { set, active, failure, now }: ReplicaSetObservation): ReplicaSetStatus {
  const templateLabels = Object.entries(set.spec?.template?.metadata?.labels ?? {})
  const minReadySeconds = set.spec?.minReadySeconds ?? 0
  const counts = zeroIsAbsent({
    fullyLabeledReplicas: count(active, ({ metadata }) => templateLabels.every(([key, value]) => metadata.labels?.[key] === value)),
    readyReplicas: count(active, isReady),
    availableReplicas: count(active, (pod) => isAvailable(pod, minReadySeconds, now)),
    observedGeneration: set.metadata.generation ?? 0,
    conditions: conditionsOf(current, { set, active, failure, now }),
  })
  return { replicas: active.length, ...counts }
}

/** The first failure stays until there is none: its message does not follow each try. */
function conditionsOf(current: ReplicaOwner, { set, active, failure, now }: ReplicaSetObservation): WorkloadCondition[] {
  const conditions = current.status?.conditions ?? []
  const others = conditions.filter(({ type }) => type !== 'ReplicaFailure')
  if (failure === undefined) return others
  if (others.length < conditions.length) return conditions
  const reason = active.length < (set.spec?.replicas ?? 1) ? 'FailedCreate' : 'FailedDelete'
  return [...others, { type: 'ReplicaFailure', status: 'True', lastTransitionTime: apiTime(now), reason, message: failure }]
}

function count(pods: readonly Pod[], test: (pod: Pod) => boolean): number {
  return pods.filter(test).length
}
