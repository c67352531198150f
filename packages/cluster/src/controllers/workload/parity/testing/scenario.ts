import { setTimeout as sleep } from 'node:timers/promises'
import { isNotFound, type KubeObject, type Pod, pods } from '@thv/kube'
import { isTerminating } from '../../pod-state.ts'
import { replicaSets } from '../../workload-kinds.ts'
import type { Snapshot } from './snapshot.ts'
import {
  createStage,
  named,
  type PodRule,
  podsOf,
  runKubelet,
  type Stage,
  type StageOptions,
  setPodStatus,
  settled,
  typeOf,
} from './stage.ts'

export type Step = (stage: Stage) => Promise<void>

/** A list of steps; `'settle'` between them is where both planes must look the same. */
export interface Scenario {
  readonly name: string
  readonly steps: readonly (Step | 'settle')[]
  /** Events are compared at the end; only where they do not depend on who was faster. */
  readonly events?: boolean
}

/** The snapshots of all places to settle. With goldens it waits for them, without it waits until nothing changes. */
export async function runScenario(
  { name, steps, events }: Scenario,
  { goldens, ...options }: StageOptions & { goldens?: readonly Snapshot[] | undefined },
): Promise<Snapshot[]> {
  const stage = createStage(options)
  const plain = events ? stage : { ...stage, snapshot: async () => withoutEvents(await stage.snapshot()) }
  const stop = new AbortController()
  const kubelet = runKubelet(stage, stop.signal)
  const snapshots: Snapshot[] = []
  try {
    for (const step of steps) {
      if (step === 'settle') snapshots.push(await settled(plain, goldens === undefined ? undefined : (goldens[snapshots.length] ?? {})))
      else await step(stage)
    }
  } catch (error) {
    throw new Error(`scenario ${name}`, { cause: error })
  } finally {
    stop.abort()
    await kubelet
  }
  return snapshots
}

function withoutEvents({ events: _, ...rest }: Snapshot): Snapshot {
  return rest
}

export function create(object: KubeObject): Step {
  return async ({ client, namespace }) => {
    await client.create(typeOf(object.kind ?? ''), named(object, namespace))
  }
}

/**
 * Of pods whose ages have the same power of two (in nanoseconds) a random one counts as the older. What is made after this has the smaller
 * power for the next seven seconds: 2^33 ns are 8.6 s.
 */
export const muchLater: Step = () => sleep(9_700)

/**
 * The controllers have seen every change of a pod that came before: a set that wants no pods deletes one made now, and they hear of pods in
 * order. Events of another kind's watch are not waited for: such a change may overtake or be overtaken without this.
 */
export const podsSeen: Step = async ({ client, namespace }) => {
  const metadata = { name: 'marker', namespace, labels: { marker: 'set' } }
  const spec = { containers: [{ name: 'main', image: 'app:v1' }] }
  const template = { metadata: { labels: metadata.labels }, spec }
  await client.create(replicaSets, { metadata, spec: { replicas: 0, selector: { matchLabels: metadata.labels }, template } })
  await client.create(pods, { metadata, spec })
  for (let tries = 0; (await client.tryGet(pods, metadata)) !== undefined; tries++) {
    if (tries === 6_000) throw new Error('the controllers do not see a new pod')
    await sleep(10)
  }
  await client.delete(replicaSets, metadata)
}

/** A merge patch. */
export function change(kind: string, name: string, body: unknown): Step {
  return async ({ client, namespace }) => {
    await client.patch(typeOf(kind), { namespace, name }, { kind: 'merge', body })
  }
}

export function scale(kind: string, name: string, replicas: number): Step {
  return change(kind, name, { spec: { replicas } })
}

/** Another image of the first container. */
export function rollTo(kind: string, name: string, tag: string): Step {
  return async ({ client, namespace }) => {
    const ops = [{ op: 'replace' as const, path: '/spec/template/spec/containers/0/image', value: `app:${tag}` }]
    await client.patch(typeOf(kind), { namespace, name }, { kind: 'json', ops })
  }
}

/** From now on such pods get ready. */
export function kubelet(rule: PodRule): Step {
  return async (stage) => {
    stage.kubelet = rule
  }
}

export const everyPod: PodRule = () => true
export const noPod: PodRule = () => false
export function podsWith(...tags: readonly string[]): PodRule {
  return (pod) => tags.some((tag) => pod.spec?.containers[0]?.image === `app:${tag}`)
}

/** The first pods, by name, that the rule picks. */
export function eachPod(rule: PodRule, count: number, act: (stage: Stage, pod: Pod) => Promise<void>): Step {
  return async (stage) => {
    const chosen = (await podsOf(stage)).filter(rule).sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    if (chosen.length < count) throw new Error(`only ${chosen.length} pods of ${count}`)
    for (const pod of chosen.slice(0, count)) await act(stage, pod)
  }
}

export function podBecomes(rule: PodRule, count: number, status: { phase: string; ready: boolean }): Step {
  return eachPod(rule, count, (stage, pod) => setPodStatus(stage, pod, status))
}

export function deletePods(rule: PodRule, count: number): Step {
  return eachPod(rule, count, async ({ client, namespace }, { metadata }) => {
    await client.delete(typeOf('Pod'), { namespace, name: metadata.name })
  })
}

export function patchPods(rule: PodRule, count: number, body: unknown): Step {
  return eachPod(rule, count, async ({ client, namespace }, { metadata }) => {
    await client.patch(typeOf('Pod'), { namespace, name: metadata.name }, { kind: 'merge', body })
  })
}

/** Of ReplicaSets, by the tag of their image. */
export function changeSetOf(tag: string, body: unknown): Step {
  return async ({ client, namespace }) => {
    const sets = await client.listAll(typeOf('ReplicaSet'), { namespace })
    const found = sets.items.find((set) => JSON.stringify(set).includes(`"image":"app:${tag}"`))
    if (found === undefined) throw new Error(`no replica set of ${tag}`)
    await client.patch(typeOf('ReplicaSet'), { namespace, name: found.metadata.name }, { kind: 'merge', body })
  }
}

/** The node says that pods which are going have ended. */
export const endTerminating: Step = async (stage) => {
  for (const { metadata } of (await podsOf(stage)).filter(isTerminating)) {
    try {
      await stage.client.delete(typeOf('Pod'), { namespace: stage.namespace, name: metadata.name }, { gracePeriodSeconds: 0 })
    } catch (error) {
      if (!isNotFound(error)) throw error
    }
  }
}

/** The next step comes when the controller has seen the tag, and not when all is done. */
export function untilThere(kind: 'ReplicaSet' | 'ControllerRevision', tag: string): Step {
  return async (stage) => {
    for (let tries = 0; tries < 6_000; tries++) {
      const { items } = await stage.client.listAll(typeOf(kind), { namespace: stage.namespace })
      if (items.some((set) => JSON.stringify(set).includes(`"image":"app:${tag}"`))) return
      await sleep(10)
    }
    throw new Error(`no ${kind} of ${tag} came`)
  }
}
