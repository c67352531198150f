import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { jsonEqual } from '@thv/kernel/json'
import {
  customResourceDefinitions,
  isAlreadyExists,
  isNotFound,
  type KubeClient,
  type KubeObject,
  nodes,
  type ResourceType,
} from '@thv/kube'
import type { ScenarioSet, Snapshots } from '../scenario.ts'
import { type Patience, type Plane, runScenario } from './run-scenario.ts'

export type Goldens = Readonly<Record<string, Snapshots>>

export function readGoldens(file: URL): Goldens {
  return JSON.parse(readFileSync(file, 'utf8')) as Goldens
}

/** On the real plane everything takes its time, so several scenarios run beside each other. */
const AT_ONCE = 6

/** With `record` what is seen becomes what is expected, from now on and everywhere. */
export async function runAll(
  plane: Plane,
  { set, file, record, patience }: { set: ScenarioSet; file: URL; record: boolean; patience: Patience },
): Promise<{ seen: Goldens; goldens: Goldens }> {
  const goldens = record ? {} : readGoldens(file)
  const seen: Record<string, Snapshots> = {}
  const left = [...set.scenarios]
  const work = async () => {
    for (let scenario = left.shift(); scenario; scenario = left.shift())
      seen[scenario.name] = await runAsRecorded(plane, { set, scenario, expected: goldens[scenario.name], patience })
  }
  await define(plane, set)
  const stop = new AbortController()
  const alive = beatHearts(plane, set, stop.signal)
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  } finally {
    stop.abort()
    await alive
    await undefine(plane, set)
  }
  const ordered = Object.fromEntries(set.scenarios.map(({ name }) => [name, seen[name] ?? []]))
  if (record) writeFileSync(file, `${JSON.stringify(ordered, null, 1)}\n`)
  return { seen: ordered, goldens: record ? ordered : goldens }
}

/** The real controllers act in any order: the recording is one of the possible results, not the only one. */
async function runAsRecorded(plane: Plane, options: Parameters<typeof runScenario>[1]): Promise<Snapshots> {
  const { scenario, expected } = options
  let seen: Snapshots = []
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    seen = await runScenario({ ...plane, prefix: `${plane.prefix}-${tries}` }, options)
    if (expected === undefined || jsonEqual(seen, expected)) return seen
    console.warn(`${scenario.name}: not what was recorded (${tries} of ${MAX_TRIES} tries)`)
  }
  return seen
}

const MAX_TRIES = 3

/** Pods of a node that is silent for a minute count as not ready on the real plane. */
async function beatHearts({ client }: Plane, { nodes: names = [] }: ScenarioSet, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const lastHeartbeatTime = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
    const body = { status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime }] } }
    for (const name of names) await client.patch(nodes, { name }, { kind: 'strategic', body }, { subresource: 'status' })
    await sleep(10_000, undefined, { signal }).catch(() => undefined) // aborted: the loop ends
  }
}

export async function define({ client }: Plane, { definitions = [], types, nodes: names = [] }: ScenarioSet): Promise<void> {
  for (const name of names) await client.create(nodes, { metadata: { name }, spec: { unschedulable: true } })
  for (const definition of definitions) {
    const object = definition as unknown as KubeObject
    await client.create<KubeObject>(customResourceDefinitions as never, object).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error
    })
    const type = types.find(({ plural, group }) => `${plural}.${group}` === object.metadata.name)
    if (type !== undefined) await waitUntilCollected(client, type)
  }
}

/** The real garbage collector learns of new kinds within half a minute; before, it lets objects wait that it should see. */
async function waitUntilCollected(client: KubeClient, type: ResourceType): Promise<void> {
  while (!(await client.list(type).then(Boolean, (error: unknown) => !isNotFound(error)))) await sleep(50)
  const key = { ...(type.namespaced ? { namespace: 'default' } : {}), name: `probe-${randomBytes(4).toString('hex')}` }
  await client.create<KubeObject>(type, { metadata: key })
  await client.delete(type, key, { propagationPolicy: 'Foreground' })
  while ((await client.tryGet(type, key)) !== undefined) await sleep(50)
}

export async function undefine({ client }: Plane, { definitions = [], nodes: names = [] }: ScenarioSet): Promise<void> {
  for (const name of names) await client.delete(nodes, { name })
  for (const { metadata } of definitions as unknown as KubeObject[])
    await client.delete(customResourceDefinitions, { name: metadata.name }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
}
