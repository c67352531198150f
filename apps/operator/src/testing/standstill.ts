import { type Deployment, deployments, type KubeClient, type KubeObject, pods, type ReplicaSet, replicaSets } from '@thv/kube'
import { RUNNER_CONTROLLER } from '@thv/runconfig/runner-events'
import { MANAGED_LABEL } from '../caches/cache-shapes.ts'
import { isExportSettled } from '../export/follower-of.ts'
import type { Manager } from '../manager.ts'
import { eventually } from './operator-harness.ts'

/* When a test may look: after all that follows from what it did, and before anything else. Each is waited for itself. */

export interface Watched {
  readonly admin: KubeClient
  readonly manager: Manager
  readonly namespaces: readonly string[]
  /** Whether controllers of Deployments and a scheduler run beside the API server. */
  readonly hasControllers: boolean
}

const CALM_MS = 300

/** Waits until all controllers are idle: the controllers of the cluster are through, the operator has seen it, and has done its part. */
export async function standstill(watched: Watched): Promise<void> {
  let last = ''
  let since = performance.now()
  const isIdle = () => {
    const stats = watched.manager.controllers.map(({ stats: each }) => each)
    const now = stats.map(({ reconciles }) => reconciles).join()
    const isBusy = stats.some(({ depth, active }) => depth > 0 || active > 0) || !isExportSettled(watched.manager.caches)
    if (now !== last || isBusy) since = performance.now()
    last = now
    return performance.now() - since > CALM_MS
  }
  await eventually('the operator has nothing to do', async () => {
    if (!isIdle()) return false
    if (watched.hasControllers) await controllersAreThrough(watched)
    await cachesAreUpToDate(watched)
    return isIdle()
  })
}

/** Waits until the operator knows all that is in the namespaces: its watches are of different speed. */
export async function allSeen(watched: Watched): Promise<void> {
  await eventually('the operator has seen all', async () => {
    await cachesAreUpToDate(watched)
    return true
  })
}

async function cachesAreUpToDate({ admin, manager, namespaces }: Watched): Promise<void> {
  const each = manager.caches.all.flatMap((cache) => namespaces.map((namespace) => ({ cache, namespace })))
  await Promise.all(
    each.map(async ({ cache, namespace }) => {
      const type = cache.reflectors[0]?.type
      if (type === undefined) return
      // Of these the operator watches its own only.
      const labelSelector = ['pods', 'statefulsets'].includes(type.plural) ? `${MANAGED_LABEL}=true` : undefined
      const fieldSelector = type.plural === 'events' ? `reportingController=${RUNNER_CONTROLLER}` : undefined
      const { items } = await admin.list(type, { namespace, labelSelector, fieldSelector })
      const there = versions(items)
      const known = versions(cache.list(namespace))
      if (there !== known) throw new Error(`${type.plural} in ${namespace}: there are ${there}; the operator knows ${known}`)
    }),
  )
}

function versions(objects: readonly KubeObject[]): string {
  return objects
    .map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`)
    .toSorted()
    .join()
}

async function controllersAreThrough({ admin, namespaces }: Watched): Promise<void> {
  for (const namespace of namespaces) {
    const [made, sets, all] = await Promise.all([
      admin.list(deployments, { namespace }),
      admin.list(replicaSets, { namespace }),
      admin.list(pods, { namespace }),
    ])
    const isRefused = (set: ReplicaSet) =>
      set.status?.conditions?.some(({ type, status }) => type === 'ReplicaFailure' && status === 'True')
    const isStill = (object: Deployment | ReplicaSet, isEnough: (have: number, wanted: number) => boolean) =>
      object.metadata.deletionTimestamp !== undefined ||
      (object.status?.observedGeneration === object.metadata.generation &&
        isEnough(object.status?.replicas ?? 0, object.spec?.replicas ?? 1))
    const turning = [
      // A roll-out that waits for pods which never get ready has more than it needs.
      ...made.items.filter((object) => !isStill(object, (have, wanted) => (wanted === 0 ? have === 0 : have >= wanted))),
      ...sets.items.filter((object) => !isStill(object, (have, wanted) => have === wanted)),
    ]
    if (turning.length > 0 && !sets.items.some(isRefused))
      throw new Error(`not through: ${turning.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join()}`)
    const unseen = all.items.filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && !status?.conditions?.length)
    if (unseen.length > 0) throw new Error(`the scheduler has not seen ${unseen.map(({ metadata }) => metadata.name).join()}`)
  }
}
