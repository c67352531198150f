import { type Clock, TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime, scriptedServer } from './testing/pipe-runtime.ts'
import { startStdioRunner } from './testing/stdio-runner.ts'
import { eventually, jsonOf, openLegacy, post, send, textOf } from './testing/wire-client.ts'

const FIXTURE = fixtureServer({ era: 'legacy' })
const start = (config = {}, clock?: Clock) => startStdioRunner({ runtime: pipeRuntime(FIXTURE), config, ...(clock && { clock }) })

/** A runner that turns calls into streams, and its server, which answers one after a second and a half of the clock. */
async function startSlow() {
  const clock = new TestClock()
  let calls = 0
  const server = scriptedServer(({ method, id }, write) => {
    if (method !== 'tools/call') return
    calls++
    clock.setTimer(1_500, () => write({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'slept' }] } }))
  })
  const config = { streamAfterMs: 10, idleTimeoutMs: 2_000 }
  const runner = await startStdioRunner({ runtime: pipeRuntime(server), config, clock })
  return { clock, runner, hasCalled: () => calls === 1, [Symbol.asyncDispose]: () => runner[Symbol.asyncDispose]() }
}

describe('a legacy session on a stdio server', () => {
  it('is opened, used and ended', async () => {
    await using runner = await start()
    const client = await openLegacy(runner.url)
    expect(client.result).toMatchObject({ protocolVersion: '2025-11-25', serverInfo: { name: 'mcp-fixture' } })
    expect(client.sessionId).toMatch(/^[\x21-\x7e]{20,}$/)
    expect(textOf(await client.tool('echo', { text: 'größer 大きさ 🙂 \u200d\ufffd\u00a0' }))).toBe(
      '{"text":"größer 大きさ 🙂 \u200d\ufffd\u00a0"}',
    )
    expect(await client.call('ping')).toEqual({ jsonrpc: '2.0', id: 2, result: {} })
    expect(runner.backend.status).toMatchObject({ ready: true, eras: ['legacy'], sessions: 1, inFlight: 0 })
    expect(await client.end()).toBe(204)
    expect((await client.request('tools/list')).status).toBe(404)
    expect(await client.end()).toBe(404)
    expect((await client.stream()).status).toBe(404)
  })

  it('answers under the id of the client, in its JSON type', async () => {
    await using runner = await start()
    const client = await openLegacy(runner.url)
    for (const id of ['\u2028', 0, -1, 9_007_199_254_740_991, '1', '', 'ä"\\\u2028']) {
      expect((await client.tool('echo', { id }, { id })).id).toBe(id)
    }
  })

  it('needs its id on everything but initialize', async () => {
    await using runner = await start()
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const missing = await post(runner.url, body)
    expect([missing.status, await missing.next()]).toMatchObject([400, { id: 1, error: { code: -32000 } }])
    for (const sessionId of ['nope', 'ä', 'x'.repeat(300)]) {
      const unknown = await post(runner.url, body, { 'mcp-session-id': Buffer.from(sessionId).toString('latin1') })
      expect([unknown.status, await unknown.next()]).toMatchObject([404, { id: 1, error: { code: -32001 } }])
    }
    expect((await post(runner.url, { jsonrpc: '2.0', method: 'notifications/initialized' }, { 'mcp-session-id': 'nope' })).status).toBe(404)
    expect((await send(runner.url, { headers: { accept: 'text/event-stream' } })).status).toBe(400)
  })

  it('negotiates the version of each client, also on a process greeted long ago', async () => {
    await using runner = await start()
    const versions = ['2025-11-25', '2024-11-05', '2025-06-18', '2025-03-26']
    for (const version of versions) expect((await openLegacy(runner.url, { version })).result).toMatchObject({ protocolVersion: version })
    const unknown = await post(runner.url, {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2026-07-28', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
    })
    expect(await unknown.next()).toMatchObject({ result: { protocolVersion: '2025-11-25' } })
  })

  it('answers with the version of a server that is older than the client', async () => {
    const server = scriptedServer(() => {}, { version: '2024-11-05', capabilities: { tools: {}, tasks: { list: {} } } })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server) })
    const { result } = await openLegacy(runner.url, { version: '2025-11-25' })
    expect(result).toMatchObject({ protocolVersion: '2024-11-05' })
    expect(result['capabilities']).toEqual({ tools: {} })
  })

  it('is answered as JSON unless something has to be said first, and as events if nothing else is accepted', async () => {
    await using runner = await start()
    const client = await openLegacy(runner.url)
    const [plain, streamed, only] = await Promise.all([
      client.request('tools/list'),
      client.request('tools/call', { name: 'test_tool_with_progress' }, { meta: { progressToken: 'p' } }),
      client.request('tools/list', {}, { accept: 'text/event-stream' }),
    ])
    expect([plain.isStream, streamed.isStream, only.isStream]).toEqual([false, true, true])
    const messages = await streamed.all()
    expect(messages.map((message) => (message['params'] as { progressToken?: unknown })?.progressToken)).toEqual(['p', 'p', 'p', undefined])
    expect(streamed.events[0]).toMatchObject({ data: '' })
    const json = await client.request(
      'tools/call',
      { name: 'test_tool_with_progress' },
      { meta: { progressToken: 7 }, accept: 'application/json' },
    )
    expect([json.isStream, (await json.all()).length]).toEqual([false, 1])
  })

  it('does not send the priming event to clients that choke on it', async () => {
    await using runner = await start()
    const client = await openLegacy(runner.url, { version: '2025-06-18' })
    const streamed = await client.request('tools/call', { name: 'test_tool_with_progress' }, { meta: { progressToken: 1 } })
    await streamed.all()
    expect(streamed.events.every(({ data }) => data !== '')).toBe(true)
  })

  it('turns a long call into a stream, so that the connection is kept open', async () => {
    await using place = await startSlow()
    const client = await openLegacy(place.runner.url)
    const pending = client.request('tools/call')
    await eventually('it is under way', place.hasCalled)
    await place.clock.advance(1_000)
    const slow = await pending
    expect(slow.isStream).toBe(true)
    await place.clock.advance(500)
    expect(textOf(await slow.next())).toBe('slept')
  })

  it('gets list changes and updates on its standalone stream, updates only as subscribed', async () => {
    await using runner = await start()
    const [a, b] = [await openLegacy(runner.url), await openLegacy(runner.url)]
    const [streamA, streamB] = [await a.stream(), await b.stream()]
    expect(await a.call('resources/subscribe', { uri: 'test://watched-resource' }, { id: 's' })).toEqual({
      jsonrpc: '2.0',
      id: 's',
      result: {},
    })
    await b.tool('touch_resource', { uri: 'test://watched-resource' })
    await b.tool('test_trigger_tool_change')
    expect(await streamA.next()).toMatchObject({ method: 'notifications/resources/updated', params: { uri: 'test://watched-resource' } })
    expect(await streamA.next()).toMatchObject({ method: 'notifications/tools/list_changed' })
    expect(await streamB.next()).toMatchObject({ method: 'notifications/tools/list_changed' })
    await a.call('resources/unsubscribe', { uri: 'test://watched-resource' })
    await b.tool('touch_resource', { uri: 'test://watched-resource' })
    await b.tool('test_trigger_prompt_change')
    expect(await streamA.next()).toMatchObject({ method: 'notifications/prompts/list_changed' })
  })

  it('gets what came before its stream was open once it opens one', async () => {
    await using runner = await start()
    const client = await openLegacy(runner.url)
    await client.tool('test_trigger_tool_change', {}, { accept: 'application/json' })
    await client.tool('test_trigger_tool_change', {}, { accept: 'application/json' })
    const stream = await client.stream()
    expect(await stream.next()).toMatchObject({ method: 'notifications/tools/list_changed' })
    expect(stream.messages).toHaveLength(1)
  })

  it('has one standalone stream: the newer one ends the older', async () => {
    await using runner = await start()
    const client = await openLegacy(runner.url)
    const older = await client.stream()
    const newer = await client.stream()
    await older.all()
    await client.tool('test_trigger_tool_change')
    expect(await newer.next()).toMatchObject({ method: 'notifications/tools/list_changed' })
    expect(older.messages).toEqual([])
  })

  it('can come back to the answer of a call whose connection broke, and hanging up cancels nothing', async () => {
    await using place = await startSlow()
    const client = await openLegacy(place.runner.url)
    const pending = client.request('tools/call', {}, { id: 'long' })
    await eventually('it is under way', place.hasCalled)
    await place.clock.advance(1_000)
    const broken = await pending
    await eventually('it is primed', () => broken.events.length > 0)
    broken.abort()
    const resumed = await client.stream(broken.events[0]?.id)
    await place.clock.advance(500)
    expect(await resumed.next()).toMatchObject({ id: 'long', result: { content: [{ text: 'slept' }] } })
    await resumed.all()
    const again = await client.stream(broken.events[0]?.id)
    expect(await again.all()).toMatchObject([{ id: 'long' }])
  })

  it('replays the standalone stream from where it broke, and only that', async () => {
    await using runner = await start()
    const client = await openLegacy(runner.url)
    const first = await client.stream()
    await client.tool('test_trigger_tool_change')
    await first.next()
    const seen = first.events.at(-1)?.id
    first.abort()
    await eventually('the break was noticed', async () => {
      await client.tool('test_trigger_prompt_change', {}, { accept: 'application/json' })
      return first.messages.length === 1
    })
    const second = await client.stream(seen)
    expect(await second.next()).toMatchObject({ method: 'notifications/prompts/list_changed' })
  })

  it('cancels under the id of its client, without an answer', async () => {
    await using runner = await start()
    const client = await openLegacy(runner.url)
    const pending = client.request('tools/call', { name: 'hang' }, { id: 'same' })
    await eventually('it is under way', () => runner.backend.status.inFlight === 1)
    expect(await client.notify('notifications/cancelled', { requestId: 'other' })).toBe(202)
    expect(runner.backend.status.inFlight).toBe(1)
    expect(await client.notify('notifications/cancelled', { requestId: 'same', reason: 'enough' })).toBe(202)
    const answer = await pending
    expect([answer.status, await answer.all()]).toEqual([202, []])
    expect(runner.backend.status.inFlight).toBe(0)
    const stats = jsonOf(await client.tool('fixture_stats'))
    expect(stats['cancelled']).toMatchObject([{ method: 'tools/call', name: 'hang', by: 'notification' }])
  })

  it('may use an id only once at a time', async () => {
    await using runner = await start()
    const client = await openLegacy(runner.url)
    const pending = client.request('tools/call', { name: 'hang' }, { id: 1 })
    await eventually('it is under way', () => runner.backend.status.inFlight === 1)
    const twice = await client.request('tools/list', {}, { id: 1 })
    expect([twice.status, await twice.next()]).toMatchObject([400, { error: { code: -32600 } }])
    await client.end()
    expect((await pending).status).toBe(202)
  })

  it('is bound to a time limit that a hanging server cannot pass', async () => {
    const clock = new TestClock()
    await using runner = await start({ idleTimeoutMs: 100 }, clock)
    const client = await openLegacy(runner.url)
    const pending = client.request('tools/call', { name: 'hang' }, { accept: 'application/json', id: 'h' })
    await eventually('it is under way', () => runner.backend.status.inFlight === 1)
    await clock.advance(1_000)
    const hung = await pending
    expect([hung.status, await hung.next()]).toMatchObject([504, { id: 'h', error: { code: 504, data: { mayHaveRun: true } } }])
    expect(textOf(await client.tool('echo', {}))).toBe('{}')
  })

  it('is forgotten after its time without use', async () => {
    const clock = new TestClock()
    await using runner = await start({ sessionTtlMs: 200 }, clock)
    const client = await openLegacy(runner.url)
    const listening = await openLegacy(runner.url)
    await listening.stream()
    await clock.advance(1_000)
    await eventually('the unused one is gone', () => runner.backend.status.sessions === 1)
    expect((await client.request('tools/list')).status).toBe(404)
    expect((await listening.request('tools/list')).status).toBe(200)
  })

  it('passes errors and unknown methods of the server on, as they are', async () => {
    await using runner = await start()
    const client = await openLegacy(runner.url)
    expect(await client.tool('rpc_error', { code: -32042, message: 'ö' })).toMatchObject({
      error: { code: -32042, message: 'ö', data: { demanded: true } },
    })
    const unknown = await client.request('vendor/thing')
    expect([unknown.status, await unknown.next()]).toMatchObject([200, { error: { code: -32601 } }])
  })

  it('lets the pipeline edit what it edits, and nothing else', async () => {
    const middleware = [
      {
        name: 'one',
        edits: ['tools/list'],
        item: (_: unknown, tool: object) => ('name' in tool && tool.name === 'echo' ? { name: 'renamed' } : undefined),
      },
    ]
    await using runner = await startStdioRunner({ runtime: pipeRuntime(FIXTURE), middleware })
    const client = await openLegacy(runner.url)
    expect(await client.call('tools/list', {}, { id: 'x' })).toEqual({ jsonrpc: '2.0', id: 'x', result: { tools: [{ name: 'renamed' }] } })
    expect(await client.call('prompts/list')).toMatchObject({ result: { prompts: expect.anything() } })
  })

  it('keeps numbers that no double holds, and the order of members', async () => {
    const raw = '{"b":1,"a":12345678901234567890.10,"c":"\\u00e9"}'
    const server = scriptedServer(({ id, method }, write) => {
      if (method === 'tools/call') write(`{"result":${raw},"jsonrpc":"2.0","id":${JSON.stringify(id)}}\n`)
    })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server) })
    const { sessionId } = await openLegacy(runner.url)
    const response = await fetch(runner.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', 'mcp-session-id': sessionId },
      body: '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}',
    })
    expect(await response.text()).toBe(`{"result":${raw},"jsonrpc":"2.0","id":5}`)
  })

  it('sets the log level for itself, and hears no more than that', async () => {
    await using runner = await start()
    const [quiet, loud] = [await openLegacy(runner.url), await openLegacy(runner.url)]
    expect(await quiet.call('logging/setLevel', { level: 'error' }, { id: 1 })).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
    await loud.call('logging/setLevel', { level: 'debug' })
    const calls = { name: 'test_tool_with_logging' }
    expect((await (await loud.request('tools/call', calls)).all()).filter(({ method }) => method === 'notifications/message')).toHaveLength(
      3,
    )
    expect(await (await quiet.request('tools/call', calls)).all()).toHaveLength(1)
    expect(runner.dropped('log', 'level')).toBe(3)
    expect(await quiet.call('logging/setLevel', { level: 'shout' })).toMatchObject({ error: { code: -32602 } })
  })
})
