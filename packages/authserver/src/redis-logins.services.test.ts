import { createRecordCipher } from '@thv/store/redis/record-cipher'
import { RedisAuthStore } from '@thv/store/redis/redis-auth-store'
import { openRedis, redisScript } from '@thv/store/redis/redis-client'
import { startRedis } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { describe, expect, it, vi } from 'vitest'
import { startTestAuthServer } from './testing/test-auth-server.ts'

const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip
const PING = redisScript("return redis.call('PING')")

describeRedis('an authorization server on Redis', () => {
  it('logs a user in, refreshes, lets one of many redeem a code, and stores no secret that can be read', async () => {
    await using stack = new AsyncDisposableStack()
    const redisServer = stack.use(await startRedis())
    const redis = stack.use(await openRedis({ address: redisServer, db: 0, timeoutMs: 5_000 }))
    await vi.waitFor(() => redis.run(PING, ['{x}'], []), { timeout: 30_000, interval: 50 })
    const store = new RedisAuthStore({ redis, cipher: createRecordCipher(['secret']), keyPrefix: 'thv:auth:{team:login}:' })
    const server = stack.use(await startTestAuthServer({ store }))
    const client = await server.client()

    const first = await server.tokens(client)
    expect(first).toMatchObject({ status: 200, body: { refresh_token: expect.any(String) } })
    const refresh = (token: string | undefined) =>
      server.token({ grant_type: 'refresh_token', refresh_token: token ?? '', client_id: client })
    const second = await refresh(first.body['refresh_token'])
    expect(second.status).toBe(200)
    expect(second.body['refresh_token']).not.toBe(first.body['refresh_token'])

    const { landed, verifier } = await server.login(client)
    const code = landed.searchParams.get('code') ?? ''
    const form = {
      grant_type: 'authorization_code',
      code,
      code_verifier: verifier,
      client_id: client,
      redirect_uri: `${landed.origin}${landed.pathname}`,
    }
    const statuses = (await Promise.all(Array.from({ length: 10 }, () => server.token(form)))).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status === 400)).toHaveLength(9)

    const keys = await redisServer.command('KEYS', '*')
    for (const secret of [first.body['refresh_token'], second.body['refresh_token'], code]) expect(keys).not.toContain(secret)
    expect(keys).toContain('thv:auth:{team:login}:refresh:')
  })
})
