import { WireClient } from '@thv/gateway/testing/wire-client'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { startRedis, type TestRedis } from '@thv/testkit/redis/redis'
import { redisProblem } from '@thv/testkit/redis/redis-programs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callModern } from './testing/call-modern.ts'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

const describeRedis = redisProblem() === undefined || process.env['CI'] ? describe : describe.skip

const ENV = { THV_SESSION_REDIS_PASSWORD: 'pa55', VMCP_SESSION_HMAC_SECRET: 'of all replicas, and long enough' }
const ASKS = {
  name: 'asks',
  description: 'Asks, then repeats it.',
  steps: [
    { id: 'ask', type: 'elicitation', message: 'What?', schema: { type: 'object', properties: { text: { type: 'string' } } } },
    { id: 'say', tool: 'one.echo', dependsOn: ['ask'], arguments: { text: '{{.steps.ask.output.content.text}}' } },
  ],
}

describeRedis('virtual servers that share a Redis', () => {
  let redis: TestRedis
  let legacy: Fixture
  let modern: Fixture

  beforeAll(async () => {
    redis = await startRedis({ password: 'pa55' })
    legacy = await startFixture({ era: 'legacy' })
    modern = await startFixture({ era: 'modern' })
  })
  afterAll(async () => {
    for (const each of [redis, legacy, modern]) await each?.[Symbol.asyncDispose]()
  })

  const start = (fixture: Fixture, config: object = {}): Promise<TestVmcp> =>
    startTestVmcp({
      backends: { one: fixture.url },
      env: ENV,
      config: { sessionStorage: { provider: 'redis', address: `${redis.host}:${redis.port}` }, ...config },
    })

  async function initialized(vmcp: TestVmcp): Promise<WireClient> {
    const client = new WireClient(vmcp.url)
    await expect.poll(async () => (await client.initialize()).status, { timeout: 30_000 }).toBe(200)
    return client
  }

  it('serve the sessions of each other with their settings, also when the first is gone, and none that was ended', async () => {
    const one = await start(legacy)
    await using two = await start(legacy)
    const client = await initialized(one)
    expect((await client.request('resources/subscribe', { uri: 'test://watched-resource' })).status).toBe(200)
    const elsewhere = new WireClient(two.url)
    elsewhere.sessionId = client.sessionId
    expect((await elsewhere.call('echo', { text: 'a' })).status).toBe(200)
    await expect.poll(() => legacy.stats.count('resources/subscribe')).toBe(2)
    await one[Symbol.asyncDispose]()
    expect((await elsewhere.call('echo', { text: 'b' })).status).toBe(200)
    expect((await elsewhere.delete()).status).toBe(204)
    expect((await elsewhere.call('echo', { text: 'c' })).status).toBe(404)
    expect(await (await fetch(`${two.base}/status`)).json()).toMatchObject({ session_storage: 'redis' })
  })

  it('open the states of each other, and go on with each other’s workflows, once', async () => {
    await using one = await start(modern, { compositeTools: [ASKS] })
    await using two = await start(modern, { compositeTools: [ASKS] })
    const asked = await callModern(one.url, 'asks')
    expect(asked.result?.resultType).toBe('input_required')
    const requestState = asked.result?.requestState
    const inputResponses = { 'elicitation-1': { action: 'accept', content: { text: 'elsewhere' } } }
    const answers = await Promise.all([one, two].map(({ url }) => callModern(url, 'asks', { requestState, inputResponses })))
    expect(answers.map(({ error }) => error?.code).toSorted()).toEqual([-32602, undefined])
    expect(JSON.stringify(answers)).toContain('elsewhere')
    const state = await callModern(one.url, 'test_input_required_result_request_state')
    const confirmed = Object.fromEntries(
      Object.keys(state.result?.inputRequests ?? {}).map((key) => [key, { action: 'accept', content: { confirm: true } }]),
    )
    const again = { requestState: state.result?.requestState, inputResponses: confirmed }
    expect(JSON.stringify(await callModern(two.url, 'test_input_required_result_request_state', again))).toContain('state-ok')
  })

  it('count one limit together', async () => {
    const limits = { rateLimiting: { tools: [{ name: 'echo', shared: { maxTokens: 3, refillPeriod: '1h' } }] } }
    await using one = await start(modern, { name: 'limited', ...limits })
    await using two = await start(modern, { name: 'limited', ...limits })
    const allowed: boolean[] = []
    for (let i = 0; i < 3; i++)
      for (const { url } of [one, two]) allowed.push((await callModern(url, 'echo', { arguments: { text: 'x' } })).error === undefined)
    expect(allowed.filter(Boolean)).toHaveLength(3)
  })
})
