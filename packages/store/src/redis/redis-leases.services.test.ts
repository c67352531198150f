import { randomUUID } from 'node:crypto'
import { TestClock } from '@thv/kernel/clock'
import { startRedis, type TestRedis } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openRedis, redisScript } from './redis-client.ts'
import { type Lease, RedisLeases } from './redis-leases.ts'

const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip
const never = new AbortController().signal
const PING = redisScript("return redis.call('PING')")

const opened: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

describeRedis('leases in Redis', () => {
  let server: TestRedis
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  async function holders(count: number) {
    const clock = new TestClock()
    const redis = await openRedis({ address: server, db: 0, timeoutMs: 5_000 })
    opened.push(redis)
    const answers = () => redis.run(PING, ['x'], []).then(String, () => 'away')
    await expect.poll(answers, { timeout: 30_000 }).toBe('PONG')
    const prefix = `${randomUUID()}: pod `
    const leases = Array.from({ length: count }, (_, at) => new RedisLeases({ redis, prefix, owner: `proxy-${at}`, clock }))
    /** Through the probation. */
    const acquire = async (at: number) => {
      const result = leases[at]?.acquire('a', never)
      let isSettled = false
      void result?.finally(() => {
        isSettled = true
      })
      const settled = async () => {
        if (!isSettled) await clock.advance(500)
        return isSettled
      }
      await expect.poll(settled, { timeout: 30_000, interval: 20 }).toBe(true)
      return await (result as Promise<Lease | 'held' | 'away'>)
    }
    return { clock, leases, acquire, key: `${prefix}a` }
  }

  function held(result: Lease | 'held' | 'away' | undefined): Lease {
    if (typeof result !== 'object') throw new TypeError(result)
    return result
  }

  it('have one holder, and the next one as soon as it is released', async () => {
    const { leases, acquire } = await holders(2)
    const first = held(await acquire(0))
    expect(await leases[1]?.acquire('a', never)).toBe('held')
    await first.release()
    await first.ended
    const second = held(await leases[1]?.acquire('a', never)) // at once: it was given back
    expect(await leases[0]?.acquire('a', never)).toBe('held')
    await second.release()
  })

  it('go at once to the next process of the same holder', async () => {
    const { leases, acquire } = await holders(1)
    await acquire(0)
    held(await leases[0]?.acquire('a', never))
  })

  it('stay with their holder when Redis has forgotten them, and somebody asks in that moment', async () => {
    const { clock, acquire, leases, key } = await holders(2)
    const first = held(await acquire(0))
    await server.command('DEL', key)
    const asked = leases[1]?.acquire('a', never)
    await expect.poll(() => server.command('GET', key), { timeout: 30_000 }).toContain('p:proxy-1')
    await clock.advance(2_000)
    await expect.poll(() => server.command('GET', key), { timeout: 30_000 }).toContain('h:proxy-0')
    await clock.advance(3_000)
    expect(await asked).toBe('held')
    await first.release()
  })

  it('end for a holder whom another one has replaced', async () => {
    const { clock, acquire, key } = await holders(1)
    const lease = held(await acquire(0))
    await server.command('SET', key, 'h:proxy-9')
    await clock.advance(2_000)
    await lease.ended
    await lease.release()
    expect(await server.command('GET', key)).toContain('h:proxy-9') // what is not ours is not given back
  })

  it('end before Redis would give them to another one, when it is away for long', async () => {
    const own = await startRedis()
    opened.push(own)
    const clock = new TestClock()
    const redis = await openRedis({ address: own, db: 0, timeoutMs: 1_000 })
    opened.push(redis)
    await expect.poll(() => redis.run(PING, ['x'], []).then(String, () => 'away'), { timeout: 30_000 }).toBe('PONG')
    const leases = new RedisLeases({ redis, prefix: 'pod ', owner: 'a', clock })
    await own.command('SET', 'pod x', 'free')
    const lease = held(await leases.acquire('x', never))
    await own.kill()
    let hasEnded = false
    void lease.ended.then(() => {
      hasEnded = true
    })
    const advance = async () => {
      await clock.advance(2_000)
      return clock.monotonic() >= 40_000
    }
    await expect.poll(advance, { timeout: 60_000, interval: 10 }).toBe(true)
    expect(hasEnded).toBe(false)
    const ends = async () => {
      await clock.advance(2_000)
      return hasEnded
    }
    await expect.poll(ends, { timeout: 60_000, interval: 10 }).toBe(true)
    expect(await leases.acquire('x', never)).toBe('away')
  })
})
