import { randomUUID } from 'node:crypto'
import { isThvError } from '@thv/kernel/errors'
import { createRecordCipher } from '@thv/store/redis/record-cipher'
import { RedisAuthStore } from '@thv/store/redis/redis-auth-store'
import { openRedis, type RedisClient, redisScript } from '@thv/store/redis/redis-client'
import { send, startSentinels, type TestRedis, type TestSentinels } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { positiveCount } from '@thv/testkit/run/run-environment'
import { describe, expect, it, vi } from 'vitest'
import { startTestAuthServer } from '../testing/test-auth-server.ts'
import { UpstreamRefused } from '../upstream/upstream-refused.ts'
import type { UpstreamRefresher } from '../upstream-tokens.ts'
import { UpstreamVault } from './upstream-vault.ts'

/*
 * Three replicas of an authorization server on Sentinel, whose primary is killed again and again while users log in, clients refresh and the vault
 * renews tokens that a provider takes once. SOAK_FAILOVERS=50 (`npm run soak`) makes more rounds.
 */

const ROUNDS = positiveCount('SOAK_FAILOVERS', 5)
const MINUTE = 60_000
const PREFIX = 'thv:auth:{team:server}:'
const PASSWORD = 'pa55'
const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip
const PING = redisScript("return redis.call('PING')")

/** Takes each refresh token once. Its access tokens end at once, so that every use is a refresh. */
class StrictProvider implements UpstreamRefresher {
  readonly provider = 'github'
  readonly generation = 'g'
  readonly #good = new Set<string>()
  refreshes = 0
  refused = 0

  issue(): { accessToken: string; refreshToken: string; expiresAt: number } {
    const refreshToken = randomUUID()
    this.#good.add(refreshToken)
    return { accessToken: randomUUID(), refreshToken, expiresAt: Date.now() }
  }

  async refresh(refreshToken: string) {
    this.refreshes++
    if (this.#good.delete(refreshToken)) return this.issue()
    this.refused++
    throw new UpstreamRefused('invalid_grant')
  }
}

interface Replica {
  readonly redis: RedisClient
  readonly store: RedisAuthStore
  readonly vault: UpstreamVault
}

describeRedis('replicas on Sentinel whose primary is killed', () => {
  it(
    'lose no token that a client has, use none twice, and burn none of a provider [002-095]',
    async () => {
      await using stack = new AsyncDisposableStack()
      const sentinels = stack.use(await startSentinels({ password: PASSWORD, failoverTimeoutMs: 1_500 }))
      const provider = new StrictProvider()
      const facts: Facts = { unacknowledged: 0, retries: 0, done: 0, refreshTokens: [], codes: [], problems: [] }
      const replicas = await Promise.all([1, 2, 3].map(() => startReplica(sentinels, provider, facts, stack)))
      const [{ store }] = replicas as [Replica]
      const server = stack.use(await startTestAuthServer({ store }))
      const client = await server.client()
      const issued = await server.tokens(client)
      expect(issued.status).toBe(200)
      const stop = new AbortController()
      const traffic = replicas.flatMap((replica, index) => [
        logIns(replica, facts, stop.signal),
        upstreamUse(replica, index, facts, { provider, stop: stop.signal }),
      ])

      stack.defer(async () => {
        stop.abort()
        await Promise.allSettled(traffic)
      })
      let [primary, replica]: [TestRedis, TestRedis] = [sentinels.primary, sentinels.replica]
      for (let round = 1; round <= ROUNDS; round++) {
        await progress(facts, 30)
        await primary.kill()
        await progress(facts, 10) // only a new primary makes that possible
        await primary.start()
        await primary.command('REPLICAOF', replica.host, String(replica.port))
        await inSync(sentinels, { primary: replica, replica: primary })
        ;[primary, replica] = [replica, primary]
      }
      stop.abort()
      await Promise.all(traffic)

      expect(facts.problems).toEqual([])
      // A client that logged in before the first failover goes on.
      const form = { grant_type: 'refresh_token', refresh_token: issued.body['refresh_token'] ?? '', client_id: client }
      expect(await server.token(form)).toMatchObject({ status: 200, body: { access_token: expect.any(String) } })
      expect(facts.refreshTokens.length).toBeGreaterThan(5 * ROUNDS)
      for (const id of facts.refreshTokens) expect(await store.get('refresh', id)).toBeDefined()
      for (const id of facts.codes) expect(await store.consume('code', id, { graceMs: 0 })).toBe('reused')
      expect(provider.refreshes).toBeGreaterThan(ROUNDS)
      expect(provider.refused).toBe(0)
    },
    120_000 + ROUNDS * 60_000,
  )
})

interface Facts {
  unacknowledged: number
  /** Operations that ended with "try again". */
  retries: number
  done: number
  /** Stored, and acknowledged by a replica. */
  readonly refreshTokens: string[]
  readonly codes: string[]
  readonly problems: string[]
}

async function startReplica(
  { masterName, addresses }: TestSentinels,
  provider: StrictProvider,
  facts: Facts,
  stack: AsyncDisposableStack,
): Promise<Replica> {
  const onUnacknowledged = () => {
    facts.unacknowledged++
  }
  const redis = stack.use(
    await openRedis({ sentinel: { masterName, addresses }, password: PASSWORD, db: 0, timeoutMs: 2_000, onUnacknowledged }),
  )
  await vi.waitFor(() => redis.run(PING, ['{x}'], []), { timeout: 30_000, interval: 50 })
  const cipher = createRecordCipher(['secret'])
  // A failover on a busy machine takes longer than one that clients should wait for.
  const store = stack.use(new RedisAuthStore({ redis, cipher, keyPrefix: PREFIX, patienceMs: 60_000 }))
  const vault = stack.use(new UpstreamVault({ store, cipher: () => cipher, refreshers: [provider] }))
  return { redis, store, vault }
}

/** Pending login, code, refresh token: as a client goes through them. */
async function logIns({ store }: Replica, facts: Facts, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const [login, code, family] = [randomUUID(), randomUUID(), randomUUID()]
    await attempt(facts, async () => {
      await store.put('pending', login, { value: { login }, ttlMs: 60 * MINUTE })
      if ((await store.take('pending', login)) === undefined) facts.problems.push('a pending login was lost')
      const before = facts.unacknowledged
      await store.put('code', code, { value: { family }, ttlMs: 60 * MINUTE, family })
      const outcome = await store.consume('code', code, { graceMs: 0 })
      if (outcome !== 'first') facts.problems.push(`a code that was used once is ${outcome}`)
      await store.put('refresh', family, { value: { family }, ttlMs: 60 * MINUTE, family })
      if (facts.unacknowledged !== before) return // no replica had it in time, which is counted
      facts.codes.push(code)
      facts.refreshTokens.push(family)
    })
    await pause(10)
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** All replicas use the token of the same user, and of one of their own. */
async function upstreamUse(
  { vault }: Replica,
  index: number,
  facts: Facts,
  { provider, stop }: { provider: StrictProvider; stop: AbortSignal },
): Promise<void> {
  const keys = ['shared', `own-${index}`].map((account) => ({ account, provider: provider.provider }))
  for (const key of keys)
    if (key.account !== 'shared' || index === 0)
      await vault.save({ ...key, subject: key.account, generation: 'g', tokens: provider.issue() })
  while (!stop.aborted) {
    for (const key of keys) {
      await attempt(facts, async () => {
        const { kind } = await vault.use(key)
        if (kind === 'ended' || (kind === 'missing' && key.account !== 'shared')) facts.problems.push(`a row of the vault is ${kind}`)
      })
    }
    await pause(20)
  }
}

async function attempt(facts: Facts, work: () => Promise<void>): Promise<void> {
  try {
    await work()
    facts.done++
  } catch (error) {
    if (isThvError(error, 'store_unavailable')) facts.retries++
    else facts.problems.push(String(error))
  }
}

async function progress(facts: Facts, count: number): Promise<void> {
  const wanted = facts.done + count
  await vi.waitFor(() => expect(facts.done).toBeGreaterThan(wanted), { timeout: 90_000, interval: 50 })
}

/** The Sentinels must know the replica before they can choose it. */
async function inSync({ addresses, masterName }: TestSentinels, pair: { primary: TestRedis; replica: TestRedis }): Promise<void> {
  const isSynced = async () => {
    expect(await pair.replica.command('INFO', 'replication')).toContain('master_link_status:up')
    for (const { port } of addresses) {
      const known = await send({ port }, ['SENTINEL', 'REPLICAS', masterName])
      expect(known).toMatch(new RegExp(`port\r\n\\$\\d+\r\n${pair.replica.port}\r\n`))
      expect(known).toMatch(/flags\r\n\$5\r\nslave\r\n/)
      expect(known).toContain('master-link-status\r\n$2\r\nok')
    }
  }
  await vi.waitFor(isSynced, { timeout: 60_000, interval: 100 })
}
