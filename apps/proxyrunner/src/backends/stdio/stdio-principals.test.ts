import type { Backend } from '@thv/gateway/backend'
import type { Exchange } from '@thv/http/server/exchange'
import { readBody } from '@thv/http/server/read-body'
import { createHttpServer } from '@thv/http/server/server'
import { parseBody } from '@thv/mcp/parse-body'
import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime } from './testing/pipe-runtime.ts'
import { startStdioRunner } from './testing/stdio-runner.ts'
import { eventually, post, send } from './testing/wire-client.ts'

/** A front that knows who asks, as the one with authentication will. */
async function frontFor(backend: Backend) {
  const server = createHttpServer({ handler: (exchange) => handle(exchange, backend), onError: () => {}, limits: { drainIdleMs: 0 } })
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 })
  return { url, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

async function handle(exchange: Exchange, backend: Backend): Promise<void> {
  const principal = String(exchange.headers['x-user'])
  const inQuery = new URLSearchParams(exchange.query).get('sessionId') ?? undefined
  const header = exchange.headers['mcp-session-id']
  const sessionId = typeof header === 'string' ? header : inQuery
  const use = { sessionId: sessionId ?? '', principal, lastEventId: undefined }
  if (exchange.path === '/sse') return backend.sse?.open(exchange, principal)
  if (exchange.method === 'GET') return backend.openStream(exchange, use)
  if (exchange.method === 'DELETE') return backend.endSession(exchange, use)
  const received = parseBody(await readBody(exchange, 1 << 20))
  if (received.kind === 'invalid') throw new Error(received.detail)
  const context = { exchange, era: 'legacy', received, outgoing: received, sessionId, principal } as const
  return exchange.path === '/messages' ? backend.sse?.message(context) : backend.post(context)
}

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
}
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

describe('a session belongs to who opened it', () => {
  it('and does not exist for anybody else, who cannot end it either', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(fixtureServer({ era: 'legacy' })) })
    await using gateway = await frontFor(runner.backend)
    const opened = await post(gateway.url, INITIALIZE, { 'x-user': 'ada' })
    const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '', accept: 'text/event-stream' }
    const stream = await send(gateway.url, { headers: { ...headers, 'x-user': 'ada' } })
    for (const method of ['GET', 'DELETE']) {
      expect((await send(gateway.url, { method, headers: { ...headers, 'x-user': 'eve' } })).status).toBe(404)
    }
    expect((await post(gateway.url, PING, { ...headers, 'x-user': 'eve' })).status).toBe(404)
    expect((await post(gateway.url, PING, { ...headers, 'x-user': 'ada' })).status).toBe(200)
    const trigger = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'test_trigger_tool_change' } }
    await post(gateway.url, trigger, { ...headers, 'x-user': 'ada' })
    expect(await stream.next()).toMatchObject({ method: 'notifications/tools/list_changed' })
    expect((await send(gateway.url, { method: 'DELETE', headers: { ...headers, 'x-user': 'ada' } })).status).toBe(204)
  })

  it('also over HTTP+SSE', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(fixtureServer({ era: 'legacy' })) })
    await using gateway = await frontFor(runner.backend)
    const stream = await send(`${gateway.url}/sse`, { headers: { 'x-user': 'ada' } })
    await eventually('the endpoint is known', () => stream.events.length > 0)
    const endpoint = new URL(stream.events[0]?.data ?? '', gateway.url).href
    expect((await post(endpoint, PING, { 'x-user': 'eve' })).status).toBe(404)
    expect((await post(endpoint, PING, { 'x-user': 'ada' })).status).toBe(202)
    expect(await stream.next()).toMatchObject({ id: 1, result: {} })
    stream.abort()
  })
})
