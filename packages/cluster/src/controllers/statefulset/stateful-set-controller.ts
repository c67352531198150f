import {
  type Controller,
  createController,
  done,
  isConflict,
  keyOf,
  type Outcome,
  type Pod,
  pods,
  type ReconcileContext,
  requeueAfter,
  retry,
  watchOwned,
  watchSelf,
  writeStatus,
} from '@thv/kube'
import type { ControllerEnv } from '../controller-env.ts'
import { claim } from '../workload/claim.ts'
import { ownedAndOrphans } from '../workload/owned-index.ts'
import { watchChildren } from '../workload/pod-source.ts'
import { nextAvailable } from '../workload/pod-state.ts'
import { workloadSelector } from '../workload/selector.ts'
import { isNamespaceTerminating, serverMessage } from '../workload/server-message.ts'
import { controllerRevisions, type StatefulSet, statefulSets } from '../workload/workload-kinds.ts'
import { ordinalOf } from './pod-identity.ts'
import { syncRevisions, truncateHistory } from './revision-history.ts'
import { createStatefulPods, StaleCache } from './stateful-pods.ts'
import { statefulSetSettings } from './stateful-set-settings.ts'
import { statefulSetStatus } from './stateful-set-status.ts'
import { placePods, stepStatefulSet } from './stateful-set-step.ts'

/** Keeps numbered pods with names that stay, one after the other, and replaces them when their template changes. */
export function statefulSetController(env: ControllerEnv): Controller {
  const { client, caches, clock } = env
  const sets = caches.of(statefulSets)
  const podCache = caches.of(pods)
  const revisionCache = caches.of(controllerRevisions)

  async function reconcile(set: StatefulSet, { signal }: ReconcileContext): Promise<Outcome> {
    const selector = workloadSelector(set.spec?.selector)
    if (selector === undefined) return done
    const claims = { client, owner: set, ownerType: statefulSets, signal }
    const matching = ownedAndOrphans(revisionCache.store, set).filter(({ metadata }) => selector.matches(metadata.labels))
    const known = await claim(matching, { ...claims, type: controllerRevisions, matches: () => true })
    const isMember = (pod: Pod) => selector.matches(pod.metadata.labels) && ordinalOf(set, pod) !== undefined
    const members = await claim(ownedAndOrphans(podCache.store, set), { ...claims, type: pods, matches: isMember })

    const settings = statefulSetSettings(set)
    const revisions = await syncRevisions(set, known, { client, signal })
    const placed = placePods(set, members, { settings, revisions })
    const now = clock.now()
    let deleted = 0
    let failure: unknown
    if (set.metadata.deletionTimestamp === undefined) {
      const actions = createStatefulPods(set, env, signal)
      try {
        deleted = await stepStatefulSet(set, placed, { settings, revisions, actions, now })
      } catch (error) {
        failure = error // the status is written all the same
      }
    }
    const mutate = () => statefulSetStatus(set, { pods: members, revisions, settings, deleted, now })
    await writeStatus(client, { type: statefulSets, key: keyOf(set), cached: set }, { mutate, clock, signal })
    await truncateHistory(known, { revisions, pods: members, limit: settings.historyLimit }, { client, signal })
    if (failure !== undefined) return failed(failure)
    const next = nextAvailable(members, settings.minReadySeconds, now)
    return next === undefined ? done : requeueAfter(next)
  }

  return createController({
    name: 'statefulset',
    concurrency: 5,
    clock,
    onError: env.onError,
    queue: { backoff: { baseMs: 10, maxMs: 60_000 } },
    sources: [
      watchSelf(sets),
      watchChildren(podCache, sets, statefulSets),
      watchOwned(revisionCache, { group: statefulSets.group, ownerKind: statefulSets.kind }),
    ],
    async reconcile(key, context) {
      const set = sets.store.get(key)
      if (set === undefined) return done
      try {
        return await reconcile(set, context)
      } catch (error) {
        if (isConflict(error)) return retry('the cache was behind')
        if (isNamespaceTerminating(error)) return done
        throw error
      }
    },
  })
}

function failed(error: unknown): Outcome {
  if (isNamespaceTerminating(error)) return done
  return retry(error instanceof StaleCache ? error.message : serverMessage(error))
}
