import { startSentinels } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { describe, expect, it, vi } from 'vitest'
import { openRedis, redisScript } from './redis-client.ts'

const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip
const PING = redisScript("return redis.call('PING')")
const PASSWORD = 'pa55'

describeRedis('Sentinels with TLS', () => {
  it('have an authority of their own: each side is trusted by its own CA only', async () => {
    await using sentinels = await startSentinels({ password: PASSWORD, tls: true })
    const { masterName, addresses, caPem, primary } = sentinels
    const open = (sentinelCa: string | undefined, ca: string) =>
      openRedis({
        ...{ db: 0, password: PASSWORD, timeoutMs: 2_000, tls: { ca } },
        sentinel: { masterName, addresses, ...(sentinelCa !== undefined && { tls: { ca: sentinelCa } }) },
      })
    await using redis = await open(caPem, primary.caPem)
    await vi.waitFor(async () => expect(String(await redis.run(PING, ['{x}'], []))).toBe('PONG'), { timeout: 60_000, interval: 50 })

    // Without one of their own, the authority of Redis counts for the Sentinels, too.
    for (const [sentinelCa, ca] of [
      [undefined, primary.caPem],
      [primary.caPem, primary.caPem],
      [caPem, caPem ?? ''],
    ] as const) {
      await using other = await open(sentinelCa, ca)
      for (let attempt = 0; attempt < 10; attempt++) {
        await expect(other.run(PING, ['{x}'], [])).rejects.toMatchObject({ code: 'redis_unavailable' })
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  })
})
