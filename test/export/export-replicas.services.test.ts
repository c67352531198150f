import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { mcpKinds } from '@thv/catalog/cluster/cluster-kinds'
import { type KubeClient, type KubeObject, leases, namespaces, type ResourceType } from '@thv/kube'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import type { TestServer } from '@thv/testkit/cluster/server-handle'
import { startEmbeddedServer } from '@thv/testkit/embedded/embedded-server'
import { describePostgres, testPostgres } from '@thv/testkit/postgres/describe-postgres'
import { startPostgres, type TestPostgres } from '@thv/testkit/postgres/postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseOf, eventually, type RegistryWorld, registryWorld, type Server } from '../registry/registry-world.ts'
import { startTraffic } from '../registry/traffic.ts'

/* Replicas on one PostgreSQL that follow a live cluster: one of them reads it, chosen by a Lease. */

const NAMESPACE = 'storm'
const LEASE = 'toolhive-registry-kubernetes-source'
const SERVER = mcpKinds.MCPServer[0] as ResourceType
const PATHS = ['/registry/all/v0.1/servers', '/registry/all/v0.1/servers?version=latest', '/registry/all/v0.1/servers?search=storm']
/** The lease lasts 15 s from when the other one saw it, which looks every 2.4 s at the latest: 19.8 s. The rest is for a busy machine. */
const TAKEOVER_MS = 25_000

describePostgres('replicas that follow a cluster', () => {
  let cluster: TestServer
  let admin: KubeClient
  beforeAll(async () => {
    cluster = await startEmbeddedServer()
    admin = adminClient(cluster)
    await installCrds(admin)
    await admin.create(namespaces, { metadata: { name: NAMESPACE } } as KubeObject)
  })
  afterAll(async () => {
    await admin?.close()
    await cluster?.stop()
  })

  const sourceOf = (election: object) => ({
    name: 'cluster',
    kubernetes: {
      kubeconfig: { path: cluster.kubeconfigPath },
      namespaces: [NAMESPACE],
      watch: { enabled: true, debounceInterval: '100ms' },
      leaderElection: election,
    },
  })
  const registries = [{ name: 'all', sources: ['cluster'] }]
  const holder = async (name = LEASE) => (await admin.tryGet(leases, { namespace: NAMESPACE, name }))?.spec?.holderIdentity || undefined

  async function leads(server: Server): Promise<boolean> {
    const answer = await fetch(`${server.internalUrl}/health`, { signal: AbortSignal.timeout(10_000) })
    return ((await answer.json()) as { leader?: boolean }).leader === true
  }

  function starter(world: RegistryWorld, config: string) {
    let count = 0
    return async () => {
      const folder = join(world.folder, `replica-${++count}`)
      mkdirSync(folder)
      const server = await world.serve(config, { folder })
      await server.ready()
      return server
    }
  }

  /** Entries of a server that starts with an empty store and reads the same cluster. */
  async function freshEntries(): Promise<Entries> {
    const world = registryWorld()
    const server = await world.serve(world.config({ sources: [sourceOf({ enabled: false })], registries }))
    await server.ready()
    const entries = await entriesOf(server)
    await server.stop()
    return entries
  }

  test('the leader is killed, frozen and replaced during a storm of changes: nothing is lost and no read fails [001-094] [001-099] [001-100] [001-102] [001-122]', async () => {
    const world = registryWorld()
    const database = databaseOf(await testPostgres().createDatabase())
    const config = world.config({ sources: [sourceOf({ enabled: true, namespace: NAMESPACE })], registries, database })
    const start = starter(world, config)
    const storm = startStorm(admin)
    const [left, right] = await Promise.all([start(), start()])
    const leader = await eventually('one leads', async () => ((await leads(left)) ? left : (await leads(right)) ? right : undefined))
    const follower = leader === left ? right : left
    expect(await leads(follower)).toBe(false)
    const reads = startTraffic(follower.url, PATHS)

    const killed = { holder: await holder(), at: startStopwatch() }
    await leader.kill()
    await eventually('the other one leads', () => leads(follower))
    expect(await holder()).not.toBe(killed.holder)
    expect(killed.at.runningMs()).toBeLessThan(TAKEOVER_MS)
    await storm.more(20)
    await eventually('its changes are served', async () => (await entriesOf(follower)).has(storm.newest()))

    const second = await start()
    const readsOfSecond = startTraffic(second.url, PATHS)
    // A frozen process does not answer: the readiness probe of its pod fails, and clients go to the others.
    expect(await reads.stop()).toEqual([])
    follower.child.kill('SIGSTOP')
    await eventually('the other one leads', () => leads(second))
    const heir = await holder()
    await storm.more(20)
    follower.child.kill('SIGCONT')
    await eventually('the thawed one knows that it does not lead', async () => !(await leads(follower)))
    expect(await holder()).toBe(heir)
    const readsAgain = startTraffic(follower.url, PATHS)
    await storm.more(20)

    // A rolling update: the new pod is ready before the old one gets its signal.
    const third = await start()
    expect(await leads(second)).toBe(true)
    expect(await readsOfSecond.stop()).toEqual([])
    const before = await holder()
    // It ends only when another one has its Lease.
    const ended = await second.stop().then(async (code) => ({ code, holder: await holder() }))
    expect(ended).toEqual({ code: 0, holder: expect.any(String) })
    expect(ended.holder).not.toBe(before)
    await eventually('another one leads', async () => (await leads(third)) || (await leads(follower)))

    await storm.stop()
    const wanted = await freshEntries()
    expect(wanted.size).toBeGreaterThan(10)
    for (const server of [follower, third])
      await eventually('it serves what a fresh server reads', async () => {
        expect(await entriesOf(server)).toEqual(wanted)
        return true
      })
    expect(await readsAgain.stop()).toEqual([])
    expect(await Promise.all([follower.stop(), third.stop()])).toEqual([0, 0])
  })

  test('the database is away while the leader goes: another one leads, reads go on, and nothing is lost when it is back', async () => {
    const world = registryWorld()
    await using postgres = await ownPostgres()
    const election = { enabled: true, id: 'away', namespace: NAMESPACE, leaseDuration: '4s', renewDeadline: '3s', retryPeriod: '500ms' }
    const database = databaseOf(await postgres.createDatabase())
    const start = starter(world, world.config({ sources: [sourceOf(election)], registries, database }))
    const storm = startStorm(admin, 'away')
    const [left, right] = await Promise.all([start(), start()])
    const leader = await eventually('one leads', async () => ((await leads(left)) ? left : (await leads(right)) ? right : undefined))
    const follower = leader === left ? right : left
    const reads = startTraffic(follower.url, PATHS)
    await postgres.halt()
    try {
      await leader.kill()
      // The cluster decides which replica reads it, and not the database.
      await eventually('the other one leads', () => leads(follower))
      await storm.more(20)
      await reads.more(20)
    } finally {
      await postgres.start()
    }
    await storm.more(5)
    await storm.stop()
    const wanted = await freshEntries()
    await eventually('it serves what a fresh server reads', async () => {
      expect(await entriesOf(follower)).toEqual(wanted)
      return true
    })
    expect(await reads.stop()).toEqual([])
    expect(await follower.stop()).toBe(0)
  })

  test('registries with Leases of their own in one namespace lead side by side', async () => {
    const ids = [LEASE, `${LEASE}-live`, `${LEASE}-company`]
    const servers = await Promise.all(
      ids.map(async (id) => {
        const world = registryWorld()
        const server = await world.serve(world.config({ sources: [sourceOf({ enabled: true, id, namespace: NAMESPACE })], registries }))
        await server.ready()
        return server
      }),
    )
    for (const server of servers) expect(await leads(server)).toBe(true)
    expect(new Set(await Promise.all(ids.map(holder))).size).toBe(ids.length)
    expect(await Promise.all(servers.map((server) => server.stop()))).toEqual([0, 0, 0])
  })
})

type Entries = ReadonlyMap<string, string>

/** Name → its URLs. */
async function entriesOf(server: Server): Promise<Entries> {
  const entries = new Map<string, string>()
  let cursor = ''
  do {
    const { json, status, text } = await server.get(
      `/registry/all/v0.1/servers?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
    )
    if (status !== 200) throw new Error(`${status} ${text}`)
    for (const each of json.servers) entries.set(each.server.name, each.server.remotes.map(({ url }: { url: string }) => url).join(' '))
    cursor = json.metadata?.nextCursor ?? ''
  } while (cursor !== '')
  return entries
}

/** Time in which this process could run: what the machine stood still does not count. */
function startStopwatch(): { runningMs(): number } {
  const beatMs = 50
  const begin = performance.now()
  let last = begin
  let stalledMs = 0
  const timer = setInterval(() => {
    stalledMs += Math.max(0, performance.now() - last - 2 * beatMs)
    last = performance.now()
  }, beatMs)
  return {
    runningMs() {
      clearInterval(timer)
      return performance.now() - begin - stalledMs
    },
  }
}

/** One that a test may stop. */
async function ownPostgres(): Promise<TestPostgres & AsyncDisposable> {
  const postgres = await startPostgres()
  return Object.assign(postgres, { [Symbol.asyncDispose]: () => postgres.stop() })
}

/** Creates, edits and deletes exported servers until it is stopped. */
function startStorm(admin: KubeClient, prefix = 'storm') {
  let made = 0
  let isStopped = false
  const name = (index: number) => `${prefix}-${index}`
  const annotations = (url: string) => ({ 'toolhive.stacklok.dev/registry-export': 'true', 'toolhive.stacklok.dev/registry-url': url })
  const running = (async () => {
    while (!isStopped) {
      const index = made
      const metadata = { namespace: NAMESPACE, name: name(index), annotations: annotations(`https://${name(index)}.example/`) }
      await admin.create(SERVER, { metadata, spec: { image: 'x.example/y:1', transport: 'sse' } } as KubeObject)
      made++
      if (index % 3 === 1) {
        const body = { metadata: { annotations: annotations(`https://${name(index - 1)}.example/edited`) } }
        await admin.patch(SERVER, { namespace: NAMESPACE, name: name(index - 1) }, { kind: 'merge', body })
      }
      if (index % 3 === 2) await admin.delete(SERVER, { namespace: NAMESPACE, name: name(index - 1) })
      await sleep(40)
    }
  })()
  return {
    /** Of an entry that stays. */
    newest: () => `dev.stacklok.toolhive/${NAMESPACE}.${name(made - 1 - ((made - 1) % 3) - 3)}`,
    async more(count: number) {
      const goal = made + count
      await eventually(`${count} more changes`, () => made >= goal)
    },
    async stop() {
      isStopped = true
      await running
    },
  }
}
