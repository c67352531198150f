import { randomUUID } from 'node:crypto'
import { createRecordCipher } from '@thv/store/redis/record-cipher'
import { RedisAuthStore } from '@thv/store/redis/redis-auth-store'
import { openRedis, redisScript } from '@thv/store/redis/redis-client'
import { send, startRedis, startSentinels, type TestSentinels } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { describe, expect, it, vi } from 'vitest'

/*
 * A primary that its Sentinels cannot reach, and that goes on serving the connections that it has: they make another one, and for ten seconds
 * there are two. Both have `min-replicas-to-write 1`, as the documentation says.
 */

const SPLIT_MS = 10_000
const PASSWORD = 'pa55'
const ISOLATED = 'unknown to the Sentinels'
const PREFIX = 'thv:auth:{team:server}:'
const TTL_MS = 3_600_000
const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip
const PING = redisScript("return redis.call('PING')")

describeRedis('two primaries at a time', () => {
  it('let one of two replicas of the server use a code, and lose no token that a client has', async () => {
    await using stack = new AsyncDisposableStack()
    const settings = { 'min-replicas-to-write': '1', 'min-replicas-max-lag': '10', 'repl-diskless-sync-delay': '0' }
    // Nothing but the isolation below may make another primary. Sentinels connect again to one that refuses them only when half of this is less than
    // the second between two pings; otherwise they would never see that the isolation has ended.
    const sentinels = stack.use(await startSentinels({ password: PASSWORD, downAfterMs: 1_500, failoverTimeoutMs: 1_500, settings }))
    const { primary: old, masterName, addresses } = sentinels
    const third = stack.use(await startRedis({ password: PASSWORD, replicaOf: old, settings: { ...settings, masterauth: PASSWORD } }))
    const isSynced = async () => expect(await third.command('INFO', 'replication')).toContain('master_link_status:up')
    await vi.waitFor(isSynced, { timeout: 60_000, interval: 100 })
    await knowTwoReplicas(sentinels)
    const open = async () => {
      const redis = stack.use(
        await openRedis({ sentinel: { masterName, addresses }, password: PASSWORD, db: 0, timeoutMs: 2_000, onUnacknowledged: () => {} }),
      )
      await vi.waitFor(() => redis.run(PING, ['{x}'], []), { timeout: 60_000, interval: 50 })
      return stack.use(new RedisAuthStore({ redis, cipher: createRecordCipher(['secret']), keyPrefix: PREFIX, patienceMs: 120_000 }))
    }
    const before = await open()
    const codes = Array.from({ length: 60 }, () => randomUUID())
    for (const code of codes) await before.put('code', code, { value: { code }, ttlMs: TTL_MS, family: code })
    // Either replica may become the new primary.
    const sizes = () => Promise.all([old, sentinels.replica, third].map((redis) => redis.command('DBSIZE')))
    await vi.waitFor(async () => expect(new Set(await sizes()).size).toBe(1), { timeout: 60_000, interval: 50 })

    // Connections that are authenticated stay; the Sentinels cannot come back.
    const clients = (await old.command('CLIENT', 'LIST')).split('\n').filter((line) => line.includes('name=sentinel-'))
    expect(clients.length).toBeGreaterThanOrEqual(3)
    expect(await old.command('CONFIG', 'SET', 'requirepass', ISOLATED)).toContain('OK')
    const toOld = (...words: string[]) => send({ port: old.port, password: ISOLATED }, words)
    for (const line of clients) await toOld('CLIENT', 'KILL', 'ID', /id=(\d+)/.exec(line)?.[1] ?? '')
    const port = await newPrimary(sentinels)
    const splitAt = performance.now()
    await vi.waitFor(async () => expect(await toOld('SET', '{x}lost', '1')).toContain('NOREPLICAS'), { timeout: 60_000, interval: 100 })
    for (const role of [await toOld('ROLE'), await send({ port, password: PASSWORD }, ['ROLE'])]) expect(role).toContain('master')

    const after = await open()
    const kept: string[] = []
    for (const [index, code] of codes.entries()) {
      const outcomes = await Promise.all([before, after].map((store) => store.consume('code', code, { graceMs: 0 })))
      expect(outcomes.toSorted()).toEqual(['first', 'reused'])
      const store = index % 2 === 0 ? before : after
      await store.put('refresh', code, { value: { code }, ttlMs: TTL_MS, family: code })
      kept.push(code)
    }
    expect(await toOld('ROLE')).toContain('master')
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, SPLIT_MS - (performance.now() - splitAt))))

    expect(await toOld('CONFIG', 'SET', 'requirepass', PASSWORD)).toContain('OK')
    await vi.waitFor(async () => expect(await old.command('ROLE')).toContain('slave'), { timeout: 90_000, interval: 200 })
    for (const store of [before, after])
      for (const code of kept) {
        expect(await store.get('refresh', code)).toBeDefined()
        expect(await store.consume('code', code, { graceMs: 0 })).toBe('reused')
      }
  })
})

async function knowTwoReplicas({ addresses, masterName }: TestSentinels): Promise<void> {
  for (const { port } of addresses) {
    const known = async () => expect(await send({ port }, ['SENTINEL', 'MASTER', masterName])).toMatch(/num-slaves\r\n\$1\r\n2\r\n/)
    await vi.waitFor(known, { timeout: 60_000, interval: 100 })
  }
}

async function newPrimary({ addresses, masterName, primary }: TestSentinels): Promise<number> {
  return await vi.waitFor(
    async () => {
      const ports = await Promise.all(
        addresses.map(
          async ({ port }) => /\r\n(\d+)\r\n$/.exec(await send({ port }, ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName]))?.[1],
        ),
      )
      expect(new Set(ports).size).toBe(1)
      expect(Number(ports[0])).not.toBe(primary.port)
      return Number(ports[0])
    },
    { timeout: 90_000, interval: 100 },
  )
}
