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

/** A store that is slow to answer on a busy machine is a 503, and the client comes again. */
async function answers(attempt: () => Promise<unknown>, expected: unknown): Promise<void> {
  await expect.poll(attempt, { timeout: 30_000 }).toBe(expected)
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

  /** Until Redis is connected sessions cannot be stored, and each replica counts limits for itself. */
  async function start(fixture: Fixture, config: object = {}): Promise<TestVmcp> {
    const vmcp = await startTestVmcp({
      backends: { one: fixture.url },
      env: ENV,
      config: { sessionStorage: { provider: 'redis', address: `${redis.host}:${redis.port}` }, ...config },
    })
    await initialized(vmcp)
    return vmcp
  }

  async function initialized(vmcp: TestVmcp): Promise<WireClient> {
    const client = new WireClient(vmcp.url)
    await expect.poll(async () => (await client.initialize()).status, { timeout: 30_000 }).toBe(200)
    return client
  }

  it('serve the sessions of each other with their settings, also when the first is gone, and none that was ended', async () => {
    const one = await start(legacy)
    await using two = await start(legacy)
    const client = await initialized(one)
    const subscribe = () => client.request('resources/subscribe', { uri: 'test://watched-resource' })
    await answers(async () => (await subscribe()).status, 200)
    const elsewhere = new WireClient(two.url)
    elsewhere.sessionId = client.sessionId
    await answers(async () => (await elsewhere.call('echo', { text: 'a' })).status, 200)
    await expect.poll(() => legacy.stats.count('resources/subscribe'), { timeout: 30_000 }).toBeGreaterThanOrEqual(2)
    await one[Symbol.asyncDispose]()
    await answers(async () => (await elsewhere.call('echo', { text: 'b' })).status, 200)
    await answers(async () => [204, 404].includes((await elsewhere.delete()).status), true)
    await answers(async () => (await elsewhere.call('echo', { text: 'c' })).status, 404)
    expect(await (await fetch(`${two.base}/status`)).json()).toMatchObject({ session_storage: 'redis' })
  })

  it('open the states of each other, and go on with each other’s workflows, once', async () => {
    await using one = await start(modern, { compositeTools: [ASKS] })
    await using two = await start(modern, { compositeTools: [ASKS] })
    const inputResponses = { 'elicitation-1': { action: 'accept', content: { text: 'elsewhere' } } }
    let most = 0
    const goOn = async () => {
      const { requestState } = (await callModern(one.url, 'asks')).result ?? {}
      const both = await Promise.all([one, two].map(({ url }) => callModern(url, 'asks', { requestState, inputResponses })))
      const done = both.filter(({ result }) => result?.resultType === 'complete')
      most = Math.max(most, done.length)
      return requestState === undefined ? 'not asked' : JSON.stringify(done).includes('elsewhere')
    }
    await answers(goOn, true)
    expect(most).toBe(1)
    const tool = 'test_input_required_result_request_state'
    let again: Parameters<typeof callModern>[2] = {}
    const answered = async () => {
      const { inputRequests = {}, requestState } = (await callModern(one.url, tool)).result ?? {}
      const accepted = Object.keys(inputRequests).map((key) => [key, { action: 'accept', content: { confirm: true } }])
      again = { requestState, inputResponses: Object.fromEntries(accepted) }
      return JSON.stringify(await callModern(two.url, tool, again)).includes('state-ok')
    }
    await answers(answered, true)
    // A state of a backend leads back once, too, whichever replica it comes to.
    for (const { url } of [one, two]) {
      await answers(async () => (await callModern(url, tool, again)).error?.code, -32602)
    }
  })

  it('count one limit together', async () => {
    const limits = { rateLimiting: { tools: [{ name: 'echo', shared: { maxTokens: 3, refillPeriod: '1h' } }] } }
    await using one = await start(modern, { name: 'limited', ...limits })
    await using two = await start(modern, { name: 'limited', ...limits })
    let allowed = 0
    for (let i = 0; i < 3; i++)
      for (const { url } of [one, two]) if ((await callModern(url, 'echo', { arguments: { text: 'x' } })).error === undefined) allowed++
    // A Redis that is slow to answer is not waited for: then a replica counts for itself, and says so.
    const local = async ({ base }: TestVmcp) =>
      Number(/^toolhive_rate_limit_local_total (\d+)$/m.exec(await (await fetch(`${base}/metrics`)).text())?.[1] ?? 0)
    expect(allowed).toBeGreaterThanOrEqual(3)
    expect(allowed - 3).toBeLessThanOrEqual((await local(one)) + (await local(two)))
    expect(await redis.command('KEYS', 'thv:rl:*limited*')).toContain('limited')
  })
})
