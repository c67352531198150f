import { randomUUID } from 'node:crypto'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { startRedis, startSentinels, type TestRedis } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { afterEach, describe, expect, it } from 'vitest'
import { type RunningDocument, runDocument } from './testing/run-document.ts'
import { spawnReadyRunner } from './testing/runner-process.ts'

const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

const ENV = { THV_SESSION_REDIS_PASSWORD: 'pa55' }
const BUCKET = 4
const limits = { rate_limit_config: { shared: { maxTokens: BUCKET, refillPeriod: '1h' } } }

async function start(fixture: Fixture, sessionRedis: object, document: object = {}): Promise<RunningDocument> {
  const running = await runDocument(fixture.url, { scaling_config: { session_redis: sessionRedis }, ...document }, ENV)
  open.push(running)
  return running
}

async function fixtureOf(era: 'legacy' | 'modern'): Promise<Fixture> {
  const fixture = await startFixture({ era })
  open.push(fixture)
  return fixture
}

async function redis(): Promise<{ server: TestRedis; address: string }> {
  const server = await startRedis({ password: 'pa55' })
  open.push(server)
  return { server, address: `${server.host}:${server.port}` }
}

/** Until Redis is connected a session cannot be stored, and the client gets 503. */
async function initialized({ client }: RunningDocument): Promise<WireClient> {
  await expect.poll(async () => (await client.initialize()).status, { timeout: 30_000 }).toBe(200)
  return client
}

describeRedis('runners that share a Redis', () => {
  it('serve sessions of each other, and the second goes on when the first has ended', async () => {
    const fixture = await fixtureOf('legacy')
    const { address } = await redis()
    const one = await start(fixture, { address })
    const client = await initialized(one)
    const two = await start(fixture, { address })
    const elsewhere = new WireClient(two.url)
    elsewhere.sessionId = client.sessionId
    await expect.poll(async () => (await elsewhere.call('echo', { text: 'a' })).status, { timeout: 30_000 }).toBe(200)
    await one[Symbol.asyncDispose]()
    expect((await elsewhere.call('echo', { text: 'b' })).status).toBe(200)
    const stranger = new WireClient(two.url)
    stranger.sessionId = randomUUID()
    await expect.poll(async () => (await stranger.call('echo')).status, { timeout: 30_000 }).toBe(404)
  })

  it('work as the bundle that users start', async () => {
    const fixture = await fixtureOf('legacy')
    const { address } = await redis()
    const config = { remote_url: fixture.url, remote_policy: { allow_loopback: true }, transport: 'streamable-http' }
    await using runner = await spawnReadyRunner({ ...config, scaling_config: { session_redis: { address } } }, ENV)
    const client = new WireClient(runner.url)
    await expect.poll(async () => (await client.initialize()).status, { timeout: 30_000 }).toBe(200)
    expect((await client.call('echo', { text: 'a' })).status).toBe(200)
  })

  it('count one limit together, each its own while Redis is away, and together again afterwards', async () => {
    const fixture = await fixtureOf('modern')
    const { server, address } = await redis()
    const runners = [await start(fixture, { address }, limits), await start(fixture, { address }, limits)]
    const statuses = async (rounds: number) => {
      const all: number[] = []
      for (let i = 0; i < rounds; i++) for (const { client } of runners) all.push((await client.modernCall('echo')).status)
      return all.filter((status) => status === 200).length
    }
    const inRedis = async () => (await server.command('EXISTS', 'thv:rl:{:demo}:shared')).includes(':1')
    // A call before the connection is there is counted locally.
    for (const { client } of runners) {
      const isCounted = async () => {
        await server.command('FLUSHALL')
        await client.modernCall('echo')
        return inRedis()
      }
      await expect.poll(isCounted, { timeout: 30_000, interval: 100 }).toBe(true)
    }
    // A call for which Redis takes too long on a busy machine is counted locally.
    const together = async () => {
      await server.command('FLUSHALL')
      return statuses(4)
    }
    await expect.poll(together, { timeout: 60_000, interval: 100 }).toBe(4)
    await server.kill()
    expect(await statuses(6)).toBeLessThanOrEqual(8) // at most one full bucket per replica
    expect(await statuses(1)).toBe(0)
    await server.start()
    const countsInRedis = async () => {
      await statuses(1)
      return inRedis()
    }
    await expect.poll(countsInRedis, { timeout: 30_000, interval: 100 }).toBe(true)
  })

  it.each<[string, (server: TestRedis) => Promise<void> | void, string]>([
    ['frozen', (server) => server.freeze(), 'pa55'],
    ['full', async (server) => void (await server.command('CONFIG', 'SET', 'maxmemory', '1')), 'pa55'],
    ['closed to their password', () => undefined, 'another'],
    ['holding something else under their keys', async (server) => void (await server.command('SET', 'thv:rl:{:demo}:shared', 'x')), 'pa55'],
  ])('hold their limits each by itself, and answer every call, while Redis is %s', async (_, breakIt, password) => {
    const fixture = await fixtureOf('modern')
    const { server, address } = await redis()
    const document = { scaling_config: { session_redis: { address } }, ...limits }
    const running = await runDocument(fixture.url, document, { THV_SESSION_REDIS_PASSWORD: password })
    open.push(running)
    const { client, metricsUrl } = running
    await breakIt(server)
    try {
      const statuses: number[] = []
      for (let at = 0; at < 12; at++) statuses.push((await client.modernCall('echo')).status)
      expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(2 * BUCKET) // some may have been counted in Redis before
      expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(BUCKET)
      expect(new Set(statuses)).toEqual(new Set([200, 429]))
      expect(await (await fetch(metricsUrl)).text()).toMatch(/^toolhive_rate_limit_local_total(\{.*\})? [1-9]/m)
    } finally {
      server.unfreeze()
    }
  })

  it('refuse new sessions with 503 while Redis is away, keep known ones, and are never stuck', async () => {
    const fixture = await fixtureOf('legacy')
    const { server, address } = await redis()
    const one = await start(fixture, { address })
    const client = await initialized(one)
    server.freeze()
    try {
      expect((await client.call('echo')).status).toBe(200)
      const other = new WireClient(one.url)
      expect((await other.initialize()).status).toBe(503)
      expect((await client.call('echo')).status).toBe(200)
    } finally {
      server.unfreeze()
    }
    const later = new WireClient(one.url)
    await expect.poll(async () => (await later.initialize()).status, { timeout: 30_000 }).toBe(200)
  })

  it('follow a failover that the Sentinels decide', async () => {
    const fixture = await fixtureOf('legacy')
    const sentinels = await startSentinels({ password: 'pa55' })
    open.push(sentinels)
    const addresses = sentinels.addresses.map(({ host, port }) => `${host}:${port}`)
    const one = await start(fixture, { sentinel: { master_name: sentinels.masterName, addresses } })
    const client = await initialized(one)
    const isCopied = async () => (await sentinels.replica.command('EXISTS', `thv:proxy:session:${client.sessionId}`)).includes(':1')
    await expect.poll(isCopied, { timeout: 30_000 }).toBe(true)
    await sentinels.primary.kill()
    expect((await client.call('echo')).status).toBe(200)
    const other = new WireClient(one.url)
    await expect.poll(async () => (await other.initialize()).status, { timeout: 60_000, interval: 200 }).toBe(200)
    await expect.poll(async () => (await client.call('echo')).status, { timeout: 30_000, interval: 200 }).toBe(200)
  })
})
