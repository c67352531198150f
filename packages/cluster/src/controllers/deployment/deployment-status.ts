import type { Deployment, DeploymentStatus, ReplicaSet } from '../workload/workload-kinds.ts'
import { zeroIsAbsent } from '../workload/zero-is-absent.ts'
import { type Conditions, conditionOf, type NewCondition, withCondition, withoutCondition, withRefreshed } from './deployment-conditions.ts'
import { availableOf, type DeploymentSettings, sizeOf, sum } from './deployment-settings.ts'
import type { Sets } from './proportional-scale.ts'

/** Conditions and collisions as they are after what was done; everything else is counted. */
export interface StatusInput {
  readonly deployment: Deployment
  readonly settings: DeploymentSettings
  readonly sets: Sets
  readonly conditions: Conditions
  readonly collisionCount: number | undefined
  readonly now: number
}

/** Counts and availability: all that can be said of a Deployment that is paused, being scaled or deleted. */
export function countedStatus({ deployment, settings, sets, conditions, collisionCount, now }: StatusInput): DeploymentStatus {
  const all = [...sets.old, ...(sets.newest ? [sets.newest] : [])]
  const available = sum(all, availableOf)
  const enough = available >= settings.replicas - settings.maxUnavailable
  const status = zeroIsAbsent({
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: sum(all, replicasOf),
    updatedReplicas: sets.newest ? replicasOf(sets.newest) : 0,
    readyReplicas: sum(all, (set) => set.status?.readyReplicas ?? 0),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, sum(all, sizeOf) - available),
    conditions: [...withCondition(conditions, enough ? AVAILABLE : UNAVAILABLE, now)],
  })
  // 0 is not absent here: it says that there was a collision once.
  return { ...status, ...(collisionCount === undefined ? {} : { collisionCount }) }
}

/** With the progress of the rollout and the failures of its sets. */
export function rolloutStatus(input: StatusInput): DeploymentStatus {
  const { sets, now } = input
  const status = countedStatus(input)
  const progress = progressConditions(input, status)
  const failure = failureOf(sets)
  return { ...status, conditions: [...(failure ? withCondition(progress, failure, now) : withoutCondition(progress, 'ReplicaFailure'))] }
}

/** All wanted pods are of the newest template and available, and no others are there. */
export function isComplete({ metadata }: Deployment, { replicas }: DeploymentSettings, status: DeploymentStatus): boolean {
  return (
    (status.updatedReplicas ?? 0) === replicas &&
    (status.replicas ?? 0) === replicas &&
    (status.availableReplicas ?? 0) === replicas &&
    (status.observedGeneration ?? 0) >= (metadata.generation ?? 0)
  )
}

function progressConditions(input: StatusInput, status: DeploymentStatus): Conditions {
  const { deployment, settings, sets, now } = input
  const conditions = status.conditions ?? []
  const { progressDeadlineSeconds } = settings
  if (progressDeadlineSeconds === undefined) return withoutCondition(conditions, 'Progressing')
  const current = conditionOf(conditions, 'Progressing')
  const settled = (status.replicas ?? 0) === (status.updatedReplicas ?? 0) && current?.reason === 'NewReplicaSetAvailable'
  const who = sets.newest ? `ReplicaSet "${sets.newest.metadata.name}"` : `Deployment "${deployment.metadata.name}"`
  const available = progressing('True', 'NewReplicaSetAvailable', `${who} has successfully progressed.`)
  if (settled) {
    // A condition about an earlier set, where nothing could be written between the two, is corrected.
    const saysSo = current.message === available.message || (status.replicas ?? 0) === 0
    return saysSo || !isComplete(deployment, settings, status) ? conditions : withRefreshed(conditions, available, now)
  }
  if (isComplete(deployment, settings, status)) return withCondition(conditions, available, now)
  if (hasProgressed(deployment.status ?? {}, status))
    return withRefreshed(conditions, progressing('True', 'ReplicaSetUpdated', `${who} is progressing.`), now)
  if (current !== undefined && isOverdue(current, progressDeadlineSeconds, now))
    return withCondition(conditions, progressing('False', 'ProgressDeadlineExceeded', `${who} has timed out progressing.`), now)
  return conditions
}

/** More new pods, fewer old ones, or more that are ready or available. */
function hasProgressed(before: DeploymentStatus, now: DeploymentStatus): boolean {
  const old = ({ replicas = 0, updatedReplicas = 0 }: DeploymentStatus) => replicas - updatedReplicas
  return (
    (now.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) ||
    old(now) < old(before) ||
    (now.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (now.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  )
}

function isOverdue(current: { reason?: string; lastUpdateTime?: string }, seconds: number, now: number): boolean {
  if (current.reason === 'NewReplicaSetAvailable') return false
  if (current.reason === 'ProgressDeadlineExceeded') return true
  return Date.parse(current.lastUpdateTime ?? '') + seconds * 1_000 < now
}

/** When to look again whether the deadline has passed; undefined when it cannot. */
export function progressCheckAfter(
  deployment: Deployment,
  settings: DeploymentSettings,
  { status, now }: { status: DeploymentStatus; now: number },
): number | undefined {
  const current = conditionOf(status.conditions ?? [], 'Progressing')
  if (settings.progressDeadlineSeconds === undefined || current === undefined || settings.paused) return undefined
  if (current.reason === 'ProgressDeadlineExceeded' || isComplete(deployment, settings, status)) return undefined
  const left = Date.parse(current.lastUpdateTime ?? '') + settings.progressDeadlineSeconds * 1_000 - now
  return Number.isNaN(left) ? undefined : Math.max(0, left) + 1_000 // times on the wire are whole seconds
}

/** Of the newest set, or else of any. */
function failureOf({ newest, old }: Sets): NewCondition | undefined {
  for (const set of [...(newest ? [newest] : []), ...old]) {
    const found = set.status?.conditions?.find(({ type }) => type === 'ReplicaFailure')
    if (found === undefined) continue
    const { reason = '', message = '' } = found
    return { type: 'ReplicaFailure', status: found.status === 'True' ? 'True' : 'False', reason, message }
  }
  return undefined
}

export function progressing(status: NewCondition['status'], reason: string, message: string): NewCondition {
  return { type: 'Progressing', status, reason, message }
}

const AVAILABLE: NewCondition = {
  type: 'Available',
  status: 'True',
  reason: 'MinimumReplicasAvailable',
  message: 'Deployment has minimum availability.',
}
const UNAVAILABLE: NewCondition = {
  type: 'Available',
  status: 'False',
  reason: 'MinimumReplicasUnavailable',
  message: 'Deployment does not have minimum availability.',
}

function replicasOf(set: ReplicaSet): number {
  return set.status?.replicas ?? 0
}
