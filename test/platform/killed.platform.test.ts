import { setTimeout as sleep } from 'node:timers/promises'
import { configMaps, deployments, isExpired, type KubeClient, pods, services } from '@thv/kube'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { positiveCount } from '@thv/testkit/run/run-environment'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask } from '../e2e/stories/clients.ts'
import { SERVER } from '../e2e/stories/world.ts'
import { acknowledgedWrites } from './acknowledged-writes.ts'
import { clientOf, eventually, fixtureFolder, worldOf } from './fixture-platform.ts'
import { allGone, processesOf } from './folder-processes.ts'
import { type DataFolder, dataFolder, type PlatformProcess } from './platform-process.ts'
import { commandsWith } from './process-list.ts'

/*
 * kill -9 of the platform while clients write and pods run, again and again on the same data folder. SOAK_KILLS=50 (`npm run soak`) makes
 * more rounds of it.
 */

const ROUNDS = positiveCount('SOAK_KILLS', 5)
const START_KILLS = Math.ceil(ROUNDS / 2)
/** About as long as a start takes. */
const START_MS = 2_000
const NAMESPACE = 'killed'
const SLEEPERS = 3
/** No other program of this machine sleeps as long. */
const SLEEP = String(1_000_000 + process.pid)

describe(`kill -9 of the platform, ${ROUNDS} times`, () => {
  let folder: DataFolder
  let platform: PlatformProcess
  let client: KubeClient
  let before: Identities
  let finished = 0
  const writes = acknowledgedWrites(NAMESPACE)

  beforeAll(async () => {
    folder = await fixtureFolder()
    platform = await folder.up('--bare')
    client = await clientOf(platform)
    await using world = await worldOf(platform, NAMESPACE)
    await world.create(SERVER, 'piped', { image: world.images.fixture })
    await client.create(deployments, { metadata: world.at('sleepers'), spec: sleepers() })
    // Two processes that do not belong together any more: the second has left the group of the first.
    await client.create(pods, { metadata: world.at('fork'), spec: fork() })
    await world.reaches(SERVER, 'piped', 'Running')
    await serves()
    before = await identities(client)
    expect(before.services.length).toBeGreaterThan(0)
    expect(before.url).toMatch(/^http:\/\/127\./)
  })
  afterAll(async () => {
    const left = processesOf(platform)
    await client?.close()
    await folder?.[Symbol.asyncDispose]()
    await allGone(left)
  })

  for (let round = 1; round <= ROUNDS; round++)
    test(`round ${round}: nothing acknowledged is lost, nothing runs on, and all go on as they were`, async () => {
      expect(finished, 'rounds before this one went well').toBe(round - 1)
      const acknowledged = writes.count
      const killed = new AbortController()
      const seen = revisionsOf(client, killed.signal)
      const writing = writes.write(client, killed.signal)
      await eventually('they write', () => writes.count > acknowledged + 50)
      await sleep(Math.random() * 1_000)
      const running = processesOf(platform)
      expect(running.length).toBeGreaterThanOrEqual(2 * SLEEPERS)

      const dead = platform.kill()
      killed.abort()
      await Promise.all([dead, writing])
      // Every other time the next platform starts while the processes of this one are still going.
      if (round % 2 === 0) await allGone(running)
      await client.close()
      platform = await folder.up('--bare')
      client = await clientOf(platform)

      expect(await writes.compare(client)).toEqual([])
      expect(await identities(client)).toEqual(before)
      await allGone(running)
      await expectWatchable(await seen, round)
      await serves()
      finished = round
    })

  /** All pods run, and the server answers where it answered before. */
  async function serves(): Promise<void> {
    const { status } = await client.get(SERVER, { namespace: NAMESPACE, name: 'piped' })
    const answer = await eventually('a tool is called', () => ask(status?.url ?? '', 'echo', { message: 'still here' }), 180_000)
    expect(answer.structuredContent).toEqual({ arguments: { message: 'still here' } })
    // The guards' command lines hold it too, and the fork has two.
    const asleep = () => commandsWith(SLEEP).filter(({ command }) => command.startsWith('/bin/sleep ') || command.startsWith('sleep '))
    await eventually('each sleeper sleeps once', () => asleep().length === SLEEPERS + 2, 180_000)
  }

  /** A watcher resumes where it was, or receives 410 and lists again. */
  async function expectWatchable(revision: string, round: number): Promise<void> {
    const marker = await client.create(configMaps, { metadata: { namespace: NAMESPACE, name: `marker-${round}` } })
    const from = async (resourceVersion: string) => {
      const signal = AbortSignal.timeout(60_000)
      for await (const { object } of client.watch(configMaps, { namespace: NAMESPACE, resourceVersion, signal }))
        if (object.metadata.name === marker.metadata.name) return 'seen'
      return 'ended'
    }
    const outcome = await from(revision).catch((error: unknown) => {
      if (isExpired(error)) return 'expired'
      throw error
    })
    expect(['seen', 'expired']).toContain(outcome)
    expect(await from(String(Number(marker.metadata.resourceVersion) - 1))).toBe('seen')
    await client.delete(configMaps, { namespace: NAMESPACE, name: marker.metadata.name })
  }
})

describe('kill -9 of a platform that starts', () => {
  test('leaves a folder on which the next one starts, and nothing that runs', async () => {
    await using folder = await dataFolder()
    for (let round = 0; round < START_KILLS; round++) {
      const starting = folder.up('--bare').catch(() => undefined)
      // Its registry runs with a folder inside this one.
      const { pid } = await eventually('it starts', () => commandsWith(` up --data-dir ${folder.path} `)[0])
      await sleep(Math.random() * START_MS)
      const running = processesOf({ pid, folder: folder.path })
      process.kill(pid, 'SIGKILL')
      await starting
      await allGone(running)
    }
    const platform = await folder.up('--bare')
    await using client = closing(await clientOf(platform))
    const operator = { namespace: 'toolhive-system', name: 'toolhive-operator' }
    await eventually('the operator runs', async () => (await client.get(deployments, operator)).status?.availableReplicas === 1, 180_000)
    const left = processesOf(platform)
    expect(await platform.stop()).toBe(0)
    await allGone(left)
  })
})

function closing(client: KubeClient): KubeClient & AsyncDisposable {
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() })
}

interface Identities {
  readonly uid: string | undefined
  readonly url: string | undefined
  readonly services: readonly unknown[]
}

async function identities(client: KubeClient): Promise<Identities> {
  const { metadata } = await client.get(mcpServerType, { namespace: NAMESPACE, name: 'piped' })
  const { status } = await client.get(SERVER, { namespace: NAMESPACE, name: 'piped' })
  const { items } = await client.list(services, { namespace: NAMESPACE })
  const all = items.map((service) => [service.metadata.name, service.metadata.uid, service.spec?.clusterIP, service.spec?.ports])
  return { uid: metadata.uid, url: status?.url, services: all }
}

/** Watches until `signal`; the last revision that it saw. */
async function revisionsOf(client: KubeClient, signal: AbortSignal): Promise<string> {
  let last = (await client.list(configMaps, { namespace: NAMESPACE })).metadata.resourceVersion ?? ''
  try {
    for await (const { object } of client.watch(configMaps, { namespace: NAMESPACE, resourceVersion: last, signal }))
      last = object.metadata.resourceVersion ?? last
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return last
}

function sleepers() {
  const labels = { app: 'sleepers' }
  const spec = { containers: [{ name: 'main', image: 'exec:///bin/sleep', args: [SLEEP] }] }
  return { replicas: SLEEPERS, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } }
}

function fork() {
  const script = `(setsid sleep ${SLEEP} &) ; exec sleep ${SLEEP}`
  return { containers: [{ name: 'main', image: 'exec:///bin/sh', args: ['-c', script] }] }
}
