import type { Deployment, ReplicaSet } from '../workload/workload-kinds.ts'
import { availableOf, type DeploymentSettings, sizeOf, sum } from './deployment-settings.ts'
import { byAge, largestThenOldest, largestThenYoungest } from './replica-set-order.ts'
import type { Resize } from './rolling-step.ts'
import { desiredReplicas, maxReplicas } from './rollout-annotations.ts'

export interface Sets {
  readonly newest: ReplicaSet | undefined
  readonly old: readonly ReplicaSet[]
}

/** Whether the wanted number of pods was changed since the sets got their sizes. */
export function isScaled({ newest, old }: Sets, { replicas }: DeploymentSettings): boolean {
  return activeOf({ newest, old }).some((set) => (desiredReplicas(set) ?? replicas) !== replicas)
}

/**
 * Sizes after the wanted number was changed, also in the middle of a rollout and while paused. `sized` marks those whose notes about
 * their size must be written again even if it stays.
 */
export function scaleSets(deployment: Deployment, sets: Sets, settings: DeploymentSettings): (Resize & { sized?: boolean })[] {
  const active = activeOf(sets)
  const { replicas, recreate } = settings
  if (active.length <= 1) {
    const only = active[0] ?? sets.newest ?? sets.old.toSorted(byAge).at(-1)
    return only === undefined || sizeOf(only) === replicas ? [] : [{ set: only, to: replicas }]
  }
  if (isSaturated(sets.newest, settings)) return active.filter((set) => set !== sets.newest).map((set) => ({ set, to: 0 }))
  return recreate ? [] : proportions(deployment, active, settings).map((resize) => ({ ...resize, sized: true }))
}

/** Each set gets its share of what is added or taken away, so that a rollout that goes wrong does not go wrong faster. */
function proportions(deployment: Deployment, active: readonly ReplicaSet[], settings: DeploymentSettings): Resize[] {
  const { replicas, maxSurge } = settings
  const change = (replicas > 0 ? replicas + maxSurge : 0) - sum(active, sizeOf)
  const ordered = active.toSorted(change > 0 ? largestThenYoungest : largestThenOldest)
  let left = change
  const resizes = ordered.map((set) => {
    const share = change === 0 ? 0 : within(shareOf(deployment, set, settings), left)
    left -= share
    return { set, to: sizeOf(set) + share }
  })
  return resizes.map(({ set, to }, index) => ({ set, to: index === 0 ? Math.max(0, to + left) : to }))
}

/** Never further than what is left, in its direction. */
function within(share: number, left: number): number {
  if (left === 0) return 0
  return left > 0 ? Math.min(share, left) : Math.max(share, left)
}

function shareOf({ status }: Deployment, set: ReplicaSet, { replicas, maxSurge }: DeploymentSettings): number {
  const size = sizeOf(set)
  if (replicas === 0) return -size
  const before = maxReplicas(set) || (status?.replicas ?? 0)
  return before === 0 ? 0 : Math.round((size * (replicas + maxSurge)) / before) - size
}

/** The newest set has all pods, all are available, and it was sized for that number. */
function isSaturated(newest: ReplicaSet | undefined, { replicas }: DeploymentSettings): boolean {
  if (newest === undefined || desiredReplicas(newest) !== replicas) return false
  return sizeOf(newest) === replicas && availableOf(newest) === replicas
}

function activeOf({ newest, old }: Sets): ReplicaSet[] {
  return [...old, ...(newest ? [newest] : [])].filter((set) => sizeOf(set) > 0)
}
