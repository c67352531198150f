import {
  type Conditions,
  type ConditionUpdate,
  done,
  dropFinalizer,
  ensureFinalizer,
  hasFinalizer,
  type KubeObject,
  type ObjectKey,
  type Outcome,
  type ReconcileContext,
  type ResourceType,
  requeueAfter,
  writeStatus,
} from '@thv/kube'
import type { KindCache } from '../../caches/kind-cache.ts'
import { transitionEvents } from '../../deployment/status/conditions.ts'
import type { Env } from '../../environment.ts'
import type { References } from '../../references/references.ts'
import { referencingWorkloads } from './referencing-workloads.ts'
import { type ConfigObject, type ConfigObjectStatus, conditionsOf, configObjectStatus, DELETION_BLOCKED } from './status.ts'

/** One of the kinds that workloads reference and that hold nothing but configuration. */
export interface ConfigObjectKind<T extends KubeObject> {
  readonly type: ResourceType<T>
  readonly finalizer: string
  readonly references: keyof References
  readonly cache: Pick<KindCache<T>, 'get'>
  /** Conditions of its own whose True is the bad news. */
  readonly warnsWhenTrue?: readonly string[]
  /** Pure: what is to be said of the object as it is. */
  judge(object: T): { configHash: string; conditions: readonly ConditionUpdate[]; absent?: readonly string[] }
}

/** The watches wake it as soon as a reference goes; this is for the case that one fails. */
const BLOCKED_RECHECK = '30s'

/**
 * Says whether the object is usable and who uses it, and holds its deletion while somebody does. Whether it is valid does not matter
 * for its deletion.
 */
export async function reconcileConfigObject<T extends ConfigObject>(
  key: ObjectKey,
  { env, context, kind }: { env: Env; context: ReconcileContext; kind: ConfigObjectKind<T> },
): Promise<Outcome> {
  const { type, finalizer } = kind
  const { signal } = context
  const cached = kind.cache.get(key)
  if (cached === undefined) return done
  const workloads = referencingWorkloads(env.caches, kind.references, key)

  const isDeleting = cached.metadata.deletionTimestamp !== undefined
  if (isDeleting && (workloads.length === 0 || !hasFinalizer(cached, finalizer))) {
    await dropFinalizer(env.client, { type, object: cached, name: finalizer }, { signal, clock: env.clock })
    return done
  }
  const object = await ensureFinalizer(env.client, { type, object: cached, name: finalizer }, { signal, clock: env.clock })
  if (object === undefined) return done

  let before: Conditions | undefined
  let after: ConfigObjectStatus | undefined
  const write = await writeStatus(
    env.client,
    { type, key, cached: object },
    {
      mutate(current) {
        before = conditionsOf(current)
        after = configObjectStatus(current, { ...kind.judge(current), workloads, now: env.clock.now() })
        return after
      },
      signal,
      clock: env.clock,
    },
  )
  if (write.written && write.object !== undefined && after !== undefined) {
    const warnsWhenTrue = new Set([DELETION_BLOCKED, ...(kind.warnsWhenTrue ?? [])])
    for (const event of transitionEvents(before, after.conditions, { warnsWhenTrue })) env.events.record(write.object, event)
  }
  return isDeleting ? requeueAfter(BLOCKED_RECHECK) : done
}
