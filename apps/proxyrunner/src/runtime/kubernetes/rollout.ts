import type { Pod, StatefulSet } from '@thv/kube'
import { podProblem } from './pod-choice.ts'

export interface RolloutInput {
  readonly statefulSet: StatefulSet | undefined
  readonly pods: readonly Pod[]
  /** `metadata.generation` after our last apply: what the cache shows of before that counts for nothing. */
  readonly appliedGeneration: number
  /** Whether what we applied was once all there, or is not for us to wait for. */
  readonly wasComplete: boolean
}

export interface Rollout {
  readonly ready: boolean
  readonly complete: boolean
  readonly message: string
}

/**
 * Reads a rollout from the status of the StatefulSet. Ready means at first that all pods are those we asked for; from then on that at
 * least one answers: a proxy that turned unready with each pod that restarts would only make it worse.
 */
export function rolloutOf({ statefulSet, pods, appliedGeneration, wasComplete }: RolloutInput): Rollout {
  if (statefulSet === undefined) return { ready: false, complete: false, message: 'the StatefulSet does not exist yet' }
  const { metadata, spec, status } = statefulSet
  const wanted = spec?.replicas ?? 1
  const generation = metadata.generation ?? 0
  const readyPods = status?.readyReplicas ?? 0
  if (wanted === 0) return { ready: false, complete: false, message: 'the StatefulSet is scaled to 0 pods' }

  const isObserved = generation >= appliedGeneration && (status?.observedGeneration ?? 0) >= generation
  const complete = isObserved && status?.updatedReplicas === wanted && readyPods === wanted
  const ready = complete || (wasComplete && readyPods > 0)
  if (ready) return { ready, complete, message: `${readyPods} of ${wanted} pods ready` }
  const problem = podProblem(pods)
  const counts = isObserved
    ? `${readyPods} of ${wanted} pods ready, ${status?.updatedReplicas ?? 0} up to date`
    : 'the change has not been taken up yet'
  return { ready, complete, message: problem === undefined ? counts : `${counts}; ${problem}` }
}
