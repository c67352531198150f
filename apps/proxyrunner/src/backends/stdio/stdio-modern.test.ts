import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime, scriptedServer } from './testing/pipe-runtime.ts'
import { startStdioRunner } from './testing/stdio-runner.ts'
import { eventually, jsonOf, MODERN, modern, post, textOf, type Wire } from './testing/wire-client.ts'

const FIXTURE = fixtureServer({ era: 'modern' })
const start = (config = {}) => startStdioRunner({ runtime: pipeRuntime(FIXTURE), config })
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const metaOf = (message: Wire) => ((message['params'] ?? message['result']) as { _meta?: Record<string, unknown> })._meta

/** A modern server that does as told; `server/discover` is answered for it. */
const modernServer = (onMessage: Parameters<typeof scriptedServer>[0]) =>
  scriptedServer((message, write, ends) => {
    if (message.method === 'server/discover' && message.id !== undefined) {
      write({ jsonrpc: '2.0', id: message.id, result: { resultType: 'complete', supportedVersions: [MODERN], capabilities: {} } })
    } else onMessage(message, write, ends)
  })

describe('modern requests to a stdio server', () => {
  it('need no session and never trigger a handshake', async () => {
    const runtime = pipeRuntime(FIXTURE)
    await using runner = await startStdioRunner({ runtime })
    const answer = await modern(
      runner.url,
      'tools/call',
      { name: 'echo', arguments: { text: 'ä🙂' } },
      { id: 'x', headers: { 'mcp-session-id': 'stray' } },
    )
    expect([answer.status, answer.isStream, answer.headers.get('mcp-session-id')]).toEqual([200, false, null])
    const response = await answer.next()
    expect([response.id, textOf(response)]).toEqual(['x', '{"text":"ä🙂"}'])
    expect(runtime.started).toHaveLength(1)
    expect(runner.backend.status).toMatchObject({ eras: ['modern'], versions: [MODERN], sessions: 0 })
    const stats = jsonOf(await (await modern(runner.url, 'tools/call', { name: 'fixture_stats' })).next())
    expect(Object.keys(stats['methods'] as object)).not.toContain('initialize')
  })

  it('carry the envelope of the client through to the server, but not its token and id', async () => {
    await using runner = await start()
    const meta = { progressToken: 3, traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'example.com/x': [1] }
    const answer = await modern(runner.url, 'tools/call', { name: 'report_request' }, { id: 5, meta, capabilities: { roots: {} } })
    const seen = jsonOf(await answer.next())
    expect(seen).toMatchObject({ era: 'modern', transport: 'stdio', clientInfo: { name: 'test' }, clientCapabilities: { roots: {} } })
    expect(seen['meta']).toMatchObject({ traceparent: meta.traceparent, 'example.com/x': [1], progressToken: expect.stringMatching(/\./) })
  })

  it('get progress and the logs they asked for ahead of the result, nothing after it', async () => {
    await using runner = await start()
    const progress = await modern(runner.url, 'tools/call', { name: 'test_tool_with_progress' }, { meta: { progressToken: 'p' } })
    const messages = await progress.all()
    expect(progress.isStream).toBe(true)
    expect(messages.map(({ method }) => method)).toEqual([...Array(3).fill('notifications/progress'), undefined])
    expect(messages[0]).toMatchObject({ params: { progressToken: 'p' } })
    expect(progress.events.every(({ id }) => id === undefined)).toBe(true)
    const level = { 'io.modelcontextprotocol/logLevel': 'info' }
    const logged = await (await modern(runner.url, 'tools/call', { name: 'test_logging_tool' }, { meta: level })).all()
    expect(logged.map(({ method }) => method)).toEqual([...Array(3).fill('notifications/message'), undefined])
    expect(await (await modern(runner.url, 'tools/call', { name: 'flood', arguments: { force: true, count: 3 } })).all()).toHaveLength(1)
    expect(runner.dropped('log', 'level')).toBe(3)
  })

  it('get no log when another request is under way, as it could be of that one', async () => {
    await using runner = await start()
    const hanging = modern(runner.url, 'tools/call', { name: 'hang' }, { id: 'h' })
    hanging.catch(() => {})
    await eventually('it is under way', () => runner.backend.status.inFlight === 1)
    const meta = { 'io.modelcontextprotocol/logLevel': 'info' }
    expect(await (await modern(runner.url, 'tools/call', { name: 'test_logging_tool' }, { meta })).all()).toHaveLength(1)
    expect(runner.dropped('log', 'unattributed')).toBe(3)
  })

  it('have the HTTP status that the standard gives their errors', async () => {
    await using runner = await start()
    const statuses = async (...args: Parameters<typeof modern> extends [string, ...infer Rest] ? Rest : never) => {
      const answer = await modern(runner.url, ...args)
      return [answer.status, ((await answer.next())['error'] as { code: number }).code]
    }
    expect(await statuses('unknown/method')).toEqual([404, -32601])
    expect(await statuses('initialize')).toEqual([404, -32601])
    expect(await statuses('tools/call', { name: 'test_missing_capability' })).toEqual([400, -32021])
    expect(await statuses('tools/call', { name: 'nope' })).toEqual([200, -32602])
    expect(await statuses('resources/read', { uri: 'test://nope' })).toEqual([200, -32602])
  })

  it('are checked for the headers that repeat arguments, since the server cannot see them', async () => {
    await using runner = await start()
    const call = { name: 'region_query', arguments: { region: 'us-west1', query: 'x' } }
    const statusWith = async (headers: Record<string, string>) => (await modern(runner.url, 'tools/call', call, { headers })).status
    expect(await statusWith({ 'mcp-param-region': 'us-west1' })).toBe(200)
    expect(await statusWith({ 'mcp-param-region': '=?base64?dXMtd2VzdDE=?=' })).toBe(200)
    expect(await statusWith({ 'mcp-param-region': 'elsewhere' })).toBe(400)
    expect(await statusWith({})).toBe(400)
  })

  it('are cancelled when the client hangs up', async () => {
    await using runner = await start()
    const hangUp = new AbortController()
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'hang',
        _meta: { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': {} },
      },
    })
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': 'tools/call',
      'mcp-name': 'hang',
    }
    const hanging = fetch(runner.url, { method: 'POST', body, headers, signal: hangUp.signal })
    hanging.catch(() => {})
    await eventually('it is under way', () => runner.backend.status.inFlight === 1)
    hangUp.abort()
    await eventually('it is over', () => runner.backend.status.inFlight === 0)
    const stats = jsonOf(await (await modern(runner.url, 'tools/call', { name: 'fixture_stats' })).next())
    expect(stats['cancelled']).toMatchObject([{ method: 'tools/call', name: 'hang', by: 'notification' }])
  })

  it('are answered 202 where they are notifications, and the server never hears of them', async () => {
    const seen: unknown[] = []
    await using runner = await startStdioRunner({ runtime: pipeRuntime(modernServer(({ method }) => void seen.push(method))) })
    const note = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
    expect((await post(runner.url, note, { 'mcp-protocol-version': MODERN })).status).toBe(202)
    expect(seen).toEqual([])
  })

  it('share one process, and equal ids of different clients never meet', async () => {
    const runtime = pipeRuntime(FIXTURE)
    await using runner = await startStdioRunner({ runtime })
    const texts = await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const answer = await modern(runner.url, 'tools/call', { name: 'echo', arguments: { text: `mine ${index}` } }, { id: 1 })
        return textOf(await answer.next())
      }),
    )
    expect(texts).toEqual(texts.map((_, index) => JSON.stringify({ text: `mine ${index}` })))
    expect(runtime.started).toHaveLength(1)
  })
})

describe('subscriptions/listen on a stdio server', () => {
  const ALL = { notifications: { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: ['test://watched-resource'] } }

  it('is acknowledged first and tagged with the id of this hop, in its JSON type', async () => {
    await using runner = await start()
    const [number, text] = await Promise.all([
      modern(runner.url, 'subscriptions/listen', ALL, { id: 7 }),
      modern(runner.url, 'subscriptions/listen', { notifications: { toolsListChanged: true } }, { id: '7' }),
    ])
    expect(metaOf(await number.next())?.[SUBSCRIPTION]).toBe(7)
    expect(metaOf(await text.next())?.[SUBSCRIPTION]).toBe('7')
    expect(number.messages[0]).toMatchObject({ method: 'notifications/subscriptions/acknowledged', params: ALL })
    await modern(runner.url, 'tools/call', { name: 'touch_resource' })
    await modern(runner.url, 'tools/call', { name: 'test_trigger_tool_change' })
    expect(await number.next()).toMatchObject({ method: 'notifications/resources/updated', params: { uri: 'test://watched-resource' } })
    const [a, b] = [await number.next(), await text.next()]
    expect([a.method, b.method]).toEqual(['notifications/tools/list_changed', 'notifications/tools/list_changed'])
    expect([metaOf(a)?.[SUBSCRIPTION], metaOf(b)?.[SUBSCRIPTION]]).toEqual([7, '7'])
    expect(text.messages).toHaveLength(2)
  })

  it('is cancelled at the server when the client hangs up', async () => {
    await using runner = await start()
    const stream = await modern(runner.url, 'subscriptions/listen', ALL)
    expect(await stream.next()).toMatchObject({ jsonrpc: '2.0' })
    stream.abort()
    await eventually('no client listens', () => runner.backend.status.inFlight === 0)
    await eventually('the server knows', async () => {
      return jsonOf(await (await modern(runner.url, 'tools/call', { name: 'fixture_stats' })).next())['listens'] === 0
    })
  })

  it('gets a final result when the runner drains, and others receive Retry-After', async () => {
    await using runner = await start()
    const stream = await modern(runner.url, 'subscriptions/listen', ALL, { id: 'l' })
    await stream.next()
    await runner.backend.drain(AbortSignal.timeout(10_000))
    expect(await stream.next()).toEqual({ jsonrpc: '2.0', id: 'l', result: { resultType: 'complete', _meta: { [SUBSCRIPTION]: 'l' } } })
    const late = await modern(runner.url, 'tools/list')
    expect([late.status, late.headers.get('retry-after')]).toEqual([503, '1'])
  })

  it('ends without a result when the server dies: the client listens again', async () => {
    await using runner = await start()
    const stream = await modern(runner.url, 'subscriptions/listen', ALL)
    await stream.next()
    const crash = await modern(runner.url, 'tools/call', { name: 'crash' })
    expect([crash.status, await crash.next()]).toMatchObject([502, { error: { code: 5021, data: { mayHaveRun: true, retryable: true } } }])
    expect(await stream.all()).toHaveLength(1)
    const again = await modern(runner.url, 'subscriptions/listen', ALL)
    expect(await again.next()).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
  })

  it('is kept open with an empty acknowledgement where the server has nothing to tell', async () => {
    const server = modernServer(({ id }, write) => {
      if (id !== undefined) write({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } })
    })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server) })
    const stream = await modern(runner.url, 'subscriptions/listen', ALL, { id: 3 })
    expect(await stream.next()).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: {}, _meta: { [SUBSCRIPTION]: 3 } },
    })
    stream.abort()
  })

  it('passes nothing on before the acknowledgement, and nothing with an unknown tag', async () => {
    const server = modernServer(({ id, method }, write) => {
      if (method !== 'subscriptions/listen') return
      const tag = (value: unknown) => ({ _meta: { [SUBSCRIPTION]: value } })
      write({ jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: tag(id) })
      write({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: { notifications: {}, ...tag(id) } })
      write({ jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: tag('AAAAAAAA.1') })
      write({ jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: {} })
      write({ jsonrpc: '2.0', id, result: { resultType: 'complete', _meta: tag(id)._meta } })
    })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server) })
    const messages = await (await modern(runner.url, 'subscriptions/listen', ALL, { id: 0 })).all()
    expect(messages.map(({ method }) => method)).toEqual(['notifications/subscriptions/acknowledged', undefined])
    expect(messages[1]).toEqual({ jsonrpc: '2.0', id: 0, result: { resultType: 'complete', _meta: { [SUBSCRIPTION]: 0 } } })
    expect(runner.dropped('notification', 'unattributed')).toBe(3)
  })

  it('is an event stream or nothing, and there is a limit', async () => {
    await using runner = await start({ maxListens: 1 })
    expect((await modern(runner.url, 'subscriptions/listen', ALL, { accept: 'application/json' })).status).toBe(406)
    await (await modern(runner.url, 'subscriptions/listen', ALL)).next()
    expect(await (await modern(runner.url, 'subscriptions/listen', ALL)).next()).toMatchObject({ error: { code: -32603 } })
  })
})
