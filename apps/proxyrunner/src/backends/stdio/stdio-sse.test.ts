import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime } from './testing/pipe-runtime.ts'
import { startStdioRunner } from './testing/stdio-runner.ts'
import { eventually, type Incoming, jsonOf, post, send, textOf } from './testing/wire-client.ts'

const FIXTURE = fixtureServer({ era: 'legacy' })

interface SseClient {
  readonly stream: Incoming
  readonly endpoint: string
  post(message: object): Promise<number>
  call(id: string | number, method: string, params?: object): Promise<Awaited<ReturnType<Incoming['next']>>>
}

async function openSse(base: string, capabilities: object = {}): Promise<SseClient> {
  const stream = await send(`${base}/sse`, { headers: { accept: 'text/event-stream' } })
  await eventually('the endpoint is known', () => stream.events.length > 0)
  const [first] = stream.events
  if (first?.event !== 'endpoint') throw new Error(`the first event is ${JSON.stringify(first)}`)
  const endpoint = new URL(first.data, base).href
  const client: SseClient = {
    stream,
    endpoint,
    post: async (message) => (await post(endpoint, { jsonrpc: '2.0', ...message })).status,
    async call(id, method, params = {}) {
      await client.post({ id, method, params })
      return stream.next((message) => message.id === id && message.method === undefined)
    },
  }
  const params = { protocolVersion: '2024-11-05', capabilities, clientInfo: { name: 'sse', version: '1' } }
  const answer = await client.call('init', 'initialize', params)
  expect(answer).toMatchObject({ result: { protocolVersion: '2024-11-05' } })
  await client.post({ method: 'notifications/initialized' })
  return client
}

describe('HTTP+SSE in front of a stdio server', () => {
  it('answers over the stream of the one who asked, whatever ids others use', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(FIXTURE) })
    const clients = await Promise.all(Array.from({ length: 20 }, () => openSse(runner.base)))
    const texts = await Promise.all(
      clients.map(async (client, index) => textOf(await client.call(1, 'tools/call', { name: 'echo', arguments: { index } }))),
    )
    expect(texts).toEqual(clients.map((_, index) => `{"index":${index}}`))
    for (const { stream } of clients) expect(stream.messages).toHaveLength(2)
    expect(runner.backend.status.sessions).toBe(20)
    expect(clients[0]?.endpoint).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/messages\?sessionId=[\w-]+$/)
  })

  it('relays progress, logs, list changes and questions over it too', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(FIXTURE) })
    const client = await openSse(runner.base, { sampling: {} })
    await client.post({ id: 5, method: 'tools/call', params: { name: 'test_sampling', arguments: {} } })
    const question = await client.stream.next(({ method }) => method === 'sampling/createMessage')
    expect(await client.post({ id: question.id, result: { role: 'assistant', content: { type: 'text', text: 'Rome' }, model: 'm' } })).toBe(
      202,
    )
    expect(textOf(await client.stream.next(({ id }) => id === 5))).toContain('Rome')
    const meta = { _meta: { progressToken: 'tok' } }
    await client.call(6, 'tools/call', { name: 'test_tool_with_progress', ...meta })
    expect(client.stream.messages.filter(({ method }) => method === 'notifications/progress')).toHaveLength(3)
    await client.call(7, 'tools/call', { name: 'test_tool_with_logging' })
    expect(client.stream.messages.filter(({ method }) => method === 'notifications/message')).toHaveLength(3)
    await client.call(8, 'tools/call', { name: 'test_trigger_tool_change' })
    expect(await client.stream.next(({ method }) => method === 'notifications/tools/list_changed')).toBeDefined()
  })

  it('ends the session, and the process that was its own, with the stream', async () => {
    const runtime = pipeRuntime(FIXTURE)
    await using runner = await startStdioRunner({ runtime })
    const client = await openSse(runner.base, { roots: {} })
    expect(runtime.alive).toBe(1)
    client.stream.abort()
    await eventually('it is gone', () => runner.backend.status.sessions === 0 && runtime.alive === 0)
    expect(await client.post({ id: 1, method: 'ping' })).toBe(404)
  })

  it('rejects messages without a session, with an unknown one, and before the handshake', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(FIXTURE) })
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    expect((await post(`${runner.base}/messages`, ping)).status).toBe(400)
    expect((await post(`${runner.base}/messages?sessionId=nope`, ping)).status).toBe(404)
    expect((await post(`${runner.base}/sse`, ping)).status).toBe(405)
    const stream = await send(`${runner.base}/sse`, {})
    await eventually('the endpoint is known', () => stream.events.length > 0)
    const endpoint = new URL(stream.events[0]?.data ?? '', runner.base).href
    expect((await post(endpoint, { jsonrpc: '2.0', id: 1, method: 'tools/list' })).status).toBe(202)
    expect(await stream.next()).toMatchObject({ id: 1, error: { code: -32600 } })
    expect((await post(endpoint, ping)).status).toBe(202)
    expect(await stream.next()).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
  })

  it('shares a process with sessions of streamable HTTP, and nothing else', async () => {
    const runtime = pipeRuntime(FIXTURE)
    await using runner = await startStdioRunner({ runtime })
    const [sse, other] = [await openSse(runner.base), await openSse(runner.base)]
    const whoAre = await Promise.all([sse, other].map(async (client) => jsonOf(await client.call(1, 'tools/call', { name: 'who_am_i' }))))
    expect(whoAre[0]?.['instance']).toBe(whoAre[1]?.['instance'])
    expect(runtime.started).toHaveLength(1)
  })
})
