import { readUntil, WireClient } from '@thv/gateway/testing/wire-client'
import { TestClock } from '@thv/kernel/clock'
import { createToolFilter } from '@thv/middleware/tool-filter/tool-filter'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, describe, expect, it } from 'vitest'
import { startTestRunner, type TestRunner, type TestRunnerOptions } from '../../testing/test-runner.ts'

const open: AsyncDisposable[] = []

afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

interface Setup {
  readonly fixture: Fixture
  readonly runner: TestRunner
  readonly client: WireClient
}

async function setup(options: Parameters<typeof startFixture>[0] = {}, runnerOptions: Partial<TestRunnerOptions> = {}): Promise<Setup> {
  const fixture = await startFixture(options)
  open.push(fixture)
  const runner = await startTestRunner({ backend: fixture.url, ...runnerOptions })
  open.push(runner)
  await runner.probed()
  return { fixture, runner, client: new WireClient(runner.url) }
}

/** The request as the tool `report_request` saw it. */
function reported({ messages }: { messages: { result?: { content: { text: string }[] } }[] }) {
  return JSON.parse(messages.at(-1)?.result?.content[0]?.text ?? '{}')
}

describe('legacy sessions', () => {
  it('have an id of ours, which the backend never sees', async () => {
    const { client } = await setup()
    await client.initialize()
    expect(client.sessionId).toMatch(/^[\w-]{32}$/)
    const { session, headers } = reported(await client.call('report_request'))
    expect(session).not.toBe(client.sessionId)
    expect(headers['mcp-session-id']).toBe(session)
  })

  it('are 404 when unknown, malformed or of another kind, and stay the backend’s 400 when missing', async () => {
    const { client, fixture } = await setup()
    for (const id of ['nope', 'a b', 'x'.repeat(300)]) {
      client.sessionId = id
      expect(await client.call('echo')).toMatchObject({ status: 404, messages: [{ error: { code: -32001 } }] })
    }
    client.sessionId = undefined
    expect((await client.call('echo')).status).toBe(400)
    expect(fixture.stats.count('tools/call')).toBe(0)
  })

  it('end with DELETE, at both ends', async () => {
    const { client, fixture } = await setup()
    await client.initialize()
    expect((await client.delete()).status).toBeLessThan(300)
    expect((await client.call('echo')).status).toBe(404)
    expect((await client.delete()).status).toBe(404)
    expect(fixture.stats.sessions).toBe(0)
  })

  it('end here when the backend cannot be asked any more', async () => {
    const { client, fixture } = await setup()
    await client.initialize()
    await fixture.stop()
    expect((await client.delete()).status).toBe(204)
    expect((await client.call('echo')).status).toBe(404)
  })

  it('do not exist where the backend has none', async () => {
    const { client } = await setup({ sessions: false })
    const answer = await client.initialize()
    expect(answer.headers.get('mcp-session-id')).toBeNull()
    expect((await client.call('echo', { text: 'hi' })).status).toBe(200)
    expect((await client.get()).status).toBe(405)
    expect((await client.delete()).status).toBe(405)
  })

  it('expire', async () => {
    const clock = new TestClock()
    const { client } = await setup({}, { clock, limits: { sessionTtlMs: 40 } })
    await client.initialize()
    await clock.advance(60)
    expect((await client.call('echo')).status).toBe(404)
  })

  it('that expired are ended at the backend too', async () => {
    const clock = new TestClock()
    const { client, fixture } = await setup({}, { clock, limits: { sessionTtlMs: 40 } })
    await client.initialize()
    expect(fixture.stats.sessions).toBe(1)
    await clock.advance(5_000)
    await expect.poll(() => fixture.stats.sessions).toBe(0)
    expect(Object.keys(fixture.stats.http).filter((key) => key.startsWith('DELETE 2'))).toHaveLength(1)
  })

  it('do not expire while a stream of theirs is open', async () => {
    const clock = new TestClock()
    const { client, fixture } = await setup({}, { clock, limits: { sessionTtlMs: 900 } })
    await client.initialize()
    const leave = new AbortController()
    const stream = await client.get({}, leave.signal)
    expect(stream.status).toBe(200)
    await clock.advance(10_000)
    expect((await client.call('echo')).status).toBe(200)
    leave.abort()
    const left = async () => {
      await clock.advance(1_000)
      return fixture.stats.sessions
    }
    await expect.poll(left).toBe(0)
  })

  it('are refused when all others are in use, and not left behind at the backend', async () => {
    const { runner, fixture } = await setup({}, { sessions: 1 })
    const first = new WireClient(runner.url)
    await first.initialize()
    const stream = await first.get()
    expect(stream.status).toBe(200)
    const second = new WireClient(runner.url)
    const answer = await second.request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    })
    expect(answer).toMatchObject({ status: 503, messages: [{ error: { code: 503 } }] })
    expect(answer.headers.get('retry-after')).toBe('2')
    expect(fixture.stats.sessions).toBe(1)
    await stream.body?.cancel()
  })
})

describe.each([404, 400] as const)('a session that the backend forgot and answers with %i', (unknownSessionStatus) => {
  it('is initialized again with all its settings, once for all waiting calls', async () => {
    const { client, fixture } = await setup({ unknownSessionStatus })
    await client.initialize({ sampling: {} })
    await client.request('logging/setLevel', { level: 'debug' })
    await client.request('resources/subscribe', { uri: 'test://watched-resource' })
    await client.request('resources/subscribe', { uri: 'test://static-text' })
    await client.request('resources/unsubscribe', { uri: 'test://static-text' })
    const before = reported(await client.call('report_request'))
    const receivedBefore = fixture.stats.received.length
    fixture.admin.forgetSessions()

    const answers = await Promise.all(Array.from({ length: 12 }, () => client.call('report_request')))
    for (const answer of answers) {
      expect(answer.status).toBe(200)
      expect(reported(answer).session).not.toBe(before.session)
      expect(reported(answer).clientCapabilities).toEqual({ sampling: {} })
    }
    expect(new Set(answers.map((answer) => reported(answer).session)).size).toBe(1)
    const again = fixture.stats.received.slice(receivedBefore).flatMap(({ message }) => ('method' in message ? [message] : []))
    expect(again.filter(({ method }) => method !== 'tools/call' && method !== 'ping')).toMatchObject([
      { method: 'initialize' },
      { method: 'notifications/initialized' },
      { method: 'logging/setLevel', params: { level: 'debug' } },
      { method: 'resources/subscribe', params: { uri: 'test://watched-resource' } },
    ])
    expect(again.filter(({ method }) => method === 'tools/call')).toHaveLength(12)
  })

  it('is initialized again for its stream too', async () => {
    const { client, fixture } = await setup({ unknownSessionStatus })
    await client.initialize()
    fixture.admin.forgetSessions()
    const stream = await client.get()
    expect(stream.status).toBe(200)
    fixture.admin.listChanged('tools')
    const events = await readUntil(stream, 'notifications/tools/list_changed')
    expect(events.at(-1)?.data).toContain('notifications/tools/list_changed')
  })
})

it('an ordinary 400 stays what it is, and the session too', async () => {
  const { client, fixture } = await setup()
  await client.initialize()
  const { session } = reported(await client.call('report_request'))
  fixture.admin.fail({ status: 400, times: 1 })
  expect((await client.call('echo')).status).toBe(400)
  expect(reported(await client.call('report_request')).session).toBe(session)
  expect(fixture.stats.count('initialize')).toBe(1)
})

describe('a backend that is not there', () => {
  it('is 503 with a coded body, and the call was not carried out', async () => {
    const { client, fixture } = await setup()
    await client.initialize()
    await fixture.stop()
    for (const answer of [await client.call('echo'), await client.modernCall('echo')]) {
      expect(answer).toMatchObject({ status: 503, messages: [{ error: { code: 503, data: { mayHaveRun: false, retryable: true } } }] })
      expect(answer.headers.get('retry-after')).toBe('2')
    }
  })

  it.each([
    [500, 502, 502],
    [502, 502, 502],
    [503, 503, 503],
    [504, 504, 504],
    [599, 502, 502],
  ])('%i of it becomes %i with code %i', async (status, expected, code) => {
    const { client, fixture } = await setup()
    fixture.admin.fail({ status, times: 1 })
    expect(await client.modernCall('echo')).toMatchObject({ status: expected, messages: [{ id: 1, error: { code } }] })
  })

  it('restarts without its clients noticing', async () => {
    const fixture = await startFixture()
    const { port } = new URL(fixture.url)
    const runner = await startTestRunner({ backend: fixture.url })
    open.push(runner)
    const client = new WireClient(runner.url)
    await client.initialize()
    await fixture.stop()
    expect((await client.call('echo')).status).toBe(503)
    open.push(await startFixture({ port: Number(port) }))
    expect((await client.call('echo', { text: 'back' })).text).toContain('back')
  })
})

describe('a call that the backend does not finish', () => {
  it('has a clear error when the connection breaks before the answer', async () => {
    const { client, runner } = await setup()
    await client.initialize()
    const answer = await client.call('crash')
    expect(answer).toMatchObject({ status: 502, messages: [{ id: 2, error: { code: 5021, data: { mayHaveRun: true, retryable: true } } }] })
    expect(runner.logged.join()).toContain('request failed at the backend')
  })

  it.each(['legacy', 'modern'] as const)('ends with the error as an event when the stream has begun (%s)', async (era) => {
    const { client } = await setup({ responseMode: 'sse' })
    if (era === 'legacy') await client.initialize()
    const answer = await (era === 'legacy' ? client.call('close_mid_stream') : client.modernCall('close_mid_stream'))
    expect(answer.status).toBe(200)
    const isResumable = answer.events.some(({ id }) => id !== undefined)
    if (!isResumable) expect(answer.messages.at(-1)).toMatchObject({ error: { code: 5021, data: { mayHaveRun: true } } })
    else expect(era).toBe('legacy') // the client comes back for the rest
  })

  it('ends after silence, and the backend receives DELETE', async () => {
    const clock = new TestClock()
    const { client, fixture } = await setup({}, { clock, limits: { idleMs: 300 } })
    await client.initialize()
    const call = client.call('hang')
    await expect.poll(() => fixture.stats.count('tools/call')).toBe(1)
    await clock.advance(1_000)
    expect(await call).toMatchObject({ status: 504, messages: [{ error: { code: 504, data: { mayHaveRun: true } } }] })
    await expect.poll(() => fixture.stats.cancelled).toMatchObject([{ name: 'hang', by: 'notification' }])
  })

  it('ends at the hard limit whatever it says', async () => {
    const { client } = await setup({}, { limits: { idleMs: 10_000, hardTimeoutMs: 100 } })
    expect((await client.modernCall('hang')).status).toBe(504)
  })
})

describe('a client that goes away', () => {
  it('cancels a modern call', async () => {
    const { client, fixture } = await setup()
    const leave = new AbortController()
    const call = client.modernCall('hang', {}, { signal: leave.signal })
    await expect.poll(() => fixture.stats.count('tools/call')).toBe(1)
    leave.abort()
    await expect(call).rejects.toThrow()
    await expect.poll(() => fixture.stats.cancelled).toMatchObject([{ name: 'hang', by: 'disconnect' }])
  })

  it('does not cancel a legacy one', async () => {
    const { client, fixture, runner } = await setup()
    await client.initialize()
    const leave = new AbortController()
    const call = client.call('slow', { ms: 1_000 }, { signal: leave.signal })
    await expect.poll(() => fixture.stats.count('tools/call')).toBe(1)
    leave.abort()
    await expect(call).rejects.toThrow()
    expect(runner.backend.status.inFlight).toBe(1)
    await expect.poll(() => runner.backend.status.inFlight).toBe(0)
    expect(fixture.stats.cancelled).toEqual([])
  })
})

describe('answers', () => {
  it.each(['auto', 'sse'] as const)('of another id do not get out as ours (%s)', async (responseMode) => {
    const { client } = await setup({ responseMode })
    const answer = await client.modernCall('wrong_id')
    expect(answer.messages.at(-1)).toMatchObject({ id: 1, error: { code: 502 } })
  })

  it('with garbage before them still arrive', async () => {
    const { client } = await setup()
    await client.initialize()
    expect((await client.call('garbage')).messages.at(-1)).toMatchObject({ result: { content: [{ text: 'after garbage' }] } })
  })

  it.each(['auto', 'sse'] as const)('of many megabytes stream through (%s)', async (responseMode) => {
    const { client } = await setup({ responseMode })
    const bytes = 5_000_000
    const { messages } = await client.modernCall('big_result', { bytes })
    expect(messages.at(-1).result.content[0].text).toHaveLength(bytes)
  })

  it('over the limit are cut off with an error', async () => {
    const { client } = await setup({}, { limits: { responseBytes: 100_000 } })
    expect(await client.modernCall('big_result', { bytes: 200_000 })).toMatchObject({ status: 502, messages: [{ error: { code: 502 } }] })
  })

  it('survive a flood of notifications', async () => {
    const { client } = await setup()
    await client.initialize()
    const { messages } = await client.call('flood', { count: 3_000, bytes: 100 })
    expect(messages).toHaveLength(3_001)
    expect(messages.at(-1)).toMatchObject({ result: { content: [{ text: 'sent 3000' }] } })
  })

  it('keep every character', async () => {
    const { client } = await setup()
    const text = 'ä\u00a0€\u200d😀\u{10ffff}\u2028"\\\u0000'
    const { messages } = await client.modernCall('echo', { text })
    expect(messages[0].result.structuredContent).toEqual({ arguments: { text } })
  })
})

describe('requests as the backend receives them', () => {
  it('is neither Host nor Origin, and none of the client’s claims about the way', async () => {
    const { client, fixture } = await setup()
    const claims = { origin: 'http://localhost:1', 'x-forwarded-for': '6.6.6.6', forwarded: 'for=6.6.6.6', 'x-real-ip': '6.6.6.6' }
    const { headers } = reported(await client.modernCall('report_request', {}, { headers: { ...claims, 'x-own': 'kept', cookie: 'a=b' } }))
    expect(headers).toMatchObject({ host: new URL(fixture.url).host, 'x-own': 'kept', cookie: 'a=b', 'x-forwarded-for': '127.0.0.1' })
    expect(Object.keys(headers)).not.toContain('origin')
    expect(Object.keys(headers)).not.toContain('forwarded')
    expect(Object.keys(headers)).not.toContain('x-real-ip')
  })

  it('has no session and no event id on modern requests', async () => {
    const { client } = await setup()
    const answer = await client.modernCall('report_request', {}, { headers: { 'mcp-session-id': 'smuggled', 'last-event-id': '5' } })
    const { headers } = reported(answer)
    expect(headers['mcp-session-id']).toBeUndefined()
    expect(headers['last-event-id']).toBeUndefined()
    expect(answer.headers.get('mcp-session-id')).toBeNull()
  })

  it('is one request per call over connections that are kept', async () => {
    const { client, fixture } = await setup()
    await client.initialize()
    const before = { ...fixture.stats.http }
    const connections = fixture.stats.connections
    for (let i = 0; i < 20; i++) expect((await client.call('echo')).status).toBe(200)
    expect(fixture.stats.http['POST 200']).toBe((before['POST 200'] ?? 0) + 20)
    expect(fixture.stats.connections - connections).toBeLessThanOrEqual(1)
  })
})

describe('streams', () => {
  it('of GET carry what the backend sends, and a new one takes the place of the old', async () => {
    const { client, fixture } = await setup()
    await client.initialize()
    const first = await client.get()
    const second = await client.get()
    expect([first.status, second.status]).toEqual([200, 200])
    fixture.admin.listChanged('prompts')
    const events = await readUntil(second, 'notifications/prompts/list_changed')
    expect(events.at(-1)?.data).toContain('notifications/prompts/list_changed')
    await first.body?.cancel()
  })

  it('are resumed where they were broken off', async () => {
    const { client } = await setup({ responseMode: 'sse' })
    await client.initialize()
    const broken = await client.call('test_reconnection')
    const lastEventId = broken.events.findLast(({ id }) => id !== undefined)?.id ?? ''
    expect(lastEventId).not.toBe('')
    expect(broken.messages).toEqual([])
    const resumed = await client.get({ 'last-event-id': lastEventId })
    const event = (await readUntil(resumed, 'result')).at(-1)
    expect(JSON.parse(event?.data ?? '{}').result.content[0].text).toBe('Reconnection test completed successfully.')
  })

  it('of modern listens end with a result when the runner drains', async () => {
    const { client, runner, fixture } = await setup()
    const listening = client.modern('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await expect.poll(() => fixture.stats.listens).toBe(1)
    fixture.admin.listChanged('tools')
    await runner.gateway.drain(AbortSignal.timeout(10_000))
    const { messages } = await listening
    expect(messages[0]).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
    expect(messages.at(-1)).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: { resultType: 'complete', _meta: { 'io.modelcontextprotocol/subscriptionId': 1 } },
    })
  })

  it('of listens end at the backend when the client goes', async () => {
    const { client, fixture } = await setup()
    const leave = new AbortController()
    const listening = client.modern('subscriptions/listen', { notifications: { toolsListChanged: true } }, { signal: leave.signal })
    await expect.poll(() => fixture.stats.listens).toBe(1)
    leave.abort()
    await expect(listening).rejects.toThrow()
    await expect.poll(() => fixture.stats.listens).toBe(0)
  })
})

describe('questions of the backend', () => {
  it('reach the client on the stream of its call, and wait for people longer than for machines', async () => {
    const clock = new TestClock()
    const { client } = await setup({}, { clock, limits: { idleMs: 100 } })
    await client.initialize({ elicitation: {} })
    const response = await fetch(client.url, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        ...{ 'mcp-session-id': client.sessionId ?? '', 'mcp-protocol-version': '2025-11-25' },
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 'ask',
        method: 'tools/call',
        params: { name: 'ask', arguments: { kind: 'elicitation' } },
      }),
    })
    const reader = response.body?.getReader()
    let text = ''
    while (!text.includes('elicitation/create')) text += new TextDecoder().decode((await reader?.read())?.value)
    const question = JSON.parse(/data: (\{.*elicitation\/create.*\})/.exec(text)?.[1] ?? '{}')
    await clock.advance(1_000) // longer than any other call may be silent
    const posted = await client.post({ jsonrpc: '2.0', id: question.id, result: { action: 'accept', content: { name: 'Ada' } } })
    expect(posted.status).toBe(202)
    while (!text.includes('"id":"ask"')) text += new TextDecoder().decode((await reader?.read())?.value)
    expect(text).toContain('Ada')
  })
})

describe('the tool filter', () => {
  const middleware = [
    createToolFilter({ filter: ['say', 'who_am_i'], overrides: { echo: { name: 'say', description: 'Says it' } } }, { warn: () => {} }),
  ]

  it.each([
    ['legacy', 'auto'],
    ['legacy', 'sse'],
    ['modern', 'auto'],
    ['modern', 'sse'],
  ] as const)('shows and calls what is visible, and nothing else (%s, %s)', async (era, responseMode) => {
    const { client, fixture } = await setup({ responseMode, pageSize: 100 }, { middleware })
    if (era === 'legacy') await client.initialize()
    const list = await (era === 'legacy' ? client.request('tools/list') : client.modern('tools/list'))
    const { result } = list.messages.at(-1)
    expect(result.tools.map(({ name }: { name: string }) => name).toSorted()).toEqual(['say', 'who_am_i'])
    expect(result.tools.find(({ name }: { name: string }) => name === 'say').description).toBe('Says it')
    if (era === 'modern') expect(result).toMatchObject({ resultType: 'complete', ttlMs: 0 })

    const call = (name: string) => (era === 'legacy' ? client.call(name, { text: 'x' }) : client.modernCall(name, { text: 'x' }))
    expect((await call('say')).messages.at(-1).result.structuredContent).toEqual({ arguments: { text: 'x' } })
    const before = fixture.stats.count('tools/call')
    for (const name of ['echo', 'slow', 'nope']) {
      const refused = await call(name)
      expect(refused).toMatchObject({ status: 200, messages: [{ error: { code: -32602 } }] })
      expect(refused.messages[0].error.message).not.toContain(name)
    }
    expect(fixture.stats.count('tools/call')).toBe(before)
  })

  it('keeps the cursor of a page', async () => {
    const { client } = await setup({ pageSize: 3 }, { middleware })
    const names: string[] = []
    let cursor: string | undefined
    for (let page = 0; page < 60; page++) {
      const { messages } = await client.modern('tools/list', cursor === undefined ? {} : { cursor })
      names.push(...messages[0].result.tools.map(({ name }: { name: string }) => name))
      cursor = messages[0].result.nextCursor
      if (cursor === undefined) break
    }
    expect(names.toSorted()).toEqual(['say', 'who_am_i'])
  })

  it('holds for a list that comes over a resumed stream', async () => {
    const { client, runner } = await setup({ responseMode: 'sse' }, { middleware })
    await client.initialize()
    const listed = await client.request('tools/list')
    const firstId = listed.events.find(({ id }) => id !== undefined)?.id
    expect(firstId).toBeDefined()
    const again = new WireClient(runner.url)
    again.sessionId = client.sessionId
    const event = (await readUntil(await again.get({ 'last-event-id': firstId ?? '' }), 'result')).at(-1)
    const { tools } = JSON.parse(event?.data ?? '{}').result
    expect(tools.map(({ name }: { name: string }) => name).toSorted()).toEqual(['say', 'who_am_i'])
  })

  it('is not got around by two requests with one id', async () => {
    const { client, fixture } = await setup(
      { pageSize: 100 },
      { middleware: [createToolFilter({ filter: ['hang'], overrides: {} }, { warn: () => {} })] },
    )
    await client.initialize()
    const call = (id: unknown, method: string, params = {}) => client.post({ jsonrpc: '2.0', id, method, params })
    const leave = new AbortController()
    const hang = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'hang' } }
    const waiting = client.post(hang, { signal: leave.signal }).catch(() => undefined)
    await expect.poll(() => fixture.stats.count('tools/call')).toBe(1)
    for (const id of [7, '7'])
      expect(await call(id, 'tools/list')).toMatchObject({ status: 400, messages: [{ id, error: { code: -32600 } }] })
    expect(fixture.stats.count('tools/list')).toBe(0)
    for (const _ of [1, 2]) expect((await call(8, 'tools/list')).messages[0].result.tools).toHaveLength(1)
    leave.abort()
    await waiting
  })

  it('is not got around by a list that is too large', async () => {
    const { client } = await setup({}, { middleware, limits: { editBytes: 1_000 } })
    expect(await client.modern('tools/list')).toMatchObject({ status: 502, messages: [{ error: { code: 502 } }] })
  })
})
