import type { ReplicaSet } from '../workload/workload-kinds.ts'
import { sizeOf } from './deployment-settings.ts'
import { revisionOf } from './rollout-annotations.ts'

/** Old ones first; the names decide between those of one second. */
export function byAge(a: ReplicaSet, b: ReplicaSet): number {
  const [first, second] = [a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? '']
  if (first !== second) return first < second ? -1 : 1
  return a.metadata.name < b.metadata.name ? -1 : 1
}

export function byRevision(a: ReplicaSet, b: ReplicaSet): number {
  const [first, second] = [revisionOf(a), revisionOf(b)]
  return first === undefined || second === undefined || first === second ? byAge(a, b) : first - second
}

export function largestThenOldest(a: ReplicaSet, b: ReplicaSet): number {
  return sizeOf(b) - sizeOf(a) || byAge(a, b)
}

export function largestThenYoungest(a: ReplicaSet, b: ReplicaSet): number {
  return sizeOf(b) - sizeOf(a) || byAge(b, a)
}
