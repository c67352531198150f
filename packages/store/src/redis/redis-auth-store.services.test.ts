import { randomUUID } from 'node:crypto'
import { systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/kernel/json'
import { startRedis, type TestRedis } from '@thv/testkit/redis/redis'
import { startRedisCluster, type TestRedisCluster } from '@thv/testkit/redis/redis-cluster'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { describeAuthStore } from '../testing/auth-store-contract.ts'
import { UNADD, UNCONSUME, UNTAKE } from './auth-scripts.ts'
import { createRecordCipher } from './record-cipher.ts'
import { RedisAuthStore } from './redis-auth-store.ts'
import { openRedis, type RedisClient, type RedisClientOptions, redisScript } from './redis-client.ts'

const MINUTE = 60_000
const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip
const PING = redisScript("return redis.call('PING')")

async function connected(options: Partial<RedisClientOptions>): Promise<RedisClient> {
  // A busy machine may be slower than the limit of a proxy.
  const redis = await openRedis({ db: 0, timeoutMs: 5_000, ...options })
  await vi.waitFor(() => redis.run(PING, ['thv:auth:{x}'], []), { timeout: 30_000, interval: 50 })
  return redis
}

function open(redis: RedisClient, { keyPrefix = `thv:auth:{team:${randomUUID()}}:`, secrets = ['secret'] } = {}): RedisAuthStore {
  return new RedisAuthStore({ redis, cipher: createRecordCipher(secrets), keyPrefix })
}

const passed = (ms: number) => systemClock.sleep(ms + 20)

describeRedis('one Redis', () => {
  let server: TestRedis
  let redis: RedisClient
  beforeAll(async () => {
    server = await startRedis({ users: ['auth on >pa55 ~thv:auth:* +@all'] })
    redis = await connected({ address: server, username: 'auth', password: 'pa55' })
  })
  afterAll(async () => {
    await redis[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  describeAuthStore('Redis', async () => ({ store: open(redis), passed }))

  describe('an operation whose answer was lost for too long', () => {
    const from = { kind: 'refresh', id: 'r', graceMs: MINUTE, keptMs: MINUTE } as const
    const to = (id: string) => ({ kind: 'refresh', id, value: { id }, ttlMs: 10 * MINUTE, family: 'f' }) as const

    /** One replica whose operations are carried out while it gets no answers, or (`isCut`) only when they are `sent` again, and another one. */
    async function replicas(stack: AsyncDisposableStack) {
      const keyPrefix = `thv:auth:{team:${randomUUID()}}:`
      const state = { isLossy: false, isCut: false }
      const sent: Parameters<RedisClient['run']>[] = []
      const lossy: RedisClient = {
        isAway: false,
        async run(...call) {
          const lost = new ThvError('redis_unavailable', 'lost')
          const [script] = call
          if (state.isLossy && [UNCONSUME, UNTAKE, UNADD].includes(script)) throw lost
          if (state.isLossy) sent.push(call)
          if (state.isLossy && state.isCut) throw lost
          const answer = await redis.run(...call)
          if (state.isLossy) throw lost
          return answer
        },
        async [Symbol.asyncDispose]() {},
      }
      const store = stack.use(new RedisAuthStore({ redis: lossy, cipher: createRecordCipher(['secret']), keyPrefix, patienceMs: 0 }))
      const other = stack.use(open(redis, { keyPrefix }))
      await other.put('code', 'c', { value: {}, ttlMs: MINUTE, family: 'f' })
      await other.put('refresh', 'r', { value: { id: 'r' }, ttlMs: 10 * MINUTE, family: 'f' })
      await other.put('pending', 'p', { value: { id: 'p' }, ttlMs: 10 * MINUTE })
      const lose = async (work: () => Promise<unknown>) => {
        state.isLossy = true
        await expect(work()).rejects.toMatchObject({ code: 'store_unavailable' })
      }
      return { store, other, state, lose, sent }
    }
    const settled = (other: RedisAuthStore) =>
      expect.poll(async () => (await other.lock('last', 20)) !== undefined, { timeout: 20_000, interval: 50 }).toBe(true)

    it('is taken back, so that the client can try again at any replica', async () => {
      await using stack = new AsyncDisposableStack()
      const { store, other, state, lose } = await replicas(stack)
      await lose(() => store.consume('code', 'c', { graceMs: 0 }))
      await lose(() => store.replace({ from, to: to('r2'), prolonged: [] }))
      await lose(() => store.addOnce('assertion', 'a', MINUTE))
      await lose(() => store.take('pending', 'p'))
      expect(await other.get('pending', 'p')).toBeUndefined()
      await lose(() => store.lock('last', MINUTE))
      expect((await other.get('refresh', 'r'))?.consumedAt).toEqual(expect.any(Number))
      state.isLossy = false
      await settled(other)
      expect(await other.consume('code', 'c', { graceMs: 0 })).toBe('first')
      expect(await other.addOnce('assertion', 'a', MINUTE)).toBe(true)
      expect(await other.take('pending', 'p')).toEqual({ id: 'p' })
      expect(await other.take('pending', 'p')).toBeUndefined()
      expect(await other.get('refresh', 'r')).toEqual({ value: { id: 'r' }, consumedAt: undefined })
      expect(await other.get('refresh', 'r2')).toBeUndefined()
      expect(await other.replace({ from, to: to('r3'), prolonged: [] })).toBe('first')
      await other.revokeFamily('f', MINUTE)
      expect(await other.get('refresh', 'r3')).toBeUndefined()
    })

    it('does not count for the replica itself, however soon the client comes again', async () => {
      await using stack = new AsyncDisposableStack()
      const { store, state, lose } = await replicas(stack)
      await lose(() => store.consume('code', 'c', { graceMs: 0 }))
      state.isLossy = false
      expect(await store.get('code', 'c')).toEqual({ value: {}, consumedAt: undefined })
      expect(await store.consume('code', 'c', { graceMs: 0 })).toBe('first')
      expect(await store.consume('code', 'c', { graceMs: 0 })).toBe('reused')
    })

    it.each([
      ['was never carried out', true],
      ['was carried out', false],
    ])('has no effect when it arrives again after it was taken back: it %s', async (_, isCut) => {
      await using stack = new AsyncDisposableStack()
      const { store, other, state, lose, sent } = await replicas(stack)
      state.isCut = isCut
      await lose(() => store.consume('code', 'c', { graceMs: 0 }))
      await lose(() => store.replace({ from, to: to('r2'), prolonged: [] }))
      await lose(() => store.addOnce('assertion', 'a', MINUTE))
      await lose(() => store.take('pending', 'p'))
      state.isLossy = false
      // A replica that has something of a record to take back does so before it looks at it.
      for (const [kind, id] of [
        ['code', 'c'],
        ['refresh', 'r'],
        ['pending', 'p'],
      ] as const)
        expect(await store.get(kind, id)).toBeDefined()
      expect(await store.addOnce('assertion', 'a', MINUTE)).toBe(true)
      expect(sent).toHaveLength(4)
      const late = await Promise.all(sent.map((call) => redis.run(...call)))
      expect(late.map((answer) => (Buffer.isBuffer(answer) ? String(answer) : answer))).toEqual(['missing', 'missing', 0, null])
      expect(await other.get('code', 'c')).toEqual({ value: {}, consumedAt: undefined })
      expect(await other.get('refresh', 'r')).toEqual({ value: { id: 'r' }, consumedAt: undefined })
      expect(await other.get('refresh', 'r2')).toBeUndefined()
      expect(await other.consume('code', 'c', { graceMs: 0 })).toBe('first')
      expect(await other.replace({ from, to: to('r3'), prolonged: [] })).toBe('first')
      expect(await other.take('pending', 'p')).toEqual({ id: 'p' })
    })

    it('takes no mark when it arrives late: the mark stays free for others', async () => {
      await using stack = new AsyncDisposableStack()
      const { store, other, state, lose, sent } = await replicas(stack)
      state.isCut = true
      await lose(() => store.addOnce('assertion', 'a', MINUTE))
      await lose(() => store.lock('last', MINUTE))
      state.isLossy = false
      await expect.poll(async () => Promise.all(sent.map((call) => redis.run(...call))), { timeout: 20_000 }).toEqual([0, 0])
      expect(await other.addOnce('assertion', 'a', MINUTE)).toBe(true)
      expect(await other.lock('last', MINUTE)).toBeDefined()
    })

    it('stays where the client has already gone on with another one', async () => {
      await using stack = new AsyncDisposableStack()
      const { store, other, state, lose } = await replicas(stack)
      await lose(() => store.replace({ from, to: to('r2'), prolonged: [] }))
      await lose(() => store.lock('last', MINUTE))
      expect(await other.replace({ from, to: to('r3'), prolonged: [] })).toBe('again')
      state.isLossy = false
      await settled(other)
      expect((await other.get('refresh', 'r'))?.consumedAt).toEqual(expect.any(Number))
      expect(await other.get('refresh', 'r2')).toBeUndefined()
      expect(await other.get('refresh', 'r3')).toBeDefined()
    })
  })

  it('holds neither ids nor values that can be read, all keys below the prefix of the server', async () => {
    const keyPrefix = `thv:auth:{team:${randomUUID()}}:`
    const store = open(redis, { keyPrefix })
    await store.put('refresh', 'the-refresh-token', { value: { account: 'ada-secret' }, ttlMs: MINUTE, family: 'f1' })
    await store.put('code', 'the-code', { value: { account: 'ada-secret' }, ttlMs: MINUTE, family: 'f1' })
    await store.addOnce('assertion', 'the-jti', MINUTE)
    const keys = await server.command('KEYS', '*')
    expect(keys).not.toMatch(/the-refresh-token|the-code|the-jti|ada-secret/)
    const names = [...keys.matchAll(/\r\n(thv:auth:\S+)/g)].map(([, name = '']) => name).filter((name) => name.startsWith(keyPrefix))
    const kinds = names.map((name) => name.slice(keyPrefix.length).split(':')[0]).toSorted()
    expect(kinds).toEqual(['assertion-jwt', 'authcode', 'refresh', 'reqid'])
    const record = names.find((name) => name.includes(':refresh:')) ?? ''
    expect(await server.command('HGET', record, 'd')).not.toContain('ada-secret')
    expect(Number((await server.command('PTTL', record)).slice(1))).toBeGreaterThan(0)
    await server.command('COPY', record, record.replace(/refresh:.*/, 'refresh:moved'))
    expect(await open(redis, { keyPrefix, secrets: ['new', 'secret'] }).get('refresh', 'the-refresh-token')).toBeDefined()
    expect(await open(redis, { keyPrefix, secrets: ['other'] }).get('refresh', 'the-refresh-token')).toBeUndefined()
  })

  it('tells every replica of a family that another one has revoked', async () => {
    const keyPrefix = `thv:auth:{team:${randomUUID()}}:`
    const replicas = [open(redis, { keyPrefix }), open(redis, { keyPrefix })]
    const seen = replicas.map(() => new Set<string>())
    using stack = new DisposableStack()
    for (const [at, replica] of replicas.entries()) stack.use(replica.observeRevocations((family) => seen[at]?.add(family)))
    await open(redis, { keyPrefix }).revokeFamily('ended', MINUTE)
    await expect.poll(() => seen.map((families) => [...families]), { timeout: 30_000 }).toEqual([['ended'], ['ended']])
  })

  it('answers a repetition after a lost answer as the first time', async () => {
    // Each script runs, and its first answer is lost.
    let lost = 0
    const lossy: RedisClient = {
      isAway: false,
      async run(script, keys, args) {
        const answer = await redis.run(script, keys, args)
        if (lost++ % 2 === 0) await redis.run(PING, ['thv:auth:{x}'], []).then(() => Promise.reject(UNAVAILABLE))
        return answer
      },
      [Symbol.asyncDispose]: async () => {},
    }
    const store = open(lossy)
    await store.put('code', 'c', { value: { n: 1 }, ttlMs: MINUTE })
    expect(await store.consume('code', 'c', { graceMs: 0 })).toBe('first')
    expect(await store.consume('code', 'c', { graceMs: 0 })).toBe('reused')
    await store.put('pending', 'p', { value: { n: 2 }, ttlMs: MINUTE })
    expect(await store.take('pending', 'p')).toEqual({ n: 2 })
    expect(await store.take('pending', 'p')).toBeUndefined()
    expect(await store.addOnce('assertion', 'j', MINUTE)).toBe(true)
    expect(await store.addOnce('assertion', 'j', MINUTE)).toBe(false)
    expect(await store.lock('l', MINUTE)).toBeDefined()
    expect(await store.lock('l', MINUTE)).toBeUndefined()
    const count = (value: JsonObject | undefined) => ({ n: Number(value?.['n'] ?? 0) + 1 })
    for (let n = 0; n < 3; n++) await store.update('login', 'u', { ttlMs: MINUTE, family: 'f' }, count)
    expect((await store.get('login', 'u'))?.value).toEqual({ n: 3 })
    expect(lost).toBeGreaterThan(16)
  })

  it('gets a write from each repetition, so that WAIT counts for the connection that it comes over', async () => {
    const calls: Parameters<RedisClient['run']>[] = []
    const recorded: RedisClient = {
      isAway: false,
      async run(...call) {
        if (call[0].isDurable) calls.push(call)
        return await redis.run(...call)
      },
      [Symbol.asyncDispose]: async () => {},
    }
    const store = open(recorded)
    await store.put('code', 'c', { value: { n: 1 }, ttlMs: MINUTE, family: 'f' })
    await store.consume('code', 'c', { graceMs: 0 })
    await store.put('refresh', 'r', { value: {}, ttlMs: MINUTE, family: 'f' })
    const from = { kind: 'refresh', id: 'r', graceMs: 0, keptMs: MINUTE } as const
    await store.replace({ from, to: { kind: 'refresh', id: 's', value: {}, ttlMs: MINUTE, family: 'f' }, prolonged: [] })
    await store.update('login', 'u', { ttlMs: MINUTE }, () => ({ n: 1 }))
    await store.addOnce('assertion', 'j', MINUTE)
    const changes = async () => Number(/rdb_changes_since_last_save:(\d+)/.exec(await server.command('INFO', 'persistence'))?.[1])
    expect(calls).toHaveLength(6)
    for (const call of calls) {
      const before = await changes()
      await redis.run(...call)
      expect([call[0].source, await changes()]).toEqual([call[0].source, expect.toSatisfy((after: number) => after > before)])
    }
  })

  it('that is away is waited for as long as the patience lasts', async () => {
    const own = await startRedis()
    const client = await connected({ address: own, timeoutMs: 1_000 })
    const store = new RedisAuthStore({ redis: client, cipher: createRecordCipher(['s']), keyPrefix: 'thv:auth:{a:b}:', patienceMs: 1_000 })
    await own.kill()
    await expect(store.put('code', 'c', { value: {}, ttlMs: MINUTE })).rejects.toMatchObject({ code: 'store_unavailable' })
    await client[Symbol.asyncDispose]()
    await own[Symbol.asyncDispose]()
  })

  it('that is full refuses with nothing half done', async () => {
    const own = await startRedis({ settings: { maxmemory: '1', 'maxmemory-policy': 'noeviction' } })
    const client = await connected({ address: own })
    await expect(open(client).put('code', 'c', { value: {}, ttlMs: MINUTE, family: 'f' })).rejects.toMatchObject({
      code: 'store_unavailable',
    })
    expect(await own.command('DBSIZE')).toBe(':0\r\n')
    await client[Symbol.asyncDispose]()
    await own[Symbol.asyncDispose]()
  })

  it('needs a prefix with a hash tag', () => {
    expect(() => open(redis, { keyPrefix: 'thv:auth:' })).toThrow('has no hash tag')
  })
})

describeRedis('a Redis Cluster of six nodes', () => {
  let cluster: TestRedisCluster
  let redis: RedisClient
  let unacknowledged = 0
  beforeAll(async () => {
    cluster = await startRedisCluster({ password: 'pa55' })
    const onUnacknowledged = () => {
      unacknowledged++
    }
    redis = await connected({ cluster: { addresses: cluster.nodes.slice(0, 2) }, password: 'pa55', onUnacknowledged })
  })
  afterAll(async () => {
    await redis[Symbol.asyncDispose]()
    await cluster[Symbol.asyncDispose]()
  })

  describeAuthStore('Redis Cluster', async () => ({ store: open(redis), passed }))

  it('goes on when the primary of a server is killed, with all that a replica has acknowledged', async () => {
    const keyPrefix = `thv:auth:{team:${randomUUID()}}:`
    const store = open(redis, { keyPrefix })
    await store.put('code', 'c', { value: { n: 1 }, ttlMs: 10 * MINUTE })
    expect(await store.consume('code', 'c', { graceMs: 0 })).toBe('first')
    const missed = unacknowledged
    await store.put('refresh', 'r', { value: { n: 2 }, ttlMs: 10 * MINUTE })
    const primary = await cluster.primaryOf(`${keyPrefix}x`)
    await primary.kill()
    const found = () => store.get('refresh', 'r').catch(() => undefined)
    if (unacknowledged === missed) await expect.poll(found, { timeout: 60_000 }).toMatchObject({ value: { n: 2 } })
    await expect
      .poll(
        () =>
          store.put('code', 'd', { value: {}, ttlMs: MINUTE }).then(
            () => true,
            () => false,
          ),
        { timeout: 60_000 },
      )
      .toBe(true)
    expect(await store.consume('code', 'd', { graceMs: 0 })).toBe('first')
  })
})

const UNAVAILABLE = new ThvError('redis_unavailable', 'the answer was lost')
