import { type Conditions, type KubeObject, keyOf, type ResourceType, writeStatus } from '@thv/kube'
import { WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { Env } from '../../environment.ts'
import { nextConditions } from './conditions.ts'

/** The writer, in messages of `refusedWrite`. */
export const OPERATOR = 'the operator'

type WithStatus = KubeObject & { status?: { conditions?: readonly unknown[] | undefined; phase?: string } | undefined }

export interface RefusedWriteReport {
  readonly type: ResourceType
  /** The condition that is False meanwhile. */
  readonly condition: string
  /** From `refusedWrite`. */
  readonly message: string
  readonly env: Pick<Env, 'client' | 'clock' | 'events'>
  readonly signal: AbortSignal
}

/**
 * Shows a refused write in the status of the resource that it is for. Writes nothing when the status says so already; the next reconcile that
 * works takes it back.
 */
export async function tellRefusedWrite(object: KubeObject, { type, condition, message, env, signal }: RefusedWriteReport): Promise<void> {
  const { written, object: after } = await writeStatus<WithStatus>(
    env.client,
    { type, key: keyOf(object), cached: object },
    { mutate: (current) => refusedStatus(current, { type: condition, message, now: env.clock.now() }), signal, clock: env.clock },
  )
  if (written && after !== undefined) env.events.record(after, { type: 'Warning', reason: WorkloadReason.WriteRefused, note: message })
}

function refusedStatus(
  current: WithStatus,
  { type, message, now }: { readonly type: string; readonly message: string; readonly now: number },
): object | undefined {
  const { generation, deletionTimestamp } = current.metadata
  if (deletionTimestamp !== undefined) return undefined
  const { status = {} } = current
  const update = { type, status: 'False', reason: WorkloadReason.WriteRefused, message } as const
  return {
    ...status,
    ...(type === 'Ready' && { phase: 'Failed', message }),
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: [...nextConditions(status.conditions as Conditions | undefined, { set: [update] }, { generation, now })],
  }
}
