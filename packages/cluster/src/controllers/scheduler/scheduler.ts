import {
  createController,
  done,
  generationChanged,
  isConflict,
  isNotFound,
  type KubeNode,
  keyOf,
  labelsChanged,
  nodes,
  type ObjectKey,
  type Outcome,
  or,
  type Pod,
  type PodSpec,
  pods,
  type ReconcileContext,
  requeueAfter,
  retry,
  watchMapped,
  watchSelf,
} from '@thv/kube'
import type { ControllerEnv, RunningController } from '../controller-env.ts'
import { misfit } from './node-fit.ts'

const SCHEDULER = 'default-scheduler'
/** Nothing is expected to change by itself; this only guards against what no watch tells. */
const LOOK_AGAIN = '5m'

/** Gives each pod that has none a node: of those that fit the one with the fewest pods. */
export function scheduler(env: ControllerEnv): RunningController {
  const { client, caches, events } = env
  const [podCache, nodeCache] = [caches.of(pods), caches.of(nodes)]
  /** Node by uid of a pod that was bound and whose cache does not show it yet. */
  const assumed = new Map<string, string>()

  async function reconcile(key: ObjectKey, { signal }: ReconcileContext): Promise<Outcome> {
    const pod = podCache.store.get(key)
    if (pod === undefined || !isPending(pod) || assumed.has(pod.metadata.uid ?? '')) return done
    const { fitting, message } = choose(pod, nodeCache.store.list())
    const counts = podCounts()
    const node = fitting.toSorted((a, b) => (counts.get(a.metadata.name) ?? 0) - (counts.get(b.metadata.name) ?? 0))[0]
    if (node !== undefined) return await bind(pod, node, signal)
    await noteUnschedulable(pod, message, signal)
    return requeueAfter(LOOK_AGAIN)
  }

  async function bind(pod: Pod, node: KubeNode, signal: AbortSignal): Promise<Outcome> {
    const { namespace = '', name, uid = '' } = pod.metadata
    const target = { apiVersion: 'v1', kind: 'Node', name: node.metadata.name }
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { namespace, name, uid }, target }
    try {
      await client.raw('POST', `/api/v1/namespaces/${namespace}/pods/${name}/binding`, { body, signal })
    } catch (error) {
      if (isNotFound(error)) return done
      if (isConflict(error)) return retry('the pod changed, or was bound')
      throw error
    }
    if (isPending(podCache.store.get({ namespace, name }))) assumed.set(uid, node.metadata.name)
    const note = `Successfully assigned ${namespace}/${name} to ${node.metadata.name}`
    events.record(pods, pod, { type: 'Normal', reason: 'Scheduled', note, action: 'Binding' })
    return done
  }

  async function noteUnschedulable(pod: Pod, message: string, signal: AbortSignal): Promise<void> {
    const current = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
    events.record(pods, pod, { type: 'Warning', reason: 'FailedScheduling', note: message, action: 'Scheduling' })
    if (current?.status === 'False' && current.reason === 'Unschedulable' && current.message === message) return
    const since = current?.status === 'False' ? current.lastTransitionTime : undefined
    const lastTransitionTime = since ?? new Date(env.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z')
    const observedGeneration = pod.metadata.generation
    const reason = { status: 'False', reason: 'Unschedulable', message }
    const condition = { type: 'PodScheduled', ...reason, lastProbeTime: null, lastTransitionTime, observedGeneration }
    const patch = { kind: 'strategic', body: { metadata: { uid: pod.metadata.uid }, status: { conditions: [condition] } } } as const
    await client.patch(pods, keyOf(pod), patch, { subresource: 'status', signal }).catch((error: unknown) => {
      if (!isNotFound(error) && !isConflict(error)) throw error // gone, or another one of its name
    })
  }

  function podCounts(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const pod of podCache.store.list()) {
      const node = pod.spec?.nodeName || assumed.get(pod.metadata.uid ?? '')
      if (node !== undefined && !isFinished(pod)) counts.set(node, (counts.get(node) ?? 0) + 1)
    }
    return counts
  }

  return createController({
    name: 'scheduler',
    reconcile,
    sources: [
      watchSelf(
        podCache,
        ({ type, object }) => {
          if (type === 'DELETED' || !isPending(object)) assumed.delete(object.metadata.uid ?? '')
          return isPending(object)
        },
        // As in Kubernetes, what others write into the status is no reason to try again.
        or(generationChanged, labelsChanged),
      ),
      watchMapped(nodeCache, () => podCache.store.list().filter(isPending).map(keyOf)),
    ],
    clock: env.clock,
    onError: env.onError,
  })
}

function isPending(pod: Pod | undefined): boolean {
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined || isFinished(pod)) return false
  const { nodeName, schedulerName, schedulingGates }: Partial<PodSpec> = pod.spec ?? {}
  if (Array.isArray(schedulingGates) && schedulingGates.length > 0) return false
  return !nodeName && (schedulerName ?? SCHEDULER) === SCHEDULER
}

function isFinished(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
}

/** The nodes that fit; when there are none, why, with a count of nodes for each reason. */
export function choose(pod: Pod, all: readonly KubeNode[]): { fitting: KubeNode[]; message: string } {
  const fitting: KubeNode[] = []
  const reasons = new Map<string, number>()
  for (const node of all) {
    const reason = misfit(pod, node)
    if (reason === undefined) fitting.push(node)
    else reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
  }
  if (all.length === 0) return { fitting, message: 'no nodes available to schedule pods' }
  const counted = [...reasons].map(([reason, count]) => `${count} ${reason}`).sort()
  const head = `0/${all.length} nodes are available`
  const preemption = `no new claims to deallocate, preemption: ${head}: ${all.length} Preemption is not helpful for scheduling.`
  return { fitting, message: `${head}: ${counted.join(', ')}. ${preemption}` }
}
