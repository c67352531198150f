import { type Conditions, type KubeObject, keyOf, type ResourceType, writeStatus } from '@thv/kube'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { Env } from '../../environment.ts'
import { nextConditions } from './conditions.ts'

type WithStatus = KubeObject & { status?: { conditions?: readonly unknown[] | undefined } | undefined }

const MESSAGE = 'It is being deleted: what its finalizers wait for is still under way.'

/** Reports the deletion of a workload while a finalizer of others keeps it. */
export async function tellTermination<T extends KubeObject>(
  object: T,
  { type, env, signal }: { type: ResourceType<T>; env: Pick<Env, 'client' | 'clock'>; signal: AbortSignal },
): Promise<void> {
  await writeStatus(
    env.client,
    { type, key: keyOf(object), cached: object },
    { mutate: (current) => terminatingStatus(current, env.clock.now()), signal, clock: env.clock },
  )
}

function terminatingStatus(current: WithStatus, now: number): object | undefined {
  const { finalizers = [], generation, uid, deletionTimestamp } = current.metadata
  if (finalizers.length === 0 || uid === undefined || deletionTimestamp === undefined) return undefined
  const { status = {} } = current
  const ready = { type: WorkloadCondition.Ready, status: 'False', reason: WorkloadReason.NotReady, message: MESSAGE } as const
  return {
    ...status,
    phase: 'Terminating',
    message: MESSAGE,
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: [...nextConditions(status.conditions as Conditions | undefined, { set: [ready] }, { generation, now })],
  }
}
