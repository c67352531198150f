import type { LiveSessionRecord } from '@thv/gateway/sessions/live-sessions'
import { TestClock } from '@thv/kernel/clock'
import { createMemorySessionStore } from '@thv/store/memory-session-store'
import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime, type ScriptedMessage, scriptedServer } from './testing/pipe-runtime.ts'
import { startStdioRunner } from './testing/stdio-runner.ts'
import { eventually, jsonOf, openLegacy, post, textOf } from './testing/wire-client.ts'

const FIXTURE = fixtureServer({ era: 'legacy' })
const SOON = { backoff: { baseMs: 1, maxMs: 1 } }
const WATCHED = 'test://watched-resource'
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
}

describe('a server process that ends', () => {
  it('fails the calls under way with an error that says what is known, and the sessions live on', async () => {
    const runtime = pipeRuntime(FIXTURE)
    await using runner = await startStdioRunner({ runtime, config: { ...SOON, streamAfterMs: 10 } })
    const [a, b] = [await openLegacy(runner.url), await openLegacy(runner.url)]
    const hanging = a.request('tools/call', { name: 'hang' }, { id: 'h', accept: 'application/json' })
    const streamed = await a.request('tools/call', { name: 'hang' }, { id: 's' })
    await eventually('both are under way', () => runner.backend.status.inFlight === 2)
    await b.request('tools/call', { name: 'crash' })
    const data = { mayHaveRun: true, retryable: true }
    const lost = await hanging
    expect([lost.status, await lost.next()]).toMatchObject([502, { id: 'h', error: { code: 5021, data } }])
    expect([streamed.status, await streamed.next()]).toMatchObject([200, { id: 's', error: { code: 5021, data } }])
    expect(textOf(await a.tool('echo', { still: 'here' }))).toBe('{"still":"here"}')
    expect(textOf(await b.tool('echo', {}))).toBe('{}')
    expect(runtime.started).toHaveLength(2)
  })

  it('is followed by one that receives all settings of the sessions', async () => {
    const runtime = pipeRuntime(FIXTURE)
    await using runner = await startStdioRunner({ runtime, config: SOON })
    const capabilities = { elicitation: {}, roots: {} }
    const [own, shared, other] = [
      await openLegacy(runner.url, { capabilities }),
      await openLegacy(runner.url),
      await openLegacy(runner.url),
    ]
    const streams = await Promise.all([own.stream(), shared.stream()])
    for (const client of [own, shared]) {
      await client.call('logging/setLevel', { level: 'debug' })
      await client.call('resources/subscribe', { uri: WATCHED })
    }
    await Promise.all([own.request('tools/call', { name: 'crash' }), other.request('tools/call', { name: 'crash' })])
    expect(jsonOf(await own.tool('report_request'))).toMatchObject({ clientCapabilities: capabilities, clientInfo: { name: 'test' } })
    await Promise.all([own.tool('touch_resource', { uri: WATCHED }), other.tool('touch_resource', { uri: WATCHED })])
    for (const stream of streams) expect(await stream.next()).toMatchObject({ method: 'notifications/resources/updated' })
    const log = { name: 'flood', arguments: { count: 1 } }
    expect(await (await own.request('tools/call', log)).all()).toHaveLength(2)
    expect(runtime.started).toHaveLength(4)
  })

  it('is started again once, however many wait for it', async () => {
    const runtime = pipeRuntime(FIXTURE)
    await using runner = await startStdioRunner({ runtime, config: SOON })
    const clients = await Promise.all(Array.from({ length: 10 }, () => openLegacy(runner.url)))
    await clients[0]?.request('tools/call', { name: 'crash' })
    await Promise.all(clients.map((client) => client.tool('echo')))
    expect(runtime.started).toHaveLength(2)
  })

  it('takes its questions with it', async () => {
    const server = scriptedServer(({ method }, write, ends) => {
      if (method === 'tools/call') write({ jsonrpc: '2.0', id: 1, method: 'elicitation/create', params: {} })
      if (method === 'vendor/die') ends.exit(1)
    })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server), config: SOON })
    const client = await openLegacy(runner.url, { capabilities: { elicitation: {} } })
    const stream = await client.stream()
    const call = await client.request('tools/call', {})
    const question = await call.next()
    await client.request('vendor/die')
    expect(await call.next()).toMatchObject({ error: { code: 5021 } })
    expect(await stream.next()).toMatchObject({ method: 'notifications/cancelled', params: { requestId: question.id } })
    expect(await client.respond(question.id, { action: 'accept' })).toBe(202)
  })

  it('never gets the answer to a question of the one before it, though it numbers its own the same', async () => {
    const answers: ScriptedMessage[] = []
    const server = scriptedServer((message, write, ends) => {
      if (message.method === 'tools/call') write({ jsonrpc: '2.0', id: 1, method: 'elicitation/create', params: {} })
      if (message.method === 'vendor/die') ends.exit(1)
      if (message.result !== undefined) answers.push(message)
    })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server), config: SOON })
    const client = await openLegacy(runner.url, { capabilities: { elicitation: {} } })
    const before = await (await client.request('tools/call')).next()
    await client.request('vendor/die')
    const after = await (await client.request('tools/call')).next()
    await client.respond(before.id, { action: 'accept', content: { old: true } })
    await client.respond(after.id, { action: 'decline' })
    await eventually('the answer has arrived', () => answers.length > 0)
    expect(answers).toEqual([{ jsonrpc: '2.0', id: 1, result: { action: 'decline' } }])
  })

  it('delays the next one when it dies young, longer each time, and says so', async () => {
    const server = scriptedServer(({ method }, _, ends) => {
      if (method === 'tools/call') ends.exit(7)
    })
    const runtime = pipeRuntime(server)
    const config = { backoff: { baseMs: 3_000, maxMs: 60_000 }, maxStartDelayMs: 100 }
    await using runner = await startStdioRunner({ runtime, config, clock: new TestClock() })
    const client = await openLegacy(runner.url)
    await client.request('tools/call')
    const answer = await client.request('tools/list', {}, { id: 'x' })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '3'])
    expect(await answer.next()).toMatchObject({ id: 'x', error: { code: 503, data: { mayHaveRun: false, retryable: true } } })
    expect(runner.backend.status).toMatchObject({ ready: false, message: 'ended with code 7' })
    expect((await post(`${runner.base}/mcp`, INITIALIZE)).status).toBe(503)
    expect((await fetch(`${runner.base}/ready`)).status).toBe(503)
    expect((await fetch(`${runner.base}/health`)).status).toBe(200)
    expect(runtime.started).toHaveLength(1)
    expect(await client.end()).toBe(204)
  })

  it('a server that cannot be started is not tried over and over by new sessions', async () => {
    const attempts: number[] = []
    const runtime = pipeRuntime(FIXTURE, { failStart: (index) => attempts.push(index) <= 2 })
    const config = { backoff: { baseMs: 400, maxMs: 400 }, maxStartDelayMs: 0 }
    const clock = new TestClock()
    await using runner = await startStdioRunner({ runtime, config, clock })
    const body = { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: { roots: {} } } }
    for (let index = 0; index < 5; index++) expect((await post(runner.url, body)).status).toBe(503)
    expect(attempts).toHaveLength(1)
    expect(runner.backend.status).toMatchObject({ ready: false, message: 'no such program' })
    await eventually('it was tried again', async () => {
      await clock.advance(400)
      return (await post(runner.url, body)).status === 200
    })
    expect(attempts).toHaveLength(3)
    expect(runner.backend.status).toMatchObject({ ready: true, sessions: 1 })
  })

  it('limits how long an unanswered handshake delays clients', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(() => {}), config: { startTimeoutMs: 100, ...SOON } })
    expect((await post(runner.url, INITIALIZE)).status).toBe(503)
  })
})

describe('a session', () => {
  it('goes on with another runner that has the same store', async () => {
    const store = createMemorySessionStore<LiveSessionRecord>()
    const seen: ScriptedMessage[] = []
    const server = scriptedServer((message, write) => {
      seen.push(message)
      if (message.id !== undefined && message.method !== 'initialize') write({ jsonrpc: '2.0', id: message.id, result: {} })
    })
    await using first = await startStdioRunner({ runtime: pipeRuntime(FIXTURE), store })
    const client = await openLegacy(first.url, { capabilities: { roots: {} } })
    await client.call('logging/setLevel', { level: 'notice' })
    await client.call('resources/subscribe', { uri: WATCHED })
    await using second = await startStdioRunner({ runtime: pipeRuntime(server), store })
    const headers = { 'mcp-session-id': client.sessionId }
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} }
    expect(await (await post(second.url, call, headers)).next()).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
    expect(seen.map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
      'resources/subscribe',
      'logging/setLevel',
      'tools/call',
    ])
    expect(seen[0]?.params).toMatchObject({ clientInfo: { name: 'test' }, capabilities: { roots: {} } })
    expect((await post(first.url, call, { ...headers })).status).toBe(200)
    expect(await client.end()).toBe(204)
    expect((await post(second.url, call, headers)).status).toBe(404)
    expect(second.backend.status.sessions).toBe(0)
  })

  it('is not lost because the store does not work for a moment: 503, not 404', async () => {
    const store = createMemorySessionStore<LiveSessionRecord>()
    let isDown = false
    const flaky = {
      ...store,
      touchNow: undefined,
      touch: (ref: Parameters<typeof store.touch>[0]) => (isDown ? Promise.reject(new Error('down')) : store.touch(ref)),
    }
    await using runner = await startStdioRunner({ runtime: pipeRuntime(FIXTURE), store: flaky })
    const client = await openLegacy(runner.url)
    isDown = true
    expect((await client.request('tools/list')).status).toBe(503)
    isDown = false
    expect((await client.request('tools/list')).status).toBe(200)
  })
})
