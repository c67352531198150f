import { setTimeout as sleep } from 'node:timers/promises'
import { jsonEqual } from '@thv/kernel/json'
import { createSharedCaches, isConflict, isNotFound, type KubeClient, type KubeObject, type Pod, pods, type ResourceType } from '@thv/kube'
import { apiTime } from '../../api-time.ts'
import { isReady, isTerminating } from '../../pod-state.ts'
import { controllerRevisions, deployments, replicaSets, statefulSets } from '../../workload-kinds.ts'
import { type Lister, type Snapshot, takeSnapshot } from './snapshot.ts'

export type PodRule = (pod: Pod) => boolean

/** One scenario's place on a plane: a namespace, and somebody who acts as the kubelet of its pods. */
export interface Stage {
  readonly client: KubeClient
  readonly namespace: string
  /** Which pods become ready from now on. */
  kubelet: PodRule
  readonly snapshot: () => Promise<Snapshot>
}

export interface StageOptions {
  readonly client: KubeClient
  readonly namespace: string
  /** A shorter way to the objects than by the client. */
  readonly list?: Lister | undefined
}

const KINDS: Readonly<Record<string, ResourceType>> = {
  Pod: pods,
  ReplicaSet: replicaSets,
  Deployment: deployments,
  StatefulSet: statefulSets,
  ControllerRevision: controllerRevisions,
}

export function typeOf(kind: string): ResourceType {
  const type = KINDS[kind]
  if (type === undefined) throw new RangeError(`no kind ${kind} in scenarios`)
  return type
}

export function createStage({ client, namespace, list }: StageOptions): Stage {
  const byClient: Lister = async (type) => (await client.listAll(type, { namespace })).items
  return { client, namespace, kubelet: () => false, snapshot: () => takeSnapshot(list ?? byClient, namespace) }
}

/** Runs pods by writing that they are ready, each once, until the signal aborts. */
export async function runKubelet(stage: Stage, signal: AbortSignal): Promise<void> {
  const caches = createSharedCaches(stage.client)
  const { store } = caches.of(pods, { namespace: stage.namespace })
  const seen = new Set<string | undefined>()
  try {
    while (!signal.aborted) {
      for (const pod of store.list()) {
        if (isTerminating(pod) || isReady(pod) || seen.has(pod.metadata.uid) || !stage.kubelet(pod)) continue
        seen.add(pod.metadata.uid)
        await setPodStatus(stage, pod, { phase: 'Running', ready: true })
      }
      await sleep(10, undefined, { signal }).catch(() => undefined)
    }
  } finally {
    await caches.close()
  }
}

export async function podsOf({ client, namespace }: Stage): Promise<Pod[]> {
  return (await client.listAll(pods, { namespace })).items
}

export async function setPodStatus({ client }: Stage, pod: Pod, { phase, ready }: { phase: string; ready: boolean }): Promise<void> {
  const { namespace = '', name } = pod.metadata
  const condition = { type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: apiTime(Date.now()) }
  const body = { metadata: { uid: pod.metadata.uid }, status: { phase, conditions: [condition] } }
  try {
    await client.patch(pods, { namespace, name }, { kind: 'strategic', body }, { subresource: 'status' })
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error
  }
}

/** The state that stays: the golden one as soon as it is there, or else whatever does not change for a while. */
export async function settled(stage: Stage, golden: Snapshot | undefined): Promise<Snapshot> {
  const stableMs = golden === undefined ? RECORD_STABLE_MS : GOLDEN_STABLE_MS
  const deadline = Date.now() + LIMIT_MS
  let last = await stage.snapshot()
  let since = Date.now()
  while (Date.now() < deadline) {
    await sleep(25)
    const next = await stage.snapshot()
    if (!jsonEqual(next, last)) since = Date.now()
    last = next
    const wanted = golden === undefined || jsonEqual(next, golden)
    if (wanted && Date.now() - since >= stableMs) return next
  }
  return last
}

/** A real control plane may take a second before it looks again. */
const RECORD_STABLE_MS = 2_500
const GOLDEN_STABLE_MS = 150
const LIMIT_MS = 60_000

export function named(object: KubeObject, namespace: string): KubeObject {
  return { ...object, metadata: { ...object.metadata, namespace } }
}
