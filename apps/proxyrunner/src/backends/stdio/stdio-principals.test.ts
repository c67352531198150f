import type { Backend } from '@thv/gateway/backend'
import type { Exchange } from '@thv/http/server/exchange'
import { readBody } from '@thv/http/server/read-body'
import { createHttpServer } from '@thv/http/server/server'
import { TestClock } from '@thv/kernel/clock'
import { parseBody } from '@thv/mcp/parse-body'
import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime, type ScriptedMessage, scriptedServer } from './testing/pipe-runtime.ts'
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

describe('what a shared server says after it has answered a call', () => {
  /** Answers `first` at once and keeps `second` open; what it says in between names no call, but was caused by the first one. */
  async function startLate() {
    const open: unknown[] = []
    const refusals: ScriptedMessage[] = []
    let write: (message: object) => void = () => {}
    const server = scriptedServer((message, send) => {
      write = send
      if (message.method === 'tools/call' && message.params?.['name'] === 'first') send({ jsonrpc: '2.0', id: message.id, result: {} })
      else if (message.method === 'tools/call') open.push(message.id)
      else if (message.error !== undefined) refusals.push(message)
    })
    const clock = new TestClock()
    const runner = await startStdioRunner({ runtime: pipeRuntime(server), config: { isolation: 'shared' }, clock })
    const gateway = await frontFor(runner.backend)
    return {
      ...{ runner, clock, refusals },
      async session(user: string) {
        const initialize = { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: { sampling: {} } } }
        const opened = await post(gateway.url, initialize, { 'x-user': user })
        const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '', 'x-user': user }
        return (name: string) => post(gateway.url, { jsonrpc: '2.0', id: name, method: 'tools/call', params: { name } }, headers)
      },
      /** Says three things for the first call, then answers the second. */
      async finish() {
        await eventually('the second call is there', () => open.length === 1)
        write({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'late secret' } })
        write({ jsonrpc: '2.0', method: 'notifications/vendor/thing', params: { data: 'late secret' } })
        write({ jsonrpc: '2.0', id: 'q', method: 'sampling/createMessage', params: { messages: ['late secret'] } })
        write({ jsonrpc: '2.0', id: open[0], result: {} })
      },
      async [Symbol.asyncDispose]() {
        await runner[Symbol.asyncDispose]()
        await gateway[Symbol.asyncDispose]()
      },
    }
  }

  const methodsOf = (messages: readonly { method?: string }[]) => messages.flatMap(({ method }) => method ?? [])

  it('never reaches a session of another principal; a request is refused', async () => {
    await using late = await startLate()
    const [ada, eve] = [await late.session('ada'), await late.session('eve')]
    await (await ada('first')).all()
    const second = eve('second')
    await late.finish()
    expect(await (await second).all()).toEqual([{ jsonrpc: '2.0', id: 'second', result: {} }])
    await eventually('the server was refused', () => late.refusals.length === 1)
    expect(late.refusals).toMatchObject([{ id: 'q', error: { code: -32601 } }])
    const { runner } = late
    expect(['log', 'notification', 'request'].map((what) => runner.dropped(what, 'unattributed'))).toEqual([1, 1, 1])
  })

  it('reaches the session at work when it can be of the same principal only', async () => {
    await using late = await startLate()
    const [one, two] = [await late.session('ada'), await late.session('ada')]
    await (await one('first')).all()
    const second = two('second')
    await late.finish()
    expect(methodsOf(await (await second).all())).toEqual(['notifications/message', 'notifications/vendor/thing', 'sampling/createMessage'])
  })

  it('counts for one minute', async () => {
    await using late = await startLate()
    const [ada, eve] = [await late.session('ada'), await late.session('eve')]
    await (await ada('first')).all()
    await late.clock.advance(60_000)
    const second = eve('second')
    await late.finish()
    expect(methodsOf(await (await second).all())).toHaveLength(3)
  })
})
