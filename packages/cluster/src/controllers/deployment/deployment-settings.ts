import type { Deployment, NumberOrPercent, ReplicaSet } from '../workload/workload-kinds.ts'

/** Settings of a Deployment, with the server's defaults and its shares as numbers of pods. */
export interface DeploymentSettings {
  readonly replicas: number
  readonly recreate: boolean
  readonly paused: boolean
  /** Pods that may be there beyond the wanted number; 0 for Recreate. */
  readonly maxSurge: number
  /** Pods that may be missing while rolling; 0 for Recreate. */
  readonly maxUnavailable: number
  readonly minReadySeconds: number
  /** Undefined: all are kept. */
  readonly historyLimit: number | undefined
  /** Undefined: progress is not watched. */
  readonly progressDeadlineSeconds: number | undefined
}

const NO_LIMIT = 2 ** 31 - 1

export function deploymentSettings({ spec = {} }: Deployment): DeploymentSettings {
  const replicas = spec.replicas ?? 1
  const recreate = spec.strategy?.type === 'Recreate'
  return {
    replicas,
    recreate,
    paused: spec.paused ?? false,
    ...(recreate ? { maxSurge: 0, maxUnavailable: 0 } : fences(spec.strategy?.rollingUpdate ?? {}, replicas)),
    minReadySeconds: spec.minReadySeconds ?? 0,
    historyLimit: limit(spec.revisionHistoryLimit ?? 10),
    progressDeadlineSeconds: limit(spec.progressDeadlineSeconds ?? 600),
  }
}

/** A surge is rounded up and what may be missing down; when nothing at all could move, one pod may be missing. */
function fences(update: { maxSurge?: NumberOrPercent; maxUnavailable?: NumberOrPercent }, replicas: number) {
  const maxSurge = scaled(update.maxSurge ?? '25%', replicas, Math.ceil)
  const rounded = scaled(update.maxUnavailable ?? '25%', replicas, Math.floor)
  return { maxSurge, maxUnavailable: Math.min(maxSurge === 0 && rounded === 0 ? 1 : rounded, replicas) }
}

function scaled(value: NumberOrPercent, of: number, round: (share: number) => number): number {
  if (typeof value === 'number') return value
  const percent = /^([0-9]+)%$/.exec(value)?.[1]
  return percent === undefined ? 0 : round((Number(percent) * of) / 100)
}

function limit(value: number): number | undefined {
  return value === NO_LIMIT ? undefined : value
}

/** Number of pods for the set. */
export function sizeOf(set: ReplicaSet): number {
  return set.spec?.replicas ?? 1
}

export function sum(sets: readonly ReplicaSet[], count: (set: ReplicaSet) => number): number {
  return sets.reduce((total, set) => total + count(set), 0)
}

export function availableOf(set: ReplicaSet): number {
  return set.status?.availableReplicas ?? 0
}
