import type { Pod } from '@thv/kube'
import { isAvailable, isOver, isTerminating } from '../workload/pod-state.ts'
import { slowStart } from '../workload/slow-start.ts'
import type { StatefulSet } from '../workload/workload-kinds.ts'
import { missingIdentity, ordinalOf, podRevision, statefulPod } from './pod-identity.ts'
import { type Revisions, templateOf } from './revision-history.ts'
import type { StatefulPods } from './stateful-pods.ts'
import type { StatefulSetSettings } from './stateful-set-settings.ts'
import { isCreated, isRunningAndReady } from './stateful-set-status.ts'

export interface StepContext {
  readonly settings: StatefulSetSettings
  readonly revisions: Revisions
  readonly actions: StatefulPods
  readonly now: number
}

/** The pods of a set by their places, and those that have no place any more, highest first. */
export interface Placed {
  readonly replicas: readonly Pod[]
  readonly condemned: readonly Pod[]
}

/** Missing pods of one step. A set may ask for two thousand million: it gets them by and by, as far as the machine goes. */
const MAX_PLANNED = 500

/** Pods that are missing are planned with the revision that belongs to their place. */
export function placePods(set: StatefulSet, pods: readonly Pod[], { settings, revisions }: Omit<StepContext, 'actions' | 'now'>): Placed {
  const { start, replicas, partition } = settings
  const byOrdinal = new Map<number, Pod>()
  for (const pod of pods) {
    const ordinal = ordinalOf(set, pod)
    if (ordinal !== undefined) byOrdinal.set(ordinal, pod)
  }
  const placed: Pod[] = []
  for (let index = 0, planned = 0; index < replicas && planned < MAX_PLANNED; index++) {
    const ordinal = start + index
    const version = index < partition ? revisions.current : revisions.update
    const known = byOrdinal.get(ordinal)
    if (known === undefined) planned++
    placed.push(known ?? statefulPod(set, { ordinal, template: templateOf(version), revision: version.metadata.name }))
  }
  const condemned = [...byOrdinal].filter(([ordinal]) => ordinal < start || ordinal >= start + replicas).sort(([a], [b]) => b - a)
  return { replicas: placed, condemned: condemned.map(([, pod]) => pod) }
}

/**
 * The next step towards what the set wants: missing pods are created, superfluous ones deleted, and when all of that is done old ones
 * replaced, the highest first. Returns how many pods of the old revision went in the last way.
 */
export async function stepStatefulSet(set: StatefulSet, placed: Placed, context: StepContext): Promise<number> {
  const { replicas, condemned } = placed
  if (await forEach(replicas, context, (pod) => tendReplica(set, pod, context))) return 0
  const first = firstUnavailable(placed, context)
  if (await forEach(condemned, context, (pod) => removeCondemned(pod, first, context))) return 0
  return context.settings.onDelete ? 0 : await replaceOld(replicas, context)
}

/** True when the step ends here. Pods of an ordered set wait for each other, those of another one do not. */
async function forEach(pods: readonly Pod[], { settings }: StepContext, tend: (pod: Pod) => Promise<boolean>): Promise<boolean> {
  if (settings.ordered) {
    for (const pod of pods) if (await tend(pod)) return true
    return false
  }
  const { error } = await slowStart(pods.length, async (index) => {
    const pod = pods[index]
    if (pod !== undefined) await tend(pod)
  })
  if (error !== undefined) throw error
  return false
}

/** True when those after it must wait. */
async function tendReplica(set: StatefulSet, pod: Pod, { settings, actions, now }: StepContext): Promise<boolean> {
  if (isOver(pod)) {
    // Its name is free only when it is gone.
    if (!isTerminating(pod)) await actions.delete(pod)
    return true
  }
  if (!isCreated(pod)) {
    if (settings.needsClaims) actions.refuseClaims(pod)
    else await actions.create(pod)
    return true
  }
  if (settings.ordered && isUnavailable(pod, { settings, now })) return true
  const labels = missingIdentity(set, pod)
  if (labels !== undefined) await actions.label(pod, labels)
  return false
}

/** An ordered set shrinks only while it is well, but a pod that is itself the first that is not well may go. */
async function removeCondemned(pod: Pod, first: Pod | undefined, { settings, actions, now }: StepContext): Promise<boolean> {
  if (isTerminating(pod)) return true
  if (isUnavailable(pod, { settings, now }) && settings.ordered && pod !== first) return true
  await actions.delete(pod)
  return true
}

async function replaceOld(replicas: readonly Pod[], { settings, revisions, actions, now }: StepContext): Promise<number> {
  for (const pod of replicas.slice(settings.partition).reverse()) {
    if (podRevision(pod) !== revisions.update.metadata.name && !isTerminating(pod)) {
      await actions.delete(pod)
      return 1
    }
    if (isUnavailable(pod, { settings, now })) return 0
  }
  return 0
}

function firstUnavailable({ replicas, condemned }: Placed, { settings, now }: StepContext): Pod | undefined {
  return [...replicas, ...condemned.toReversed()].find((pod) => isUnavailable(pod, { settings, now }))
}

function isUnavailable(pod: Pod, { settings, now }: Pick<StepContext, 'settings' | 'now'>): boolean {
  return !isRunningAndReady(pod) || !isAvailable(pod, settings.minReadySeconds, now) || isTerminating(pod)
}
