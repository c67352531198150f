import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSharedCaches, type Pod, pods } from '@thv/kube'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isActive, isReady } from '../pod-state.ts'
import { scenarioSets } from './all-scenarios.ts'
import { refusedWrites, seeded, slowReads } from './testing/faults.ts'
import { deployment, replicaSet, rolling } from './testing/objects.ts'
import { type OurPlane, type PlaneOptions, startOurPlane } from './testing/our-plane.ts'
import { create, everyPod, kubelet, rollTo, runScenario, type Scenario, scale } from './testing/scenario.ts'
import type { Snapshot } from './testing/snapshot.ts'
import type { StageOptions } from './testing/stage.ts'

/** Those that do most. */
const NAMES = [
  'replica set: scaled up, down and to none',
  'replica set: a pod deleted by hand is replaced',
  'deployment: rolled out',
  'deployment: back to the first revision',
  'deployment: scaled up in the middle',
  'deployment: on to a third template in the middle',
  'deployment: paused, changed, scaled, resumed',
  'deployment: recreated',
  'stateful set: scaled',
  'stateful set: rolled out',
  'stateful set: all at once, scaled',
  'stateful set: back to the first revision',
  'stateful set: a failed pod is replaced',
]

const goldens = Object.assign({}, ...Object.keys(scenarioSets).map(goldensOf)) as Record<string, Snapshot[]>
const scenarios = Object.values(scenarioSets)
  .flat()
  .filter(({ name }) => NAMES.includes(name))
  .map((scenario): Scenario => ({ ...scenario, events: false }))

describe('the same work', () => {
  describe.each<{ fault: string; options: PlaneOptions; restartMs?: number }>([
    { fault: 'with caches that are slow', options: { reads: slowReads(15) } },
    { fault: 'when one write in five is refused', options: { writes: refusedWrites(0.2, seeded(7)) } },
    { fault: 'when both happen', options: { reads: slowReads(10), writes: refusedWrites(0.15, seeded(11)) } },
    { fault: 'when the controllers begin again and again', options: {}, restartMs: 150 },
  ])('$fault', ({ options, restartMs }) => {
    let plane: OurPlane
    let count = 0
    const stop = new AbortController()
    let restarts: Promise<void> | undefined

    beforeAll(async () => {
      plane = await startOurPlane(options)
      if (restartMs !== undefined) restarts = restartOften(plane, restartMs, stop.signal)
    })
    afterAll(async () => {
      stop.abort()
      await restarts
      await plane[Symbol.asyncDispose]()
    })

    it('knows all these scenarios', () => expect(scenarios).toHaveLength(NAMES.length))

    it.concurrent.for(scenarios)('$name', async (scenario, { expect }) => {
      const stage = await plane.stage(`fault-${++count}`)
      const golden = (goldens[scenario.name] ?? []).map(({ events: _, ...rest }) => rest)
      expect(await runScenario(scenario, { ...stage, goldens: golden })).toEqual(golden)
    })
  })

  it('never makes more pods than wanted, however late the caches are', async () => {
    await using plane = await startOurPlane({ reads: slowReads(40), writes: refusedWrites(0.1, seeded(3)) })
    const stage = await plane.stage('too-many')
    const seen = await watchPods(stage, async () => {
      await runScenario({ name: 'grow', steps: [kubelet(everyPod), create(replicaSet({ replicas: 12 })), settledAt(12)] }, stage)
    })
    expect(seen.created).toBe(12)
    expect(seen.most).toBe(12)
  })

  it('keeps the promises of a rolling update, however late the caches are', async () => {
    await using plane = await startOurPlane({ reads: slowReads(10) })
    const stage = await plane.stage('promises')
    const steps = [kubelet(everyPod), create(deployment({ replicas: 5, ...rolling(2, 1) })), settledAt(5)]
    const roll = [rollTo('Deployment', 'web', 'v2'), settledAt(5, 'v2'), rollTo('Deployment', 'web', 'v3'), settledAt(5, 'v3')]
    const seen = await watchPods(stage, async () => {
      await runScenario({ name: 'roll', steps: [...steps, ...roll] }, stage)
    })
    expect(seen.most).toBeLessThanOrEqual(7)
    expect(seen.fewestReady).toBeGreaterThanOrEqual(4)
  })

  it('shrinks to the wanted number and not below it', async () => {
    await using plane = await startOurPlane({ reads: slowReads(30) })
    const stage = await plane.stage('shrink')
    const steps = [kubelet(everyPod), create(replicaSet({ replicas: 10 })), settledAt(10), scale('ReplicaSet', 'web', 4), settledAt(4)]
    const seen = await watchPods(stage, async () => {
      await runScenario({ name: 'shrink', steps }, stage)
      await sleep(500)
    })
    expect(seen.created).toBe(10)
    expect(seen.fewestReady).toBe(4)
  })
})

/** Waits until so many pods are ready, with this tag if one is given, and no others are there. */
function settledAt(count: number, tag = ''): Scenario['steps'][number] {
  return async ({ client, namespace }) => {
    for (let tries = 0; tries < 3_000; tries++) {
      const { items } = await client.listAll(pods, { namespace })
      const wanted = items.filter((pod) => isReady(pod) && pod.spec?.containers[0]?.image?.endsWith(tag))
      if (items.length === count && wanted.length === count) return
      await sleep(20)
    }
    throw new Error(`never ${count} pods ${tag}`)
  }
}

interface PodCounts {
  created: number
  most: number
  /** After there were as many as at the most for the first time. */
  fewestReady: number
}

/** Counts by what the server says happened, in order. */
async function watchPods(stage: StageOptions, work: () => Promise<void>): Promise<PodCounts> {
  const caches = createSharedCaches(stage.client)
  const cache = caches.of(pods, { namespace: stage.namespace })
  await cache.waitForSync()
  const counts: PodCounts = { created: 0, most: 0, fewestReady: Number.POSITIVE_INFINITY }
  let mostReady = 0
  cache.addHandler((event) => {
    const all: Pod[] = cache.store.list()
    const ready = all.filter((pod) => isActive(pod) && isReady(pod)).length
    if (event.type === 'ADDED') counts.created++
    counts.most = Math.max(counts.most, all.filter(isActive).length)
    mostReady = Math.max(mostReady, ready)
    if (ready < mostReady) counts.fewestReady = Math.min(counts.fewestReady, ready)
  })
  try {
    await work()
    // The watch may not have shown yet what the reconcile read by a request.
    const told = () => namesOf(cache.store.list())
    await expect.poll(async () => told() === namesOf((await stage.client.listAll(pods, { namespace: stage.namespace })).items)).toBe(true)
  } finally {
    await caches.close()
  }
  return counts
}

function namesOf(all: readonly Pod[]): string {
  return all
    .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`)
    .toSorted()
    .join()
}

async function restartOften(plane: OurPlane, everyMs: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(everyMs, undefined, { signal }).catch(() => undefined)
    if (!signal.aborted) await plane.restartControllers()
  }
}

function goldensOf(set: string): Record<string, Snapshot[]> {
  return JSON.parse(
    readFileSync(new URL(`../../../../recordings/controllers/workload/parity/${set}.golden.json`, import.meta.url), 'utf8'),
  ) as Record<string, Snapshot[]>
}
