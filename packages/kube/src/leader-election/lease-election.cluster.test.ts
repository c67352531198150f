import { randomBytes } from 'node:crypto'
import { type FaultyProxy, startFaultyProxy } from '@thv/testkit/cluster/faults/faulty-proxy'
import { describeCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { startTestServer, type TestServer } from '@thv/testkit/test-server'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { createKubeClient, type KubeClient } from '../client/client.ts'
import { bearerToken } from '../client/connection.ts'
import { leases } from '../objects/resource-types.ts'
import { eventually } from '../testing/watched-kind.ts'
import { runWithLease } from './lease-election.ts'

/** Whole seconds for the duration, since that is what a Lease holds. */
const times = { leaseDurationMs: 4_000, renewDeadlineMs: 3_000, retryPeriodMs: 300 }

interface Candidate {
  readonly identity: string
  readonly proxy: FaultyProxy
  readonly stop: AbortController
  readonly done: Promise<void>
  readonly lost: string[]
  working: number
}

describeCluster('lease election on the API server', () => {
  let server: TestServer
  let truth: KubeClient
  let namespace: string
  let name: string
  /** Starts and stops of work, in order. */
  let diary: string[]
  let most: number
  const candidates: Candidate[] = []
  const clients: KubeClient[] = []

  beforeAll(async () => {
    server = await startTestServer()
    truth = connect(server.url)
    namespace = await testNamespace('lease', server)
  })
  afterAll(async () => {
    for (const client of clients.splice(0)) await client.close()
    await server?.stop()
  })
  beforeEach(() => {
    name = `lease-${randomBytes(4).toString('hex')}`
    diary = []
    most = 0
  })
  afterEach(async () => {
    server.unfreeze()
    for (const { stop, proxy } of candidates) {
      proxy.heal()
      stop.abort()
    }
    await Promise.all(candidates.map(({ done }) => done))
    for (const { proxy } of candidates.splice(0)) await proxy.close()
    expect(most).toBe(1)
  })

  function connect(url: string): KubeClient {
    const client = createKubeClient({ server: url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
    clients.push(client)
    return client
  }

  /** Each has a network of its own; cut off from the server it is as good as killed. */
  async function candidate(identity: string): Promise<Candidate> {
    const proxy = await startFaultyProxy(server.url)
    const stop = new AbortController()
    const self: Candidate = {
      identity,
      proxy,
      stop,
      lost: [],
      working: 0,
      done: runWithLease({
        client: connect(proxy.url),
        namespace,
        name,
        identity,
        ...times,
        signal: stop.signal,
        onStart: async (signal) => {
          diary.push(`+${identity}`)
          self.working++
          most = Math.max(
            most,
            candidates.reduce((sum, { working }) => sum + working, 0),
          )
          await new Promise((resolve) => {
            if (signal.aborted) resolve(undefined)
            signal.addEventListener('abort', resolve)
          })
          diary.push(`-${identity}`)
          self.working--
        },
        onLost: (reason) => self.lost.push(reason.message),
      }),
    }
    candidates.push(self)
    return self
  }

  const holder = async () => (await truth.get(leases, { namespace, name })).spec?.holderIdentity

  async function leaderAndFollower(): Promise<[Candidate, Candidate]> {
    const all = await Promise.all(['a', 'b'].map(candidate))
    await eventually('somebody leads', () => all.some(({ working }) => working === 1))
    const leader = all.find(({ working }) => working === 1)
    const follower = all.find((other) => other !== leader)
    if (!leader || !follower) throw new Error('no leader')
    return [leader, follower]
  }

  test('two candidates: one works; a graceful stop hands over', async () => {
    const [leader, follower] = await leaderAndFollower()
    expect(await holder()).toBe(leader.identity)
    leader.stop.abort()
    await leader.done
    await eventually('the other leads', () => follower.working === 1)
    expect(await holder()).toBe(follower.identity)
    expect(diary).toEqual([`+${leader.identity}`, `-${leader.identity}`, `+${follower.identity}`])
    const { spec } = await truth.get(leases, { namespace, name })
    expect(spec).toMatchObject({ leaseDurationSeconds: 4 })
    expect(spec?.leaseTransitions).toBeGreaterThanOrEqual(1)
  })

  test('a leader that is cut off stops before the other begins', async () => {
    const [leader, follower] = await leaderAndFollower()
    leader.proxy.blackhole()
    await eventually('the other leads', () => follower.working === 1)
    expect(diary).toEqual([`+${leader.identity}`, `-${leader.identity}`, `+${follower.identity}`])
    expect(leader.lost).toHaveLength(1)
  })

  test('a frozen server: the leader stops; after it wakes exactly one works', async () => {
    const [leader, follower] = await leaderAndFollower()
    server.freeze()
    await eventually('the leader stops', () => leader.working === 0)
    expect(follower.working).toBe(0)
    expect(leader.lost[0]).toContain('not renewed within 3000 ms')
    server.unfreeze()
    await eventually('somebody leads', () => leader.working + follower.working === 1)
    expect(diary.slice(0, 2)).toEqual([`+${leader.identity}`, `-${leader.identity}`])
  })

  test('a killed server that comes back', async () => {
    const [leader, follower] = await leaderAndFollower()
    await server.kill()
    await eventually('the leader stops', () => leader.working === 0)
    await server.restart()
    await eventually('somebody leads', () => leader.working + follower.working === 1)
    expect(diary.slice(0, 2)).toEqual([`+${leader.identity}`, `-${leader.identity}`])
  })

  test('a lease stolen by hand: the leader stops, and one comes back when the thief is silent', async () => {
    const [leader, follower] = await leaderAndFollower()
    await truth.patch(leases, { namespace, name }, { kind: 'merge', body: { spec: { holderIdentity: 'thief' } } })
    await eventually('the leader stops', () => leader.working === 0)
    expect(leader.lost).toEqual([`lease ${namespace}/${name}: taken by "thief"`])
    expect(await holder()).toBe('thief')
    await eventually('somebody leads', () => leader.working + follower.working === 1)
  })

  test('a lease deleted by hand', async () => {
    const [leader, follower] = await leaderAndFollower()
    follower.stop.abort()
    await follower.done
    await truth.delete(leases, { namespace, name })
    await eventually('it is there again', async () => (await truth.tryGet(leases, { namespace, name })) !== undefined)
    expect(await holder()).toBe(leader.identity)
    expect(leader.lost).toEqual([])
  })
})
