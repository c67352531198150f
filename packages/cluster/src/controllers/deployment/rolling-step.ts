import type { ReplicaSet } from '../workload/workload-kinds.ts'
import { availableOf, type DeploymentSettings, sizeOf, sum } from './deployment-settings.ts'
import { byAge } from './replica-set-order.ts'

/** Sets of one Deployment. The newest is the one whose template the Deployment has now. */
export interface Rollout {
  readonly newest: ReplicaSet
  readonly old: readonly ReplicaSet[]
}

export interface Resize {
  readonly set: ReplicaSet
  readonly to: number
}

/** The next step of a rolling update: the newest set grows, or else old ones shrink. Nothing when pods must get ready first. */
export function rollingStep({ newest, old }: Rollout, settings: DeploymentSettings): Resize[] {
  const to = newestSize(newest, old, settings)
  return to === sizeOf(newest) ? shrinkOld({ newest, old }, settings) : [{ set: newest, to }]
}

/** As large as the surge allows. */
export function newestSize(newest: ReplicaSet, old: readonly ReplicaSet[], settings: DeploymentSettings): number {
  const { replicas, recreate, maxSurge } = settings
  const size = sizeOf(newest)
  if (recreate || size > replicas) return replicas
  const room = replicas + maxSurge - sum([newest, ...old], sizeOf)
  return room <= 0 ? size : size + Math.min(room, replicas - size)
}

/**
 * Pods that are not available go first, as they are of no use to anybody; then as many available ones as the newest set has made up
 * for. Pods of the newest set that are not available count as missing, so a bad template stops the rollout.
 */
function shrinkOld({ newest, old }: Rollout, { replicas, maxUnavailable }: DeploymentSettings): Resize[] {
  const active = old.filter((set) => sizeOf(set) > 0).sort(byAge)
  const minAvailable = replicas - maxUnavailable
  const newestMissing = sizeOf(newest) - availableOf(newest)
  const most = sum([newest, ...active], sizeOf) - minAvailable - newestMissing
  // A set that shrinks still counts pods that are about to go; no set may shrink on their account.
  const shrinking = active.some((set) => availableOf(set) > sizeOf(set))
  if (active.length === 0 || most <= 0 || shrinking) return []
  const sizes = new Map(active.map((set) => [set, sizeOf(set)]))
  const resizes: Resize[] = []

  function shrink(set: ReplicaSet, by: number): number {
    if (by <= 0) return 0
    const to = (sizes.get(set) ?? 0) - by
    sizes.set(set, to)
    resizes.push({ set, to })
    return by
  }

  let unhealthy = most
  for (const set of active) unhealthy -= shrink(set, Math.min(unhealthy, sizeOf(set) - availableOf(set)))
  let healthy = sum([newest, ...active], availableOf) - minAvailable
  for (const set of active) healthy -= shrink(set, Math.min(healthy, sizes.get(set) ?? 0))
  return resizes
}
