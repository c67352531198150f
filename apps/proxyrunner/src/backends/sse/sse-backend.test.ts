import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { TestClock } from '@thv/kernel/clock'
import { createToolFilter } from '@thv/middleware/tool-filter/tool-filter'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, describe, expect, it } from 'vitest'
import { SseWireClient } from '../../testing/sse-wire-client.ts'
import { startTestRunner, type TestRunner, type TestRunnerOptions } from '../../testing/test-runner.ts'

const open: AsyncDisposable[] = []

afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

async function setup(
  options: Parameters<typeof startFixture>[0] = {},
  runnerOptions: Partial<TestRunnerOptions> = {},
): Promise<{ fixture: Fixture; runner: TestRunner }> {
  const fixture = await startFixture({ transport: 'sse', ...options })
  open.push(fixture)
  const runner = await startTestRunner({ backend: fixture.url, transport: 'sse', ...runnerOptions })
  open.push(runner)
  return { fixture, runner }
}

async function connect(runner: TestRunner, headers?: Record<string, string>): Promise<SseWireClient> {
  const client = await SseWireClient.open(runner.url, headers)
  open.push(client)
  return client
}

describe('the endpoint', () => {
  it.each(['relative', 'absolute'] as const)('that the backend names (%s) becomes ours', async (sseEndpoint) => {
    const { runner } = await setup({ sseEndpoint })
    const client = await connect(runner)
    expect(client.endpoint).toMatch(/^\/messages\?sessionId=[\w-]{32}$/)
    await client.initialize()
    expect(await client.request(1, 'tools/call', { name: 'echo', arguments: { text: 'hi' } })).toMatchObject({
      result: { structuredContent: { arguments: { text: 'hi' } } },
    })
  })

  it('on another server is refused', async () => {
    const { runner } = await setup({ sseEndpoint: 'foreign' })
    const client = await connect(runner)
    expect(client.response.status).toBe(502)
    expect(await client.response.json()).toMatchObject({ error: { code: 502 } })
  })

  it.each([
    [{ endpointPrefix: '/team/a' }, {}, '/team/a/messages?'],
    [{ trustProxyHeaders: true }, { 'x-forwarded-prefix': '/via' }, '/via/messages?'],
    [{ endpointPrefix: '/set', trustProxyHeaders: true }, { 'x-forwarded-prefix': '/via' }, '/set/messages?'],
    [{}, { 'x-forwarded-prefix': '/via', 'x-forwarded-host': 'evil.example' }, '/messages?'],
    [{ trustProxyHeaders: true }, { 'x-forwarded-prefix': '//evil.example' }, '/messages?'],
  ])('with %j and %j begins with %s', async (endpoint, headers: Record<string, string>, expected) => {
    const { runner } = await setup({}, { endpoint })
    expect((await connect(runner, headers)).endpoint.startsWith(expected)).toBe(true)
  })
})

describe('clients', () => {
  it('of the official SDK work', async () => {
    const { runner } = await setup()
    const client = new Client({ name: 'v1', version: '1' })
    const transport = new SSEClientTransport(new URL(runner.url))
    const progress: unknown[] = []
    // The SDK itself says nothing of progress that came in one piece with the answer.
    transport.onmessage = (message) => {
      if ('method' in message && message.method === 'notifications/progress') progress.push(message.params?.['progress'])
    }
    await client.connect(transport)
    expect((await client.listTools()).tools.length).toBeGreaterThan(10)
    await client.callTool({ name: 'test_tool_with_progress' }, undefined, { onprogress: () => undefined })
    expect(progress).toEqual([0, 50, 100])
    await client.close()
  })

  it('never see each other’s answers, whatever ids they use', async () => {
    const { runner } = await setup()
    const clients = await Promise.all(Array.from({ length: 10 }, () => connect(runner)))
    await Promise.all(clients.map((client) => client.initialize()))
    const answers = await Promise.all(
      clients.map((client, i) => client.request(1, 'tools/call', { name: 'echo', arguments: { text: `client ${i}` } })),
    )
    expect(answers.map((answer) => answer.result.structuredContent.arguments.text)).toEqual(clients.map((_, i) => `client ${i}`))
    for (const client of clients) expect(client.messages).toHaveLength(2)
  })

  it('are not found under a wrong id, and told when they name none', async () => {
    const { runner } = await setup()
    const client = await connect(runner)
    expect((await client.post({ id: 1, method: 'ping' }, '/messages?sessionId=nope')).status).toBe(404)
    expect((await client.post({ id: 1, method: 'ping' }, '/messages')).status).toBe(400)
    expect((await fetch(runner.url, { method: 'POST' })).status).toBe(405)
    expect((await fetch(`${runner.base}/messages`)).status).toBe(405)
    expect((await fetch(`${runner.base}/mcp`, { method: 'POST' })).status).toBe(404)
  })

  it('that go away end their session at the backend', async () => {
    const { fixture, runner } = await setup()
    const client = await SseWireClient.open(runner.url)
    await client.initialize()
    expect(fixture.stats.sessions).toBe(1)
    await client[Symbol.asyncDispose]()
    await expect.poll(() => fixture.stats.sessions).toBe(0)
    await expect.poll(() => runner.backend.status.sessions).toBe(0)
    expect((await client.post({ id: 1, method: 'ping' })).status).toBe(404)
  })

  it('are refused when there is no backend', async () => {
    const { fixture, runner } = await setup()
    await fixture.stop()
    const client = await connect(runner)
    expect(client.response.status).toBe(503)
    expect(await client.response.json()).toMatchObject({ error: { code: 503 } })
  })
})

describe('calls', () => {
  it('under way get an error when the backend’s stream breaks, and the stream ends', async () => {
    const { runner } = await setup()
    const client = await connect(runner)
    await client.initialize()
    await client.post({ id: 'lost', method: 'tools/call', params: { name: 'crash' } })
    expect(await client.answer('lost')).toMatchObject({ error: { code: 5021, data: { mayHaveRun: true, retryable: true } } })
    await expect.poll(() => client.ended).toBe(true)
  })

  it('that stay silent are given up, and what comes later is not passed on', async () => {
    const clock = new TestClock()
    const { fixture, runner } = await setup({}, { clock, limits: { idleMs: 100 } })
    const client = await connect(runner)
    await client.initialize()
    const slow = { name: 'slow', arguments: { ms: 400 } }
    await client.post({ id: 'late', method: 'tools/call', params: slow })
    await expect.poll(() => fixture.stats.count('tools/call')).toBe(1)
    await clock.advance(1_000)
    expect(await client.answer('late')).toMatchObject({ error: { code: 504 } })
    // As slow as the one before, so answered after it, on the same stream.
    expect(await client.request('next', 'tools/call', slow)).toHaveProperty('result')
    expect(client.messages.filter(({ id }) => id === 'late')).toHaveLength(1)
  })

  it('that ask back may wait for people', async () => {
    const clock = new TestClock()
    const { runner } = await setup({}, { clock, limits: { idleMs: 1_000 } })
    const client = await connect(runner)
    await client.request('init', 'initialize', {
      protocolVersion: '2025-11-25',
      capabilities: { elicitation: {} },
      clientInfo: { name: 'x', version: '1' },
    })
    await client.post({ method: 'notifications/initialized' })
    await client.post({ id: 'ask', method: 'tools/call', params: { name: 'ask', arguments: { kind: 'elicitation' } } })
    await expect.poll(() => client.messages.some(({ method }) => method === 'elicitation/create')).toBe(true)
    await clock.advance(10_000)
    const question = client.messages.find(({ method }) => method === 'elicitation/create')
    await client.post({ id: question.id, result: { action: 'decline' } })
    expect(JSON.stringify(await client.answer('ask'))).toContain('decline')
  })

  it('are filtered and renamed', async () => {
    const filter = createToolFilter({ filter: ['say'], overrides: { echo: { name: 'say' } } }, { warn: () => {} })
    const { runner } = await setup({}, { middleware: [filter] })
    const client = await connect(runner)
    await client.initialize()
    const { result } = await client.request(1, 'tools/list')
    expect(result.tools.map(({ name }: { name: string }) => name)).toEqual(['say'])
    expect(await client.request(2, 'tools/call', { name: 'say', arguments: { text: 'x' } })).toMatchObject({
      result: { structuredContent: { arguments: { text: 'x' } } },
    })
    expect(await client.request(3, 'tools/call', { name: 'echo' })).toMatchObject({ error: { code: -32602 } })
  })

  it('are not answered with a list that cannot be filtered', async () => {
    const streams: ServerResponse[] = []
    const server = createServer((request, response) => {
      if (request.method === 'GET') {
        streams.push(response.writeHead(200, { 'content-type': 'text/event-stream' }))
        response.write('event: endpoint\ndata: /messages\n\n')
        return
      }
      request.resume()
      response.writeHead(202).end()
      for (const stream of streams) stream.write('data: [{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"secret"}]}}]\n\n')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    open.push({
      async [Symbol.asyncDispose]() {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      },
    })
    const middleware = [createToolFilter({ filter: ['say'], overrides: {} }, { warn: () => {} })]
    const backend = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`
    const runner = await startTestRunner({ backend, transport: 'sse', middleware })
    open.push(runner)
    const client = await connect(runner)
    await client.post({ id: 1, method: 'tools/list' })
    expect(await client.answer(1)).toMatchObject({ error: { code: 502 } })
    await expect.poll(() => client.ended).toBe(true)
    expect(JSON.stringify(client.events)).not.toContain('secret')
  })

  it('have ids of their own: the answer to one is never taken for that to another', async () => {
    const { fixture, runner } = await setup()
    const client = await connect(runner)
    await client.initialize()
    await client.post({ id: 7, method: 'tools/call', params: { name: 'hang' } })
    await expect.poll(() => fixture.stats.count('tools/call')).toBe(1)
    expect((await client.post({ id: 7, method: 'tools/list' })).status).toBe(400)
    expect(fixture.stats.count('tools/list')).toBe(0)
    expect(await client.request(8, 'tools/list')).toHaveProperty('result')
  })
})

it('a drain lets calls finish, then ends the streams', async () => {
  const { runner } = await setup()
  const client = await connect(runner)
  await client.initialize()
  await client.post({ id: 'slow', method: 'tools/call', params: { name: 'slow', arguments: { ms: 150 } } })
  await runner.gateway.drain(AbortSignal.timeout(5_000))
  expect(await client.answer('slow')).toMatchObject({ result: { content: [{ text: 'slept' }] } })
  await expect.poll(() => client.ended).toBe(true)
})
