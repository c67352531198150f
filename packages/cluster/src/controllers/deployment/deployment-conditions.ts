import { apiTime } from '../workload/api-time.ts'
import type { WorkloadCondition } from '../workload/workload-kinds.ts'

export type Conditions = readonly WorkloadCondition[]

export interface NewCondition {
  readonly type: 'Available' | 'Progressing' | 'ReplicaFailure'
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
}

export function conditionOf(conditions: Conditions, type: NewCondition['type']): WorkloadCondition | undefined {
  return conditions.find((condition) => condition.type === type)
}

/** A condition that says the same for the same reason stays as it is, words and times included; a changed one goes to the end. */
export function withCondition(conditions: Conditions, condition: NewCondition, now: number): Conditions {
  const current = conditionOf(conditions, condition.type)
  if (current?.status === condition.status && current.reason === condition.reason) return conditions
  return [...withoutCondition(conditions, condition.type), dated(condition, current, now)]
}

/** As `withCondition`, but the time of the last update moves even if the condition says the same. */
export function withRefreshed(conditions: Conditions, condition: NewCondition, now: number): Conditions {
  return [...withoutCondition(conditions, condition.type), dated(condition, conditionOf(conditions, condition.type), now)]
}

export function withoutCondition(conditions: Conditions, type: NewCondition['type']): Conditions {
  return conditions.some((condition) => condition.type === type) ? conditions.filter((condition) => condition.type !== type) : conditions
}

function dated(condition: NewCondition, current: WorkloadCondition | undefined, now: number): WorkloadCondition {
  const time = apiTime(now)
  const since = current?.status === condition.status ? current.lastTransitionTime : undefined
  return { ...condition, lastUpdateTime: time, lastTransitionTime: since ?? time }
}
