import type { StatefulSet } from '../workload/workload-kinds.ts'

/** Settings of a StatefulSet, with the server's defaults. */
export interface StatefulSetSettings {
  readonly replicas: number
  /** The number in the name of the first pod. */
  readonly start: number
  /** One pod at a time, each only when those before it are available. */
  readonly ordered: boolean
  /** Pods change only when somebody deletes them. */
  readonly onDelete: boolean
  /** Pods below this place keep the old template. */
  readonly partition: number
  readonly minReadySeconds: number
  readonly historyLimit: number
  readonly needsClaims: boolean
}

export function statefulSetSettings({ spec = {} }: StatefulSet): StatefulSetSettings {
  return {
    replicas: spec.replicas ?? 1,
    start: spec.ordinals?.start ?? 0,
    ordered: spec.podManagementPolicy !== 'Parallel',
    onDelete: spec.updateStrategy?.type === 'OnDelete',
    partition: spec.updateStrategy?.rollingUpdate?.partition ?? 0,
    minReadySeconds: spec.minReadySeconds ?? 0,
    historyLimit: spec.revisionHistoryLimit ?? 10,
    needsClaims: (spec.volumeClaimTemplates ?? []).length > 0,
  }
}
