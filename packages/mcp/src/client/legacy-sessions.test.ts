import { AsyncLocalStorage } from 'node:async_hooks'
import { createOutbound } from '@thv/http/outbound/outbound'
import { type BackendHandler, type SeenRequest, startBackend } from '@thv/http/testing/backend'
import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it, vi } from 'vitest'
import type { JsonObject } from '../json-rpc.ts'
import { createStreamableHttpClient } from './http/streamable-http-client.ts'
import { ANSWERS, CLIENT_INFO, connectPeers } from './testing/fixture-client.ts'

describe('a legacy session over HTTP', () => {
  it('is named in every request after the handshake, and deleted at the end', async () => {
    await using peers = await connectPeers({ era: 'legacy' })
    const report = JSON.parse(await peers.text('report_request')) as { session: string; headers: Record<string, string> }
    expect(report.headers).toMatchObject({ 'mcp-session-id': report.session, 'mcp-protocol-version': '2025-11-25' })
    expect(peers.fixture.stats.sessions).toBe(1)
    await peers.client.close()
    expect(peers.fixture.stats).toMatchObject({ sessions: 0, http: { 'DELETE 200': 1 } })
    expect(peers.warnings).toEqual([])
  })

  it('carries no answers of a modern client, which may have taken the server for a modern one', async () => {
    const handler: BackendHandler = ({ body }, response) => {
      const { id, params } = JSON.parse(body) as JsonObject
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer(id, { seen: params }))
    }
    await using peers = await scripted(handler)
    const answers = { inputResponses: { q: { action: 'accept' } }, requestState: 's' }
    for (const [method, params] of [
      ['tools/call', { name: 'x', arguments: answers }],
      ['resources/read', { uri: 'test://x' }],
      ['prompts/get', { name: 'x' }],
    ] as const)
      expect(await peers.client.request(method, { ...params, ...answers })).toEqual({ seen: params })
  })

  it('answers the server with the headers of the call that it is about, and is deleted with those of the request that opened it', async () => {
    const users = new AsyncLocalStorage<string>()
    const answered = Promise.withResolvers<void>()
    const handler: BackendHandler = async ({ method, body }, response) => {
      if (method === 'GET') return void response.writeHead(405).end()
      if (!body.includes('"tools/call"')) {
        response.writeHead(202).end()
        return answered.resolve()
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"jsonrpc":"2.0","id":"question","method":"ping"}\n\n')
      await answered.promise
      response.end(`data: ${answer((JSON.parse(body) as JsonObject)['id'], {})}\n\n`)
    }
    const headers = () => ({ 'x-user': users.getStore() ?? 'nobody' })
    await using peers = await users.run('ada', () => scripted(handler, { headers }))
    await users.run('bob', () => peers.client.request('tools/call', { name: 'x' }))
    await users.run('eve', () => peers.client.close())
    const seen = peers.requests.map(
      ({ method, body, headers: sent }) => `${method} ${/question|tools.call/.exec(body) ?? ''} ${sent['x-user']}`,
    )
    expect(seen.filter((line) => /question|call|DELETE/.test(line))).toEqual(['POST tools/call bob', 'POST question bob', 'DELETE  ada'])
  })

  it('waits for the end of a notification and of an answer within a limit, also where calls have none', async () => {
    const clock = new TestClock()
    const warnings: string[] = []
    const handler: BackendHandler = ({ method, body }, response) => {
      if (method === 'GET') return void response.writeHead(405).end()
      if (!body.includes('"tools/call"')) return
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"jsonrpc":"2.0","id":"question","method":"ping"}\n\n')
    }
    const limits = { timeoutMs: Number.POSITIVE_INFINITY }
    await using peers = await scripted(handler, { clock, limits, onWarning: (text) => void warnings.push(text) })
    const notified = expect(peers.client.notify('notifications/roots/list_changed')).rejects.toMatchObject({ code: 'timeout' })
    const called = expect(peers.client.request('tools/call', { name: 'x' })).rejects.toThrow()
    await vi.waitFor(() => expect(peers.requests.map(({ body }) => body).join()).toMatch(/"question"/), 10_000)
    await clock.advance(60_000)
    await notified
    await vi.waitFor(() => expect(warnings.join()).toContain('no answer to ping'), 10_000)
    await peers.client.close()
    await called
  })

  it('shows no version header below 2025-06-18', async () => {
    await using peers = await connectPeers({ era: 'legacy', client: { legacyVersion: '2025-03-26' } })
    const report = JSON.parse(await peers.text('report_request')) as { headers: Record<string, string> }
    expect(report.headers).not.toHaveProperty('mcp-protocol-version')
    expect(peers.client.protocolVersion).toBe('2025-03-26')
  })

  it.each([404, 400] as const)(
    'that the server forgot (%i) is replaced once for all who use it, with what it knew',
    async (unknownSessionStatus) => {
      await using peers = await connectPeers({ era: 'legacy', unknownSessionStatus })
      const { client, fixture } = peers
      await client.request('logging/setLevel', { level: 'error' })
      await client.request('resources/subscribe', { uri: 'test://watched-resource' })
      await client.request('resources/subscribe', { uri: 'test://static-text' })
      await client.request('resources/unsubscribe', { uri: 'test://static-text' })
      fixture.admin.forgetSessions()
      const answers = await Promise.all([1, 2, 3].map((n) => peers.text('echo', { text: `${n}` })))
      expect(answers).toEqual(['{"text":"1"}', '{"text":"2"}', '{"text":"3"}'])
      expect(fixture.stats).toMatchObject({ sessions: 1, sessionsCreated: 2 })
      const repeated = fixture.stats.received
        .slice(-20)
        .map(({ message }) => ('method' in message ? [message.method, message.params?.['uri']] : []))
      expect(repeated).toContainEqual(['logging/setLevel', undefined])
      expect(repeated.filter(([, uri]) => uri === 'test://static-text')).toHaveLength(2)
      expect(repeated.filter(([, uri]) => uri === 'test://watched-resource')).toHaveLength(2)
    },
  )

  it('hears on its standalone stream again after it was replaced, and learns of the gap', async () => {
    await using peers = await connectPeers({ era: 'legacy' })
    const heard = vi.fn()
    const onGap = vi.fn()
    await using _listening = await peers.client.listen({ toolsListChanged: true }, { onNotification: heard, onGap })
    peers.fixture.admin.forgetSessions()
    await peers.client.ping()
    await vi.waitFor(() => expect(onGap).toHaveBeenCalledOnce(), { timeout: 15_000 })
    peers.fixture.admin.listChanged('tools')
    await vi.waitFor(() => expect(heard).toHaveBeenCalledOnce(), 10_000)
  })

  it('fails a call that was in flight when the server forgot it, and does not repeat it', async () => {
    await using peers = await connectPeers({ era: 'legacy', responseMode: 'sse' })
    const hung = peers.call('hang')
    await vi.waitFor(() => expect(peers.fixture.stats.count('tools/call')).toBe(1), 10_000)
    const outcome = expect(hung).rejects.toMatchObject({ code: 'mcp_session_lost' })
    peers.fixture.admin.forgetSessions()
    await outcome
    expect(peers.fixture.stats.count('tools/call')).toBe(1)
    expect(await peers.text('echo', {})).toBe('{}')
  })

  it('goes on behind the last event when its connections are cut', async () => {
    await using peers = await connectPeers({ era: 'legacy', responseMode: 'sse' })
    const slow = peers.text('slow', { ms: 300 })
    await vi.waitFor(() => expect(peers.fixture.stats.count('tools/call')).toBe(1), 10_000)
    peers.fixture.admin.dropStreams()
    expect(await slow).toBe('slept')
    expect(peers.fixture.stats.count('tools/call')).toBe(1)
  })

  it('does without where the server has none, and where it has no standalone stream', async () => {
    await using peers = await connectPeers({ era: 'legacy', sessions: false })
    expect(await peers.text('greet', { name: 'Bob' })).toBe('Hello, Bob!')
    const listening = await peers.client.listen({ toolsListChanged: true }, { onNotification: () => {} })
    expect(listening.honoured).toEqual({})
    await peers.client.close()
    expect(peers.fixture.stats.http).not.toHaveProperty('DELETE 200')
    expect(peers.warnings).toEqual([])
  })

  it('answers on the standalone stream too', async () => {
    await using peers = await connectPeers({ era: 'legacy', client: ANSWERS })
    expect(await peers.text('ask', { kind: 'roots', via: 'standalone' })).toContain('file:///home/ada')
  })
})

describe('a legacy HTTP server of its own kind', () => {
  it('may make the client poll: it resumes by GET, from the last event it saw', async () => {
    await using peers = await scripted(({ method, headers }, response) => {
      if (method === 'GET' && headers['last-event-id'] === undefined) return void response.writeHead(405).end()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (method === 'POST') return void response.end('id: a-1\nretry: 30\ndata:\n\n')
      if (headers['last-event-id'] === 'a-1')
        return void response.end('id: a-2\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n')
      response.end(`id: a-3\ndata: ${answer(peers.lastCallId(), { content: [] })}\n\n`)
    })
    const logs: unknown[] = []
    const result = await peers.client.request('tools/call', { name: 'x' }, { onNotification: ({ params }) => logs.push(params?.['data']) })
    expect(result).toEqual({ content: [] })
    expect(logs).toEqual([1])
    const gets = peers.requests.filter(({ method, headers }) => method === 'GET' && headers['last-event-id'] !== undefined)
    expect(gets.map(({ headers }) => headers['last-event-id'])).toEqual(['a-1', 'a-2'])
    expect(gets.every(({ headers }) => headers['mcp-session-id'] === 'S1' && headers['mcp-protocol-version'] === '2025-11-25')).toBe(true)
  })

  it('that ends a stream without ids and without an answer has broken it', async () => {
    await using peers = await scripted(
      (_request, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n'),
    )
    await expect(peers.client.request('tools/call', { name: 'x' })).rejects.toMatchObject({ code: 'mcp_stream_broken' })
  })

  it('that does not resume has broken it, too', async () => {
    await using peers = await scripted(({ method }, response) => {
      if (method === 'GET') response.writeHead(405).end()
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: a-1\nretry: 20\ndata:\n\n')
    })
    await expect(peers.client.request('tools/call', { name: 'x' })).rejects.toMatchObject({
      code: 'mcp_stream_broken',
      cause: { status: 405 },
    })
  })

  it('may answer on the standalone stream', async () => {
    let standalone: { write(text: string): void } | undefined
    const handler: BackendHandler = ({ method }, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (method === 'GET') {
        standalone = response
        response.flushHeaders()
      } else {
        response.flushHeaders()
        standalone?.write(`data: ${answer(peers.lastCallId(), { ok: true })}\n\n`)
      }
    }
    await using peers = await scripted(handler, { onNotification: () => {} })
    expect(await peers.client.request('tools/call', { name: 'x' })).toEqual({ ok: true })
  })

  it('must not assign a session id that fits into no header', async () => {
    const backend = scripted(() => {}, {}, 'bad id')
    await expect(backend).rejects.toMatchObject({ code: 'backend_protocol_error' })
  })

  it('is asked for a session at most twice', async () => {
    await using peers = await scripted((_request, response) => void response.writeHead(404).end())
    await expect(peers.client.request('tools/call', { name: 'x' })).rejects.toMatchObject({
      code: 'mcp_session_lost',
      cause: { status: 404 },
    })
    expect(peers.requests.filter(({ body }) => body.includes('"initialize"'))).toHaveLength(2)
  })

  it('may send too much: the limit holds for JSON and for events', async () => {
    const big = (type: string) => async () => {
      await using peers = await scripted(
        (_request, response) => {
          const text = answer(peers.lastCallId(), { text: 'x'.repeat(5_000) })
          response.writeHead(200, { 'content-type': type }).end(type === 'application/json' ? text : `data: ${text}\n\n`)
        },
        { limits: { maxMessageBytes: 2_000 } },
      )
      await peers.client.request('tools/call', { name: 'x' })
    }
    await expect(big('application/json')()).rejects.toMatchObject({ code: 'message_too_large' })
    await expect(big('text/event-stream')()).rejects.toMatchObject({ code: 'message_too_large' })
  })

  it.each([
    [200, 'application/json', '', /answered tools\/call with nothing/],
    [202, 'application/json', '', /answered tools\/call with nothing/],
    [200, 'text/html', '<html>', /no message: the body is not JSON/],
    [200, 'application/json', '[]', /no message: batches/],
    [200, 'application/json', '{"jsonrpc":"2.0","id":"other","result":{}}', /not its answer/],
    [200, 'application/json', '{"jsonrpc":"2.0","method":"ping","id":1}', /not its answer/],
  ])('that answers %i %s %j breaks the protocol', async (status, type, body, message) => {
    await using peers = await scripted((_request, response) => void response.writeHead(status, { 'content-type': type }).end(body))
    const outcome = await peers.client.request('tools/call', { name: 'x' }).catch((error: unknown) => error)
    expect(outcome).toMatchObject({ code: 'backend_protocol_error', message: expect.stringMatching(message) })
  })
})

/** A server that does the handshake well, and everything after it as configured. */
async function scripted(handler: BackendHandler, options: Partial<Parameters<typeof createStreamableHttpClient>[0]> = {}, session = 'S1') {
  const outbound = createOutbound()
  const backend = await startBackend((request, response) => {
    const message = request.method === 'POST' ? (JSON.parse(request.body) as JsonObject) : {}
    if (request.method === 'DELETE') return void response.writeHead(200).end()
    if (message['method'] === 'notifications/initialized') return void response.writeHead(202).end()
    if (message['method'] !== 'initialize') return handler(request, response)
    const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } }
    response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': session }).end(answer(message['id'], result))
  })
  const client = createStreamableHttpClient({ url: `${backend.url}/mcp`, outbound, clientInfo: CLIENT_INFO, era: 'legacy', ...options })
  const dispose = async () => {
    await client.close()
    await outbound.close()
    await backend[Symbol.asyncDispose]()
  }
  try {
    await client.connect()
  } catch (error) {
    await dispose()
    throw error
  }
  return { client, requests: backend.requests, lastCallId: () => lastCallId(backend.requests), [Symbol.asyncDispose]: dispose }
}

function lastCallId(requests: readonly SeenRequest[]): unknown {
  const call = requests.findLast(({ body }) => body.includes('"tools/call"'))
  return (JSON.parse(call?.body ?? '{}') as JsonObject)['id']
}

function answer(id: unknown, result: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', id, result })
}
