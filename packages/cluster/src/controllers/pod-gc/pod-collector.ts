import {
  createController,
  done,
  isConflict,
  isNotFound,
  keyOf,
  nodes,
  type ObjectKey,
  type Outcome,
  type Pod,
  pods,
  type ReconcileContext,
  requeueAfter,
  watchMapped,
  watchSelf,
} from '@thv/kube'
import type { ControllerEnv, RunningController } from '../controller-env.ts'

export interface PodCollectorSettings {
  /** How long a pod's node may be missing before the pod is given up. Default 40 s. */
  readonly lostNodeGraceMs?: number | undefined
}

/** Removes pods that no node will ever end: those of nodes that are gone, and those that were deleted before they had a node. */
export function podCollector(env: ControllerEnv, { lostNodeGraceMs = 40_000 }: PodCollectorSettings = {}): RunningController {
  const { client, caches, clock } = env
  const [podCache, nodeCache] = [caches.of(pods), caches.of(nodes)]
  /** When the node of a pod was first missed, by the pod's uid. */
  const missed = new Map<string, number>()

  async function reconcile(key: ObjectKey, { signal }: ReconcileContext): Promise<Outcome> {
    const pod = podCache.store.get(key)
    if (pod === undefined) return done
    const { uid = '' } = pod.metadata
    const name = pod.spec?.nodeName
    if (!name) {
      if (pod.metadata.deletionTimestamp !== undefined) await remove(pod, signal)
      return done
    }
    if (nodeCache.store.get({ name }) !== undefined) {
      missed.delete(uid)
      return done
    }
    const since = missed.get(uid) ?? clock.monotonic()
    missed.set(uid, since)
    const left = since + lostNodeGraceMs - clock.monotonic()
    if (left > 0) return requeueAfter(left)
    if ((await client.tryGet(nodes, { name }, { signal })) !== undefined) return done // the cache will know
    await fail(pod, signal)
    await remove(pod, signal)
    return done
  }

  /** The reason, for readers of the pod before it goes. */
  async function fail(pod: Pod, signal: AbortSignal): Promise<void> {
    if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') return
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByPodGC',
      message: 'PodGC: node no longer exists',
      lastTransitionTime: new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z'),
    }
    const body = { metadata: { uid: pod.metadata.uid }, status: { phase: 'Failed', conditions: [condition] } }
    await unlessGone(client.patch(pods, keyOf(pod), { kind: 'strategic', body }, { subresource: 'status', signal }))
  }

  async function remove(pod: Pod, signal: AbortSignal): Promise<void> {
    const preconditions = { uid: pod.metadata.uid }
    await unlessGone(client.delete(pods, keyOf(pod), { gracePeriodSeconds: 0, preconditions, signal }))
  }

  return createController({
    name: 'pod-collector',
    reconcile,
    sources: [
      watchSelf(podCache, ({ type, object }) => {
        if (type === 'DELETED') missed.delete(object.metadata.uid ?? '')
        return type !== 'DELETED'
      }),
      watchMapped(
        nodeCache,
        ({ metadata }) =>
          podCache.store
            .list()
            .filter(({ spec }) => spec?.nodeName === metadata.name)
            .map(keyOf),
        ({ type }) => type !== 'MODIFIED',
      ),
    ],
    clock,
    onError: env.onError,
  })
}

async function unlessGone(call: Promise<unknown>): Promise<void> {
  try {
    await call
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error // 409: another one has its name now
  }
}
