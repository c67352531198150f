import { type Conditions, type ConditionUpdate, getCondition, type KubeObject, keyOf, type ResourceType, writeStatus } from '@thv/kube'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { Env } from '../../environment.ts'
import { nextConditions } from './conditions.ts'

/** The writer, in messages of `refusedWrite`. */
export const OPERATOR = 'the operator'

type WithStatus = KubeObject & {
  status?: { conditions?: readonly unknown[] | undefined; phase?: string; observedGeneration?: number } | undefined
}

/** Pods that serve clients although the latest spec could not be applied. */
export interface Serving {
  readonly phase: string
  /** Of condition `Ready`. */
  readonly isReady: boolean
  readonly reason: string
  readonly message: string
  /** Members of the status that count pods. */
  readonly counts: Readonly<Record<string, number>>
}

export interface RefusedWriteReport {
  readonly type: ResourceType
  /** The condition that is False meanwhile; `Ready` stays True while pods serve. */
  readonly condition: string
  /** From `refusedWrite`. */
  readonly message: string
  readonly serving: Serving | undefined
  readonly env: Pick<Env, 'client' | 'clock' | 'events'>
  readonly signal: AbortSignal
}

/**
 * Shows a refused write in the status of the resource that it is for. Writes nothing when the status says so already; the next reconcile that
 * works takes it back.
 */
export async function tellRefusedWrite(object: KubeObject, report: RefusedWriteReport): Promise<void> {
  const { type, env, signal, message } = report
  const {
    written,
    before,
    object: after,
  } = await writeStatus<WithStatus>(
    env.client,
    { type, key: keyOf(object), cached: object },
    { mutate: (current) => refusedStatus(current, report), signal, clock: env.clock },
  )
  if (!written || after === undefined || isTold(before ?? object, report)) return
  env.events.record(after, { type: 'Warning', reason: WorkloadReason.WriteRefused, note: message })
}

/** Pods come and go while the answer stays the same. */
function isTold(before: WithStatus, { condition, message }: RefusedWriteReport): boolean {
  const conditions = before.status?.conditions as Conditions | undefined
  const known = getCondition(conditions, condition === WorkloadCondition.Ready ? WorkloadCondition.WriteRefused : condition)
  return known?.reason === WorkloadReason.WriteRefused && known.message === message
}

/**
 * `observedGeneration` stays: only the conditions that are set here have been judged by the latest spec. `Ready` of pods that serve is about the
 * spec that they were made of, so that who waits for it (`kubectl wait`) does not take the latest one for applied.
 */
function refusedStatus(current: WithStatus, { condition, message, serving, env }: RefusedWriteReport): object | undefined {
  const { generation, deletionTimestamp } = current.metadata
  if (deletionTimestamp !== undefined) return undefined
  const { status = {} } = current
  const reason = WorkloadReason.WriteRefused
  const now = env.clock.now()
  const before = status.conditions as Conditions | undefined
  const conditions = (...set: ConditionUpdate[]) => [...nextConditions(before, { set }, { generation, now })]
  if (condition !== WorkloadCondition.Ready)
    return { ...status, conditions: conditions({ type: condition, status: 'False', reason, message }) }
  const refused: ConditionUpdate = { type: WorkloadCondition.WriteRefused, status: 'True', reason, message }
  if (serving === undefined)
    return { ...status, phase: 'Failed', message, conditions: conditions({ type: condition, status: 'False', reason, message }, refused) }
  const { phase, counts, isReady, ...health } = serving
  const ready: ConditionUpdate = { type: condition, status: isReady ? 'True' : 'False', ...health }
  const served = nextConditions(before, { set: [ready] }, { generation: status.observedGeneration, now })
  return {
    ...status,
    ...counts,
    phase,
    message: `${message} What ran before goes on: ${health.message}`,
    conditions: [...nextConditions(served, { set: [refused] }, { generation, now })],
  }
}
