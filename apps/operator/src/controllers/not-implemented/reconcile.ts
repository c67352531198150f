import { type Conditions, done, type KubeObject, type ObjectKey, type Outcome, type ReconcileContext, writeStatus } from '@thv/kube'
import { NOT_IMPLEMENTED } from '@thv/resources/schema/kind-definition'
import type { CacheSpec } from '../../caches/cache-spec.ts'
import { nextConditions, transitionEvents } from '../../deployment/status/conditions.ts'
import type { Env } from '../../environment.ts'

interface UnservedStatus {
  readonly observedGeneration?: number
  readonly conditions: Conditions
}

/** Tells the author of an object that nothing runs for its kind yet. */
export function reconcileNotImplemented(cache: CacheSpec) {
  const { type } = cache
  return async (key: ObjectKey, env: Env, { signal }: ReconcileContext): Promise<Outcome> => {
    const object = env.caches.of(cache).get(key)
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return done
    let before: Conditions | undefined
    let after: UnservedStatus | undefined
    const { written, object: latest } = await writeStatus(
      env.client,
      { type, key, cached: object },
      {
        mutate(current) {
          before = conditionsOf(current)
          after = unservedStatus(current, { kind: type.kind, now: env.clock.now() })
          return after
        },
        signal,
        clock: env.clock,
      },
    )
    if (written && latest !== undefined && after !== undefined)
      for (const event of transitionEvents(before, after.conditions)) env.events.record(latest, event)
    return done
  }
}

/** Pure. */
export function unservedStatus(object: KubeObject, { kind, now }: { kind: string; now: number }): UnservedStatus {
  const { generation } = object.metadata
  const message = `${kind} is not implemented in this version of the operator: nothing runs for this object. Delete it, or keep it for a version that has the kind`
  const ready = { type: 'Ready', status: 'False', reason: NOT_IMPLEMENTED, message } as const
  return {
    ...(object as KubeObject & { status?: object }).status,
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: nextConditions(conditionsOf(object), { set: [ready] }, { generation, now }),
  }
}

function conditionsOf(object: KubeObject): Conditions | undefined {
  return (object as KubeObject & { status?: { conditions?: Conditions } }).status?.conditions
}
