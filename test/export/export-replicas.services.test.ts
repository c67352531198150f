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
import { afterAll, beforeAll, type ExpectStatic, type TestContext, test } from 'vitest'
import { databaseOf, eventually, type RegistryWorld, registryWorld, type Server } from '../registry/registry-world.ts'
import { startTraffic } from '../registry/traffic.ts'

/*
 * Replicas on one PostgreSQL that follow a live cluster: one of them reads it, chosen by a Lease. The tests run side by side, each in a
 * namespace of its own: they mostly wait for Leases to end.
 */

const LEASE = 'toolhive-registry-kubernetes-source'
const SERVER = mcpKinds.MCPServer[0] as ResourceType
/** Of each of the clients that read all the time. */
const PAUSE_MS = 20
const PATHS = ['/registry/all/v0.1/servers', '/registry/all/v0.1/servers?version=latest', '/registry/all/v0.1/servers?search=storm']
/** The lease lasts 15 s from when the other one saw it, which looks every 2.4 s at the latest: 19.8 s. The rest is for a busy machine; two leases would be 30 s. */
const TAKEOVER_MS = 29_000

describePostgres('replicas that follow a cluster', () => {
  let cluster: TestServer
  let admin: KubeClient
  beforeAll(async () => {
    cluster = await startEmbeddedServer()
    admin = adminClient(cluster)
    await installCrds(admin)
    for (const name of ['killed', 'frozen', 'away', 'beside']) await admin.create(namespaces, { metadata: { name } } as KubeObject)
  })
  afterAll(async () => {
    await admin?.close()
    await cluster?.stop()
  })

  const sourceOf = (namespace: string, election: object) => ({
    name: 'cluster',
    kubernetes: {
      kubeconfig: { path: cluster.kubeconfigPath },
      namespaces: [namespace],
      watch: { enabled: true, debounceInterval: '100ms' },
      leaderElection: election,
    },
  })
  const registries = [{ name: 'all', sources: ['cluster'] }]
  const holder = async (namespace: string, name = LEASE) =>
    (await admin.tryGet(leases, { namespace, name }))?.spec?.holderIdentity || undefined

  async function leads(server: Server): Promise<boolean> {
    const answer = await fetch(`${server.internalUrl}/health`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(10_000) })
    return ((await answer.json()) as { leader?: boolean }).leader === true
  }

  /** Two replicas, as soon as one of them leads. */
  async function startTwo(start: () => Promise<Server>): Promise<{ leader: Server; follower: Server }> {
    const [left, right] = await Promise.all([start(), start()])
    return await eventually('one leads', async () => {
      if (await leads(left)) return { leader: left, follower: right }
      return (await leads(right)) && { leader: right, follower: left }
    })
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
  async function freshEntries(namespace: string, context: TestContext): Promise<Entries> {
    const world = registryWorld(context)
    const server = await world.serve(world.config({ sources: [sourceOf(namespace, { enabled: false })], registries }))
    await server.ready()
    const entries = await entriesOf(server)
    await server.kill()
    return entries
  }

  /** Each serves what the storm has made until now, however far it goes on meanwhile. */
  async function servesChanges(storm: ReturnType<typeof startStorm>, servers: readonly Server[]): Promise<void> {
    await storm.more(6)
    const newest = storm.newest()
    for (const server of servers) await eventually('the changes are served', async () => (await entriesOf(server)).has(newest))
  }

  /** Each serves, entry by entry, what a server that starts now reads. */
  async function expectFresh(expect: ExpectStatic, servers: readonly Server[], wanted: Entries): Promise<void> {
    expect(wanted.size).toBeGreaterThan(5)
    for (const server of servers)
      await eventually('it serves what a fresh server reads', async () => {
        expect(await entriesOf(server)).toEqual(wanted)
        return true
      })
  }

  test.concurrent('the leader is killed, and later updated, during a storm of changes: another takes over, nothing is lost and no read fails [001-099] [001-102] [001-122]', async (context) => {
    const { expect } = context
    const namespace = 'killed'
    const world = registryWorld(context)
    const database = databaseOf(await testPostgres().createDatabase())
    const config = world.config({ sources: [sourceOf(namespace, { enabled: true, namespace })], registries, database })
    const start = starter(world, config)
    const storm = startStorm(admin, namespace)
    const { leader, follower } = await startTwo(start)
    expect(await leads(follower)).toBe(false)
    const reads = startTraffic(follower.url, PATHS, { pauseMs: PAUSE_MS })

    const killed = { holder: await holder(namespace), at: startStopwatch() }
    await leader.kill()
    await eventually('the other one leads', () => leads(follower))
    expect(await holder(namespace)).not.toBe(killed.holder)
    expect(killed.at.runningMs()).toBeLessThan(TAKEOVER_MS)
    await storm.more(20)
    await servesChanges(storm, [follower])

    // A rolling update: the new pod is ready before the old one gets its signal.
    const next = await start()
    const readsOfNext = startTraffic(next.url, PATHS, { pauseMs: PAUSE_MS })
    expect(await leads(follower)).toBe(true)
    expect(await reads.stop()).toEqual([])
    const before = await holder(namespace)
    // It ends only when another one has its Lease.
    const ended = await follower.stop().then(async (code) => ({ code, holder: await holder(namespace) }))
    expect(ended).toEqual({ code: 0, holder: expect.any(String) })
    expect(ended.holder).not.toBe(before)
    await eventually('the new one leads', () => leads(next))

    await storm.more(10)
    await storm.stop()
    await expectFresh(expect, [next], await freshEntries(namespace, context))
    expect(await readsOfNext.stop()).toEqual([])
    expect(await next.stop()).toBe(0)
  })

  test.concurrent('the leader is frozen during a storm of changes, and thawed: another took over, it writes nothing, nothing is lost and no read fails [001-094] [001-100]', async (context) => {
    const { expect } = context
    const namespace = 'frozen'
    const world = registryWorld(context)
    const database = databaseOf(await testPostgres().createDatabase())
    const config = world.config({ sources: [sourceOf(namespace, { enabled: true, namespace })], registries, database })
    const start = starter(world, config)
    const storm = startStorm(admin, namespace)
    const { leader, follower } = await startTwo(start)
    const reads = startTraffic(follower.url, PATHS, { pauseMs: PAUSE_MS })
    await servesChanges(storm, [follower])

    // A frozen process does not answer: the readiness probe of its pod fails, and clients go to the others.
    leader.child.kill('SIGSTOP')
    await eventually('the other one leads', () => leads(follower))
    const heir = await holder(namespace)
    await storm.more(20)
    leader.child.kill('SIGCONT')
    await eventually('the thawed one knows that it does not lead', async () => !(await leads(leader)))
    expect(await holder(namespace)).toBe(heir)
    const readsOfThawed = startTraffic(leader.url, PATHS, { pauseMs: PAUSE_MS })
    await storm.more(10)
    const syncs = await syncsOf(leader)
    await storm.more(20)
    await servesChanges(storm, [follower, leader])
    expect(await syncsOf(leader)).toEqual(syncs)

    await storm.stop()
    await expectFresh(expect, [leader, follower], await freshEntries(namespace, context))
    expect([await reads.stop(), await readsOfThawed.stop()]).toEqual([[], []])
    expect(await Promise.all([leader.stop(), follower.stop()])).toEqual([0, 0])
  })

  test.concurrent('the database is away while the leader goes: another one leads, reads go on, and nothing is lost when it is back', async (context) => {
    const { expect } = context
    const namespace = 'away'
    const world = registryWorld(context)
    await using postgres = await ownPostgres()
    const election = { enabled: true, namespace, leaseDuration: '6s', renewDeadline: '4s', retryPeriod: '500ms' }
    const database = databaseOf(await postgres.createDatabase())
    const start = starter(world, world.config({ sources: [sourceOf(namespace, election)], registries, database }))
    const storm = startStorm(admin, namespace)
    const { leader, follower } = await startTwo(start)
    const reads = startTraffic(follower.url, PATHS, { pauseMs: PAUSE_MS })
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
    await expectFresh(expect, [follower], await freshEntries(namespace, context))
    expect(await reads.stop()).toEqual([])
    expect(await follower.stop()).toBe(0)
  })

  test.concurrent('registries with Leases of their own in one namespace lead side by side', async (context) => {
    const { expect } = context
    const namespace = 'beside'
    const ids = [LEASE, `${LEASE}-live`, `${LEASE}-company`]
    const servers = await Promise.all(
      ids.map(async (id) => {
        const world = registryWorld(context)
        const server = await world.serve(world.config({ sources: [sourceOf(namespace, { enabled: true, id, namespace })], registries }))
        await server.ready()
        return server
      }),
    )
    for (const server of servers) expect(await leads(server)).toBe(true)
    expect(new Set(await Promise.all(ids.map((id) => holder(namespace, id)))).size).toBe(ids.length)
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

/** Syncs that a replica has done, by their result: each line of the metric. */
async function syncsOf(server: Server): Promise<readonly string[]> {
  const answer = await fetch(`${server.internalUrl}/metrics`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(10_000) })
  const lines = (await answer.text()).split('\n').filter((line) => line.startsWith('thv_registry_syncs_total{'))
  if (lines.length === 0) throw new Error('no metric of syncs')
  return lines
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
function startStorm(admin: KubeClient, namespace: string) {
  let made = 0
  let isStopped = false
  const name = (index: number) => `storm-${index}`
  const annotations = (url: string) => ({ 'toolhive.stacklok.dev/registry-export': 'true', 'toolhive.stacklok.dev/registry-url': url })
  const running = (async () => {
    while (!isStopped) {
      const index = made
      const metadata = { namespace, name: name(index), annotations: annotations(`https://${name(index)}.example/`) }
      await admin.create(SERVER, { metadata, spec: { image: 'x.example/y:1', transport: 'sse' } } as KubeObject)
      made++
      if (index % 3 === 1) {
        const body = { metadata: { annotations: annotations(`https://${name(index - 1)}.example/edited`) } }
        await admin.patch(SERVER, { namespace, name: name(index - 1) }, { kind: 'merge', body })
      }
      if (index % 3 === 2) await admin.delete(SERVER, { namespace, name: name(index - 1) })
      await sleep(40)
    }
  })()
  return {
    /** Of an entry that stays, once six are made. */
    newest: () => `dev.stacklok.toolhive/${namespace}.${name(made - 1 - ((made - 1) % 3) - 3)}`,
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
