import { controllerOf, formatKey, isConflict, isNotFound, keyOf, type Pod, pods, type ResourceType } from '@thv/kube'
import type { ControllerEnv } from '../controller-env.ts'
import { ownedBy } from '../workload/owned-index.ts'
import { podFromTemplate } from '../workload/pod-from-template.ts'
import { isNamespaceTerminating, serverMessage } from '../workload/server-message.ts'
import { slowStart } from '../workload/slow-start.ts'
import { type ReplicaOwner, replicaSets } from '../workload/workload-kinds.ts'
import { podsToDelete } from './deletion-order.ts'
import type { PendingChanges } from './pending-changes.ts'

/** At most so many pods of one set are created or deleted before the cache must have seen them. */
const BURST = 500

export interface ManageContext {
  readonly env: ControllerEnv
  /** The kind of the owner. */
  readonly type: ResourceType
  readonly pending: PendingChanges
  readonly signal: AbortSignal
}

/** Creates or deletes pods until there are as many as wanted. Returns what went wrong first, in the server's words. */
export async function manageReplicas(set: ReplicaOwner, active: readonly Pod[], context: ManageContext): Promise<string | undefined> {
  const missing = (set.spec?.replicas ?? 1) - active.length
  if (missing > 0) return await createPods(set, Math.min(missing, BURST), context)
  if (missing < 0) return await deletePods(set, active, Math.min(-missing, BURST), context)
  return undefined
}

async function createPods(set: ReplicaOwner, count: number, { env, type, pending, signal }: ManageContext): Promise<string | undefined> {
  const { client, events } = env
  const owner = formatKey(keyOf(set))
  const { error } = await slowStart(count, async () => {
    try {
      const pod = await client.create(pods, podFromTemplate(set.spec?.template ?? {}, { object: set, type }), { signal })
      pending.created(owner, pod)
      events.record(type, set, { type: 'Normal', reason: 'SuccessfulCreate', note: `Created pod: ${pod.metadata.name}` })
    } catch (error) {
      if (isNamespaceTerminating(error)) return
      events.record(type, set, { type: 'Warning', reason: 'FailedCreate', note: `Error creating: ${serverMessage(error)}` })
      throw error
    }
  })
  return error === undefined ? undefined : serverMessage(error)
}

async function deletePods(set: ReplicaOwner, active: readonly Pod[], count: number, context: ManageContext): Promise<string | undefined> {
  const chosen = podsToDelete(active, count, { related: relatedPods(set, context.env), now: context.env.clock.now() })
  let failure: string | undefined
  for (let from = 0; from < chosen.length; from += PARALLEL) {
    const results = await Promise.all(chosen.slice(from, from + PARALLEL).map((pod) => deletePod(set, pod, context)))
    failure ??= results.find((result) => result !== undefined)
  }
  return failure
}

const PARALLEL = 32

async function deletePod(set: ReplicaOwner, pod: Pod, { env, type, pending, signal }: ManageContext): Promise<string | undefined> {
  const { client, events } = env
  try {
    await client.delete(pods, keyOf(pod), { preconditions: { uid: pod.metadata.uid }, signal })
    pending.deleted(formatKey(keyOf(set)), pod)
    events.record(type, set, { type: 'Normal', reason: 'SuccessfulDelete', note: `Deleted pod: ${pod.metadata.name}` })
    return undefined
  } catch (error) {
    if (isNotFound(error) || isConflict(error)) return undefined // gone already; another pod may have its name
    events.record(type, set, { type: 'Warning', reason: 'FailedDelete', note: `Error deleting: ${serverMessage(error)}` })
    return `unable to delete pods: ${serverMessage(error)}`
  }
}

/** Pods of all replica sets of the same Deployment, which a ReplicationController never has. */
function relatedPods(set: ReplicaOwner, { caches }: ControllerEnv): Pod[] {
  const owner = controllerOf(set)
  if (owner === undefined) return []
  const podStore = caches.of(pods).store
  return ownedBy(caches.of(replicaSets).store, owner.uid).flatMap(({ metadata }) => ownedBy(podStore, metadata.uid ?? ''))
}
