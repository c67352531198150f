import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FaultyProxy, startFaultyProxy } from '@thv/testkit/cluster/faults/faulty-proxy'
import { type HttpFaultServer, startHttpFaultServer } from '@thv/testkit/cluster/faults/http-fault-server'
import { describeCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { soakRounds } from '@thv/testkit/run/run-environment'
import { startTestServer, type TestServer } from '@thv/testkit/test-server'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { createSharedCaches } from './cache/shared-caches.ts'
import { createKubeClient, type KubeClient, type KubeClientOptions } from './client/client.ts'
import { type AuthSource, bearerToken } from './client/connection.ts'
import { tokenFile } from './config/token-file.ts'
import { createController, done, watchOwned, watchSelf } from './controller/controller.ts'
import type { ConfigMap } from './objects/builtin-kinds.ts'
import { formatKey } from './objects/object-key.ts'
import { setControllerReference } from './objects/owners.ts'
import { configMaps, roleBindings, roles, serviceAccounts } from './objects/resource-types.ts'
import type { KubeObject } from './objects/types.ts'
import { startTraffic, type Traffic } from './testing/traffic.ts'
import { eventually, type WatchedKind, watchKind } from './testing/watched-kind.ts'

/** Rounds of the kill, restart and compact suite; `npm run soak` asks for more. */
const rounds = soakRounds()

/**
 * Whatever is done to the server and the network between, after it the cache equals a fresh list and so do the events of the handlers.
 * ConfigMaps have no watch cache here (410 comes from etcd's compaction), ServiceAccounts have one (410 comes from restarts).
 */
describeCluster('reflector under faults', () => {
  let server: TestServer
  /** Straight to the server. */
  let truth: KubeClient
  let namespace: string
  const clients: KubeClient[] = []
  const closing: AsyncDisposable[] = []

  beforeAll(async () => {
    server = await startTestServer({ uncachedResources: ['configmaps'] })
    truth = connect(server)
  })
  afterAll(async () => {
    for (const client of clients.splice(0)) await client.close()
    await server?.stop()
  })
  beforeEach(async () => {
    namespace = await testNamespace('resilience', server)
  })
  afterEach(async () => {
    for (const open of closing.splice(0).reverse()) await open[Symbol.asyncDispose]()
  })

  function connect(at: { url: string; caPem: string }, options: KubeClientOptions & { auth?: AuthSource } = {}): KubeClient {
    const { auth = bearerToken(server.adminToken), ...rest } = options
    const client = createKubeClient({ server: at.url, tls: { ca: at.caPem }, auth }, rest)
    clients.push(client)
    return client
  }

  async function throughProxy(): Promise<FaultyProxy> {
    const proxy = await startFaultyProxy(server.url)
    closing.push(proxy)
    return proxy
  }

  async function throughFaultServer(): Promise<HttpFaultServer> {
    const faults = await startHttpFaultServer(server)
    closing.push(faults)
    return faults
  }

  function watchConfigMaps(client: KubeClient): WatchedKind<KubeObject> {
    const watched = watchKind<KubeObject>({ client, type: configMaps, namespace })
    closing.push(watched)
    return watched
  }

  function write(names = 30, pauseMs = 3): Traffic & AsyncDisposable {
    const traffic = startTraffic({ client: truth, type: configMaps, namespace, names, pauseMs })
    const disposable = Object.assign(traffic, { [Symbol.asyncDispose]: () => traffic.stop() })
    closing.push(disposable)
    return disposable
  }

  async function createMany(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, (_, n) => truth.create(configMaps, { metadata: { namespace, name: `m${n}` } })))
  }

  for (let round = 1; round <= rounds; round++) {
    test(`round ${round}: server killed and restarted, cut off, history compacted, all under writes`, async () => {
      const proxy = await throughProxy()
      const client = connect({ url: proxy.url, caPem: server.caPem })
      const maps = watchConfigMaps(client)
      const accounts = watchKind<KubeObject>({ client, type: serviceAccounts, namespace })
      closing.push(accounts)
      await Promise.all([maps, accounts].map(({ reflector }) => reflector.waitForSync(AbortSignal.timeout(60_000))))
      const mapWrites = write()
      const accountWrites = startTraffic({ client: truth, type: serviceAccounts, namespace, names: 20, pauseMs: 5 })
      closing.push({ [Symbol.asyncDispose]: () => accountWrites.stop() })
      const writtenAfter = async (count: number) => {
        const before = [mapWrites.writes, accountWrites.writes] as const
        // Of both, or one kind could have all the writes and the other nothing to prove.
        await eventually('writes go on', () => mapWrites.writes >= before[0] + count / 2 && accountWrites.writes >= before[1] + count / 2)
      }

      await writtenAfter(100)
      await server.kill()
      await sleep(200)
      await server.restart()
      await writtenAfter(100)

      const expiredBefore = maps.reflector.stats.expired
      proxy.blackhole()
      await writtenAfter(100)
      await server.compact()
      await writtenAfter(20)
      proxy.dropAll()
      proxy.heal()
      await eventually('410 after the compaction', () => maps.reflector.stats.expired > expiredBefore)

      await server.kill()
      await server.compact()
      await server.restart()
      await writtenAfter(50)
      proxy.dropAll()
      await writtenAfter(50)
      await mapWrites.stop()
      await accountWrites.stop()

      await maps.expectNothingMissed(truth)
      await accounts.expectNothingMissed(truth)
      // A list may stand for many events that came while the connection was down.
      expect(maps.replay.events.length).toBeGreaterThan(50)
      expect(accounts.replay.events.length).toBeGreaterThan(50)
    })
  }

  test('a half-open connection: the silence limit finds it, without an error or a list', async () => {
    const proxy = await throughProxy()
    const maps = watchConfigMaps(connect({ url: proxy.url, caPem: server.caPem }, { watchBodyTimeoutMs: 1_500 }))
    await maps.reflector.waitForSync(AbortSignal.timeout(60_000))
    await createMany(5)
    await maps.expectNothingMissed(truth)
    const { lists, errors } = maps.reflector.stats
    proxy.blackhole({ existingOnly: true })
    await truth.delete(configMaps, { namespace, name: 'm0' })
    await truth.patch(configMaps, { namespace, name: 'm1' }, { kind: 'merge', body: { data: { changed: 'yes' } } })
    await maps.expectNothingMissed(truth)
    expect(maps.reflector.stats).toMatchObject({ lists, errors })
  })

  test('a frozen server, and writes right after it thaws', async () => {
    const maps = watchConfigMaps(connect(server, { watchBodyTimeoutMs: 1_000 }))
    await maps.reflector.waitForSync(AbortSignal.timeout(60_000))
    await createMany(5)
    server.freeze()
    await sleep(3_000)
    server.unfreeze()
    const traffic = write()
    await eventually('writes go on', () => traffic.writes > 50)
    await traffic.stop()
    await maps.expectNothingMissed(truth)
  })

  test('429 with Retry-After for lists and watches', async () => {
    const faults = await throughFaultServer()
    const fault = { kind: 'status', status: 429, retryAfter: '1' } as const
    const lists = faults.inject({ fault, matches: (request) => isListOrWatch(request) && !isWatch(request), times: 2 })
    const watches = faults.inject({ fault, matches: isWatch, times: 3 })
    const traffic = write(10)
    const maps = watchConfigMaps(connect(faults))
    await maps.reflector.waitForSync(AbortSignal.timeout(60_000))
    await eventually('all refusals are used up', () => lists.applied === 2 && watches.applied === 3)
    await eventually('the watch brings events', () => maps.reflector.stats.events > 20)
    await traffic.stop()
    await maps.expectNothingMissed(truth)
    const refusals = faults.seen.filter(({ fault }) => fault === 'status')
    expect(refusals).toHaveLength(5)
  })

  test('a slow list of many pages, with changes between the pages', async () => {
    await createMany(40)
    const faults = await throughFaultServer()
    faults.inject({ fault: { kind: 'delay', ms: 300 }, matches: ({ url }) => url.includes('limit='), times: 100 })
    const traffic = write(60, 10)
    const maps = watchConfigMaps(connect(faults))
    await maps.reflector.waitForSync(AbortSignal.timeout(60_000))
    expect(faults.seen.filter(({ url }) => url.includes('continue=')).length).toBeGreaterThanOrEqual(4)
    await traffic.stop()
    await maps.expectNothingMissed(truth)
  })

  test('history compacted in the middle of a paged list', async () => {
    await createMany(30)
    const faults = await throughFaultServer()
    const slow = faults.inject({ fault: { kind: 'delay', ms: 2_500 }, matches: ({ url }) => url.includes('continue=') })
    const maps = watchConfigMaps(connect(faults))
    await eventually('the second page is asked for', () => slow.applied === 1)
    await truth.delete(configMaps, { namespace, name: 'm29' })
    await truth.create(configMaps, { metadata: { namespace, name: 'new' } })
    await server.compact()
    await maps.expectNothingMissed(truth)
    expect(maps.reflector.stats.expired).toBeGreaterThanOrEqual(1)
  })

  test('a version at the very edge of a compaction, from which the server cannot watch any more', async () => {
    const proxy = await throughProxy()
    const maps = watchConfigMaps(connect({ url: proxy.url, caPem: server.caPem }))
    await maps.reflector.waitForSync(AbortSignal.timeout(60_000))
    const key = { namespace, name: 'edge' }
    await truth.create(configMaps, { metadata: key })
    const change = async (n: number) => {
      const { metadata } = await truth.patch(configMaps, key, { kind: 'merge', body: { data: { n: String(n) } } })
      return Number(metadata.resourceVersion)
    }
    // The real server answers 500 to such a version, ours 410.
    const isGivenUp = () => maps.reflector.stats.abandoned > 0 || (server.plane === 'embedded' && maps.reflector.stats.expired > 0)
    // The cache must stand one version before the compaction: other writers of the server may spoil a try.
    for (let n = 0; !isGivenUp(); n++) {
      expect(n, 'tries').toBeLessThan(30)
      const seen = await change(2 * n)
      await eventually('the change is seen', () => Number(maps.reflector.stats.resourceVersion) >= seen)
      proxy.blackhole()
      const unseen = await change(2 * n + 1)
      await server.compact()
      const { metadata } = await truth.list(configMaps, { namespace, limit: 1 })
      proxy.dropAll()
      proxy.heal()
      if (unseen === seen + 1 && metadata.resourceVersion === String(unseen)) {
        await eventually('the version is given up', isGivenUp)
      }
      await maps.expectNothingMissed(truth)
    }
  })

  test('streams cut within an event, garbage in streams, resets', async () => {
    const faults = await throughFaultServer()
    const maps = watchConfigMaps(connect(faults))
    await maps.reflector.waitForSync(AbortSignal.timeout(60_000))
    const traffic = write(20)
    for (let n = 0; n < 6; n++) {
      faults.inject({ fault: { kind: 'cut', afterBytes: 1_500 + 777 * n }, matches: isWatch })
      faults.inject({ fault: { kind: 'garbage', afterBytes: 2_000 + 555 * n }, matches: isWatch })
      faults.inject({ fault: { kind: 'reset' }, matches: isListOrWatch })
    }
    // The first watch began before the rules.
    await server.kill()
    await server.restart()
    await eventually('all faults are used up', () => faults.counts.faults >= 18, 120_000)
    await traffic.stop()
    await maps.expectNothingMissed(truth)
    expect(maps.errors.length).toBeGreaterThanOrEqual(6)
  })

  test('a token that expires while the watch runs: the renewed one is read and the watch resumes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'thv-token-'))
    closing.push({ [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) })
    const account = { namespace, name: 'reader' }
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }]
    await truth.create(roles, { metadata: { namespace, name: 'reader' }, rules })
    await truth.create(roleBindings, {
      metadata: { namespace, name: 'reader' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
      subjects: [{ kind: 'ServiceAccount', ...account }],
    })
    // Good for a few seconds: the server gives a minute beyond the expiry.
    const dying = await server.serviceAccountToken({ ...account, expiresInSeconds: -54 })
    const path = join(folder, 'token')
    await writeFile(path, dying)
    const proxy = await throughProxy()
    const maps = watchConfigMaps(
      connect(
        { url: proxy.url, caPem: server.caPem },
        { auth: tokenFile({ path, errorCode: 'in_cluster_config_missing', maxAgeMs: 600_000 }) },
      ),
    )
    await maps.reflector.waitForSync(AbortSignal.timeout(60_000))
    await createMany(5)
    await maps.expectNothingMissed(truth)
    const late = connect(server, { auth: bearerToken(dying) })
    const isRefused = () =>
      late.list(configMaps, { namespace, limit: 1 }).then(
        () => false,
        (error) => error.status === 401,
      )
    await eventually('the token has expired', isRefused, 120_000)

    await writeFile(path, await server.serviceAccountToken(account))
    proxy.dropAll()
    await truth.delete(configMaps, { namespace, name: 'm0' })
    await maps.expectNothingMissed(truth)
    await truth.create(configMaps, { metadata: { namespace, name: 'after' } })
    await maps.expectNothingMissed(truth)
    expect(maps.reflector.stats.relists).toBe(0)
  })

  test('an event that never comes is found, counted and repaired by the safety check', async () => {
    const lossy: Pick<KubeClient, 'list' | 'listPages' | 'watch'> = {
      ...truth,
      async *watch(type, options) {
        for await (const event of truth.watch(type, options)) if (event.object.metadata.name !== 'lost') yield event
      },
    }
    const watched = watchKind<KubeObject>({ client: lossy, type: configMaps, namespace, safetyRelistMs: 2_000, safetyGraceMs: 1_000 })
    closing.push(watched)
    await watched.reflector.waitForSync(AbortSignal.timeout(60_000))
    await truth.create(configMaps, { metadata: { namespace, name: 'lost' } })
    await createMany(10)
    await watched.expectNothingMissed(truth)
    expect(watched.reflector.stats).toMatchObject({ missed: 1, relists: 0 })
    const traffic = write(10)
    const { safetyChecks } = watched.reflector.stats
    await eventually('two checks under writes', () => watched.reflector.stats.safetyChecks >= safetyChecks + 2)
    await traffic.stop()
    await watched.expectNothingMissed(truth)
    expect(watched.reflector.stats.missed, 'late is not missed').toBe(1)
  })

  test('a controller converges although the server is killed in the middle, and repairs what others break', async () => {
    const proxy = await throughProxy()
    const client = connect({ url: proxy.url, caPem: server.caPem })
    const caches = createSharedCaches(client, { backoff: { baseMs: 100, maxMs: 1_000 } })
    const parents = caches.of(configMaps, { namespace, labelSelector: 'role=parent' })
    const children = caches.of(configMaps, { namespace, labelSelector: 'role=child' })
    const running = new Set<string>()
    const overlaps: string[] = []
    const controller = createController({
      name: 'children',
      concurrency: 4,
      queue: { backoff: { baseMs: 50, maxMs: 1_000 } },
      sources: [watchSelf(parents), watchOwned(children, { group: '', ownerKind: 'ConfigMap' })],
      reconcile: async (key, { signal }) => {
        const text = formatKey(key)
        if (running.has(text)) overlaps.push(text)
        running.add(text)
        try {
          const parent = parents.store.get(key)
          if (parent === undefined) return done
          const child: ConfigMap = {
            metadata: { namespace, name: `${key.name}-child`, labels: { role: 'child' } },
            data: { ...parent.data },
          }
          const owned = setControllerReference(child, { object: parent, type: configMaps })
          await client.apply(configMaps, owned, { fieldManager: 'test', force: true, signal, timeoutMs: 3_000 })
          return done
        } finally {
          running.delete(text)
        }
      },
    })
    const stop = new AbortController()
    const run = controller.run(stop.signal)
    const makeParent = async (n: number) =>
      await truth.apply(
        configMaps,
        { metadata: { namespace, name: `p${n}`, labels: { role: 'parent' } }, data: { n: String(n) } },
        { fieldManager: 'maker', force: true },
      )
    const childOf = (n: number) => ({ namespace, name: `p${n}-child` })
    const isComplete = async (count: number) => {
      const { items } = await truth.listAll(configMaps, { namespace, labelSelector: 'role=child' })
      return items.length === count && items.every(({ metadata, data }) => metadata.name === `p${data?.n}-child`)
    }
    try {
      await Promise.all(Array.from({ length: 40 }, (_, n) => makeParent(n)))
      await server.kill()
      await server.restart()
      await Promise.all(Array.from({ length: 40 }, (_, n) => makeParent(40 + n)))
      proxy.dropAll()
      await eventually('80 children', () => isComplete(80))
      // An object that comes and goes while a watch is broken and its history lost appears in no event: the cache must have seen them first.
      await eventually('80 children in the cache', () =>
        Array.from({ length: 80 }, (_, n) => childOf(n)).every((key) => children.store.get(key)),
      )

      await truth.delete(configMaps, childOf(3))
      await truth.patch(configMaps, childOf(4), { kind: 'merge', body: { data: { n: 'wrong' } } })
      await eventually('the children are repaired', () => isComplete(80), 180_000).catch(async (cause: unknown) => {
        const { items } = await truth.listAll(configMaps, { namespace, labelSelector: 'role=child' })
        const [third, fourth] = [3, 4].map((n) => items.find(({ metadata }) => metadata.name === `p${n}-child`)?.data)
        const seen = { third: children.store.get(childOf(3))?.data, fourth: children.store.get(childOf(4))?.data }
        throw new Error(`${items.length} children: ${JSON.stringify({ third, fourth, seen, stats: controller.stats })}`, { cause })
      })
      // The events of the repairs themselves may still be on their way; after them nothing may go on turning.
      await eventually('a second without a reconcile', async () => {
        const before = controller.stats.reconciles
        await sleep(1_000)
        return controller.stats.reconciles === before
      })
      expect(controller.stats).toMatchObject({ depth: 0, delayed: 0, active: 0, stuck: 0 })
      expect(overlaps).toEqual([])
    } finally {
      stop.abort()
      await run
      await caches.close()
    }
  })

  test('another server with older versions in the place of the first', async () => {
    const restored = await startTestServer()
    closing.push(restored)
    await testNamespace('other', restored)
    const second = createKubeClient({ server: restored.url, tls: { ca: restored.caPem }, auth: bearerToken(restored.adminToken) })
    clients.push(second)
    await second.create(configMaps, { metadata: { namespace: 'default', name: 'from-backup' } })
    const first = connect(server)
    let current = first
    const switched: Pick<KubeClient, 'list' | 'listPages' | 'watch'> = {
      list: (type, options) => current.list(type, options),
      listPages: (type, options) => current.listPages(type, options),
      watch: (type, options) => current.watch(type, options),
    }
    const watched = watchKind<KubeObject>({ client: switched, type: configMaps, namespace: 'default' })
    closing.push(watched)
    await watched.reflector.waitForSync(AbortSignal.timeout(60_000))
    await truth.create(configMaps, { metadata: { namespace: 'default', name: 'never-saved' } })
    await watched.expectNothingMissed(truth)
    current = second
    await first.close()
    await watched.expectNothingMissed(second)
    expect(watched.reflector.stats).toMatchObject({ rewinds: 1 })
    await second.create(configMaps, { metadata: { namespace: 'default', name: 'next' } })
    await watched.expectNothingMissed(second)
  })
})

function isWatch({ url }: { url: string }): boolean {
  return url.includes('watch=')
}

function isListOrWatch({ url }: { url: string }): boolean {
  return url.includes('/configmaps?')
}
