import { randomUUID } from 'node:crypto'
import { systemClock, TestClock } from '@thv/kernel/clock'
import { startRedis, startSentinels, type TestRedis } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type ContractValue, describeSessionStore } from '../testing/session-store-contract.ts'
import { CLEAR_RECORDS, createRecordCipher, type RecordCipher } from './record-cipher.ts'
import { openRedis, type RedisClientOptions, redisScript } from './redis-client.ts'
import { RedisSessionStore } from './redis-session-store.ts'

const MINUTE = 60_000
const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip
const PING = redisScript("return redis.call('PING')")
const KEYS = redisScript("return redis.call('KEYS', ARGV[1])")
const COUNTS = redisScript(`local counts = {}
for i, key in ipairs(redis.call('KEYS', ARGV[1])) do counts[i] = redis.call('ZCARD', key) end
return counts`)

const opened: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

async function connect(options: Partial<RedisClientOptions>) {
  const changes: string[] = []
  const onChange = (isAway: boolean, reason: string) => changes.push(isAway ? `away ${reason}` : 'back')
  // A busy machine may be slower than the limit of a proxy.
  const redis = await openRedis({ db: 0, timeoutMs: 5_000, onChange, ...options })
  opened.push(redis)
  return { redis, changes, answers: () => redis.run(PING, ['x'], []).then(String, () => 'away') }
}

async function connected(options: Partial<RedisClientOptions>) {
  const made = await connect(options)
  await expect.poll(made.answers, { timeout: 30_000 }).toBe('PONG')
  return made
}

describeRedis('sessions in Redis', () => {
  let server: TestRedis
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  async function open(options: { cipher?: RecordCipher; clock?: TestClock; keyPrefix?: string; maxSessions?: number } = {}) {
    const { redis } = await connected({ address: server })
    const { cipher = createRecordCipher(['secret']), keyPrefix = `${randomUUID()}:`, ...more } = options
    const store = new RedisSessionStore<ContractValue>({ redis, cipher, keyPrefix, ...more })
    opened.push({ [Symbol.asyncDispose]: () => store.close() })
    return { store, keyPrefix, redis }
  }

  describeSessionStore('Redis', async () => {
    const { store } = await open()
    return { store, passed: (ms) => systemClock.sleep(ms + 20) }
  })

  const alice = { id: 's1', owner: 'alice' }

  it('are shared, and a change of another replica is seen after the near cache', async () => {
    const clock = new TestClock()
    const one = await open({ clock })
    const two = await open({ keyPrefix: one.keyPrefix })
    await one.store.create({ ...alice, value: { n: 1 } }, MINUTE)
    expect(await two.store.get(alice)).toMatchObject({ value: { n: 1 } })
    expect(await two.store.update(alice, { n: 2 }, 1)).toMatchObject({ outcome: 'updated' })
    expect(await one.store.get(alice)).toMatchObject({ value: { n: 1 } }) // near
    await clock.advance(5_000)
    expect(await one.store.get(alice)).toMatchObject({ value: { n: 2 }, version: 2 })
  })

  it('cost no request while they are in use', async () => {
    const { store } = await open()
    await store.create({ ...alice, value: { n: 1 } }, MINUTE)
    const calls = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await server.command('INFO', 'commandstats'))?.[1] ?? 0)
    const before = await calls()
    for (let i = 0; i < 100; i++) {
      await store.get(alice)
      await store.touch(alice, MINUTE)
    }
    expect(await calls()).toBe(before)
  })

  it('lie in Redis sealed; a record that was changed, moved or sealed with another key is no session', async () => {
    const { store, keyPrefix } = await open()
    await store.create({ ...alice, value: { n: 12_345 } }, MINUTE)
    expect(await server.command('HGET', `${keyPrefix}s1`, 'd')).not.toContain('12345')
    const read = async (cipher: RecordCipher, id = 's1') => (await open({ cipher, keyPrefix })).store.get({ id, owner: 'alice' })
    expect(await read(createRecordCipher(['new', 'secret']))).toMatchObject({ value: { n: 12_345 } })
    expect(await read(createRecordCipher(['other']))).toBeUndefined()
    expect(await read(CLEAR_RECORDS)).toBeUndefined()
    await server.command('COPY', `${keyPrefix}s1`, `${keyPrefix}s2`)
    expect(await read(createRecordCipher(['secret']), 's2')).toBeUndefined()
    await server.command('HSET', `${keyPrefix}s1`, 'd', 'garbage')
    expect(await read(createRecordCipher(['secret']))).toBeUndefined()
    await server.command('HSET', `${keyPrefix}s2`, 'v', '7')
    expect(await read(createRecordCipher(['secret']), 's2')).toBeUndefined()
  })

  it('are reported once when they end, to one replica, with their data', async () => {
    const one = await open()
    const two = await open({ keyPrefix: one.keyPrefix })
    const ended: unknown[] = []
    for (const { store } of [one, two]) store.onEnded((session, why) => ended.push([session.value, why]))
    await one.store.create({ ...alice, value: { n: 5 } }, 50)
    await systemClock.sleep(70)
    await Promise.all([one.store.sweep(), two.store.sweep()])
    expect(ended).toEqual([[{ n: 5 }, 'expired']])
  })

  it('are bounded in number', async () => {
    const { store } = await open({ maxSessions: 1 })
    expect(await store.create({ ...alice, value: { n: 1 } }, MINUTE)).toBe('created')
    expect(await store.create({ id: 's2', owner: 'bob', value: { n: 1 } }, MINUTE)).toBe('full')
  })

  it('of one party leave room for others: no client locks out the rest by opening sessions', async () => {
    const { store, redis, keyPrefix } = await open({ maxSessions: 8 })
    const create = (id: string, party: string, ttlMs = MINUTE) => store.create({ id, owner: 'anonymous', party, value: { n: 1 } }, ttlMs)
    const outcomes = []
    for (let i = 0; i < 10; i++) outcomes.push(await create(`m${i}`, 'mallory'))
    expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(6)
    expect(await create('a1', 'alice')).toBe('created')
    expect(await create('m10', 'mallory')).toBe('full')
    expect(await create('b1', 'bob')).toBe('created')
    // Sessions that were deleted or have ended count no longer.
    for (let i = 0; i < 6; i++) await store.delete({ id: `m${i}`, owner: 'anonymous' })
    for (let i = 0; i < 4; i++) expect(await create(`n${i}`, 'mallory', i === 0 ? MINUTE : 1)).toBe('created')
    await store.touch({ id: 'n0', owner: 'anonymous' }, 1)
    await systemClock.sleep(20)
    expect(await create('m11', 'mallory')).toBe('created')
    const found = [`${keyPrefix} party *`]
    expect(await redis.run(COUNTS, [keyPrefix], found)).toEqual([1, 1, 1])
    expect(String(await redis.run(KEYS, [keyPrefix], found))).not.toMatch(/mallory|alice|bob/)
  })
})

describeRedis('a Redis that fails', () => {
  it('known sessions survive it, new ones are refused, nothing waits longer than the limit', async () => {
    const server = await startRedis()
    opened.push(server)
    const { redis, changes, answers } = await connected({ address: server, timeoutMs: 1_000 })
    const clock = new TestClock()
    const store = new RedisSessionStore<ContractValue>({ redis, cipher: CLEAR_RECORDS, clock })
    const alice = { id: 's1', owner: 'alice' }
    await store.create({ ...alice, value: { n: 1 } }, 10 * MINUTE)
    for (const fail of [() => server.freeze(), () => server.kill()]) {
      await fail()
      await clock.advance(10_000) // past the near cache
      const begin = performance.now()
      expect(await store.get(alice)).toMatchObject({ value: { n: 1 } })
      expect(await store.touch(alice, 10 * MINUTE)).toBe(true)
      await expect(store.create({ id: randomUUID(), owner: 'bob', value: { n: 1 } }, MINUTE)).rejects.toMatchObject({
        code: 'redis_unavailable',
      })
      await expect(store.get({ id: 'unknown', owner: 'bob' })).rejects.toMatchObject({ code: 'redis_unavailable' })
      expect(performance.now() - begin).toBeLessThan(20_000) // four attempts without a limit would never end
      if (fail.toString().includes('freeze')) server.unfreeze()
    }
    await clock.advance(MINUTE)
    await expect(store.get(alice)).rejects.toMatchObject({ code: 'redis_unavailable' }) // for a limited time
    await server.start()
    await expect.poll(answers, { timeout: 30_000 }).toBe('PONG')
    expect(changes[0]).toMatch(/^away/)
    expect(changes.at(-1)).toBe('back')
  })

  it('that is full refuses new sessions', async () => {
    const server = await startRedis({ settings: { maxmemory: '1', 'maxmemory-policy': 'noeviction' } })
    opened.push(server)
    const { redis } = await connected({ address: server })
    const store = new RedisSessionStore<{ readonly n: string }>({ redis, cipher: CLEAR_RECORDS })
    expect(await store.create({ id: 's', owner: 'a', value: { n: 'x' } }, MINUTE)).toBe('full')
  })

  it('with another password is away, and the reason names no secret', async () => {
    const server = await startRedis({ password: 'right' })
    opened.push(server)
    const { changes, answers } = await connect({ address: server, password: 'wrong-secret' })
    await expect.poll(() => changes.length, { timeout: 30_000 }).toBeGreaterThan(0)
    expect(await answers()).toBe('away')
    expect(changes.join()).not.toContain('secret')
  })
})

describeRedis('ways to Redis', () => {
  it('TLS with an authority of its own and an ACL user', async () => {
    const server = await startRedis({ tls: true, users: ['proxy on >pa55 ~* &* +@all'] })
    opened.push(server)
    const { answers } = await connected({ address: server, username: 'proxy', password: 'pa55', tls: { ca: server.caPem } })
    expect(await answers()).toBe('PONG')
    const untrusted = await connect({ address: server, username: 'proxy', password: 'pa55', tls: {} })
    await expect.poll(() => untrusted.changes.length, { timeout: 30_000 }).toBeGreaterThan(0)
    expect(await untrusted.answers()).toBe('away')
  })

  it('Sentinels: after the primary is killed, the replica takes over with the sessions', async () => {
    const sentinels = await startSentinels({ password: 'pa55' })
    opened.push(sentinels)
    const { masterName, addresses } = sentinels
    const { redis, answers } = await connected({ sentinel: { masterName, addresses }, password: 'pa55' })
    const cipher = createRecordCipher(['secret'])
    const store = new RedisSessionStore<ContractValue>({ redis, cipher })
    const alice = { id: 's1', owner: 'alice' }
    await store.create({ ...alice, value: { n: 1 } }, MINUTE)
    await expect.poll(() => sentinels.replica.command('HGET', 'thv:proxy:session:s1', 'v'), { timeout: 30_000 }).toMatch(/\$1\r\n1\r\n/)
    await sentinels.primary.kill()
    await expect.poll(answers, { timeout: 60_000, interval: 100 }).toBe('PONG')
    const other = new RedisSessionStore<ContractValue>({ redis, cipher }) // knows nothing yet
    await expect
      .poll(() => other.update(alice, { n: 2 }, 1).catch(() => undefined), { timeout: 60_000, interval: 100 })
      .toMatchObject({ outcome: 'updated' })
  })
})
