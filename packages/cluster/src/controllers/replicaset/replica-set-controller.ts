import {
  type Controller,
  createController,
  done,
  formatKey,
  isConflict,
  keyOf,
  type Outcome,
  pods,
  type ReconcileContext,
  type ResourceType,
  requeueAfter,
  retry,
  watchSelf,
  writeStatus,
} from '@thv/kube'
import type { ControllerEnv } from '../controller-env.ts'
import { claim } from '../workload/claim.ts'
import { ownedAndOrphans } from '../workload/owned-index.ts'
import { watchChildren } from '../workload/pod-source.ts'
import { isActive, nextAvailable } from '../workload/pod-state.ts'
import { workloadSelector } from '../workload/selector.ts'
import { type ReplicaOwner, replicaSets, replicationControllers } from '../workload/workload-kinds.ts'
import { manageReplicas } from './manage-replicas.ts'
import { createPendingChanges } from './pending-changes.ts'
import { replicaSetStatus } from './replica-set-status.ts'

/** Keeps as many pods as each ReplicaSet wants, and says in its status how they are. */
export function replicaSetController(env: ControllerEnv): Controller {
  return replicaController(env, 'replicaset', replicaSets)
}

/** The same for ReplicationControllers. */
export function replicationControllerController(env: ControllerEnv): Controller {
  return replicaController(env, 'replicationcontroller', replicationControllers)
}

function replicaController<T extends ReplicaOwner>(env: ControllerEnv, name: string, type: ResourceType<T>): Controller {
  const { client, caches, clock } = env
  const sets = caches.of(type)
  const podCache = caches.of(pods)
  const pending = createPendingChanges(podCache, clock)

  async function reconcile(set: T, { signal }: ReconcileContext): Promise<Outcome> {
    const key = keyOf(set)
    const selector = workloadSelector(set.spec?.selector)
    if (selector === undefined) return done
    const settled = pending.settled(formatKey(key))
    const candidates = ownedAndOrphans(podCache.store, set).filter(isActive)
    const matches = ({ metadata }: { metadata: { labels?: Record<string, string> } }) => selector.matches(metadata.labels)
    const active = await claim(candidates, { client, owner: set, ownerType: type, type: pods, matches, signal })
    const failure =
      settled && set.metadata.deletionTimestamp === undefined
        ? await manageReplicas(set, active, { env, type, pending, signal })
        : undefined
    const now = clock.now()
    await writeStatus(
      client,
      { type, key, cached: set },
      { mutate: (current) => replicaSetStatus(current, { set, active, failure, now }), maxAttempts: 2, clock, signal },
    )
    if (failure !== undefined) return retry(failure)
    const next = nextAvailable(active, set.spec?.minReadySeconds ?? 0, now)
    if (next !== undefined) return requeueAfter(next)
    // The event that settles it comes; this is for a watch that broke.
    return settled && pending.settled(formatKey(key)) ? done : requeueAfter('30s')
  }

  return createController({
    name,
    concurrency: 5,
    clock,
    onError: env.onError,
    queue: { backoff: { baseMs: 10, maxMs: 60_000 } },
    sources: [watchSelf(sets), watchChildren(podCache, sets, type)],
    async reconcile(key, context) {
      const set = sets.store.get(key)
      if (set === undefined) {
        pending.forget(formatKey(key))
        return done
      }
      try {
        return await reconcile(set, context)
      } catch (error) {
        if (isConflict(error)) return retry('the cache was behind')
        throw error
      }
    },
  })
}
