import { createRecordCipher } from '@thv/store/redis/record-cipher'
import { RedisAuthStore } from '@thv/store/redis/redis-auth-store'
import { openRedis, redisScript } from '@thv/store/redis/redis-client'
import { startRedis } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { describe, expect, it, vi } from 'vitest'
import { REDIRECT_URI, startTestAuthServer } from './testing/test-auth-server.ts'

const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip
const PING = redisScript("return redis.call('PING')")

describeRedis('a Redis without room', () => {
  it('makes the server say that it cannot answer now; nothing is consumed, and everything goes on when there is room', async () => {
    await using stack = new AsyncDisposableStack()
    const redisServer = stack.use(await startRedis({ settings: { 'maxmemory-policy': 'noeviction' } }))
    const redis = stack.use(await openRedis({ address: redisServer, db: 0, timeoutMs: 5_000 }))
    await vi.waitFor(() => redis.run(PING, ['{x}'], []), { timeout: 30_000, interval: 50 })
    const store = new RedisAuthStore({ redis, cipher: createRecordCipher(['secret']), keyPrefix: 'thv:auth:{team:login}:' })
    const server = stack.use(await startTestAuthServer({ store }))
    const client = await server.client()
    const issued = await server.tokens(client)
    expect(issued.status).toBe(200)
    const { landed, verifier } = await server.login(client)
    const codeForm = {
      ...{ grant_type: 'authorization_code', code: landed.searchParams.get('code') ?? '', client_id: client },
      ...{ code_verifier: verifier, redirect_uri: REDIRECT_URI },
    }
    const refreshForm = { grant_type: 'refresh_token', refresh_token: issued.body['refresh_token'] ?? '', client_id: client }

    await redisServer.command('CONFIG', 'SET', 'maxmemory', '1')
    expect(await redisServer.command('SET', 'x', 'y')).toContain('OOM')
    for (const form of [codeForm, refreshForm]) {
      const answer = await fetch(`${server.issuer}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)])
      expect(await answer.json()).toMatchObject({ error: 'temporarily_unavailable' })
    }
    const begun = await server.authorize(client)
    expect([begun.status, begun.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)])
    expect(await begun.text()).not.toContain('OOM')

    await redisServer.command('CONFIG', 'SET', 'maxmemory', '0')
    for (const form of [codeForm, refreshForm]) expect(await server.token(form)).toMatchObject({ status: 200 })
    expect((await server.tokens(client)).status).toBe(200)
  })
})

describeRedis('a Redis that hangs in the middle of a token request', () => {
  it.each(['code', 'refresh token'])('makes the client try again, and its %s is not used up', async (what) => {
    await using stack = new AsyncDisposableStack()
    const redisServer = stack.use(await startRedis())
    const redis = stack.use(await openRedis({ address: redisServer, db: 0, timeoutMs: 1_000 }))
    await vi.waitFor(() => redis.run(PING, ['{x}'], []), { timeout: 30_000, interval: 50 })
    const store = new RedisAuthStore({
      ...{ redis, cipher: createRecordCipher(['secret']), keyPrefix: 'thv:auth:{team:login}:', patienceMs: 5_000 },
    })
    const server = stack.use(await startTestAuthServer({ store }))
    const client = await server.client()
    expect((await server.tokens(client)).status).toBe(200) // from now on Redis has the scripts
    const { landed, verifier } = await server.login(client)
    const codeForm = {
      ...{ grant_type: 'authorization_code', code: landed.searchParams.get('code') ?? '', client_id: client },
      ...{ code_verifier: verifier, redirect_uri: REDIRECT_URI },
    }
    const refreshForm = async () => {
      const { body } = await server.token(codeForm)
      return { grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '', client_id: client }
    }
    const form = what === 'code' ? codeForm : await refreshForm()

    // It gets the operation, and carries it out when it goes on, long after the client was sent away.
    const replace = store.replace.bind(store)
    store.replace = (replacement) => {
      redisServer.freeze()
      return replace(replacement)
    }
    const answer = await fetch(`${server.issuer}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)])
    store.replace = replace
    redisServer.unfreeze()
    const answered = async () => {
      const next = await server.token(form)
      expect(next.status).not.toBe(503) // as long as a busy machine needs to connect
      return next
    }
    const again = await vi.waitFor(answered, { timeout: 60_000, interval: 100 })
    expect(again).toMatchObject({ status: 200, body: { refresh_token: expect.any(String) } })
    expect(server.logged()).not.toContain('token reused')
    const next = { grant_type: 'refresh_token', refresh_token: again.body['refresh_token'] ?? '', client_id: client }
    expect((await server.token(next)).status).toBe(200)
  })
})
