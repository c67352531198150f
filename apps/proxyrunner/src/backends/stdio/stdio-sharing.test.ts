import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime, type ScriptedMessage, scriptedServer } from './testing/pipe-runtime.ts'
import { startStdioRunner } from './testing/stdio-runner.ts'
import { eventually, jsonOf, type LegacyClient, openLegacy, textOf } from './testing/wire-client.ts'

const FIXTURE = fixtureServer({ era: 'legacy' })
const ASKING = { sampling: {}, elicitation: {}, roots: {} }
const isQuestion = ({ method, id }: { method?: string; id?: unknown }) => method !== undefined && id !== undefined

describe('which process serves which session', () => {
  it('gives a session that can be asked a process of its own, told the capabilities of its client', async () => {
    const runtime = pipeRuntime(FIXTURE)
    await using runner = await startStdioRunner({ runtime })
    const [a, b] = [await openLegacy(runner.url, { capabilities: ASKING }), await openLegacy(runner.url, { capabilities: { roots: {} } })]
    const [c, d] = [await openLegacy(runner.url), await openLegacy(runner.url)]
    const whoAre = await Promise.all([a, b, c, d].map(async (client) => jsonOf(await client.tool('who_am_i'))['instance']))
    expect(new Set(whoAre).size).toBe(3)
    expect(whoAre[2]).toBe(whoAre[3])
    const [of, own] = await Promise.all([a, c].map(async (client) => jsonOf(await client.tool('report_request'))))
    expect(of).toMatchObject({ clientCapabilities: ASKING, clientInfo: { name: 'test' } })
    expect(own).toMatchObject({ clientCapabilities: {}, clientInfo: { name: 'thv-proxyrunner/test' } })
    expect(await a.end()).toBe(204)
    await eventually('its process has ended', () => runtime.alive === 2)
  })

  it('lets those share one process that find the limit reached', async () => {
    const runtime = pipeRuntime(FIXTURE)
    await using runner = await startStdioRunner({ runtime, config: { maxProcesses: 2 } })
    const clients = await Promise.all(Array.from({ length: 5 }, () => openLegacy(runner.url, { capabilities: ASKING })))
    const whoAre = await Promise.all(clients.map(async (client) => jsonOf(await client.tool('who_am_i'))['instance']))
    expect(new Set(whoAre).size).toBe(3)
    expect(runtime.alive).toBe(3)
  })

  it('makes do with the processes that the runtime can run', async () => {
    const who = async (client: LegacyClient) => jsonOf(await client.tool('who_am_i'))['instance']
    for (const order of ['plain first', 'asking first']) {
      const runtime = pipeRuntime(FIXTURE, { capacity: 3 })
      await using runner = await startStdioRunner({ runtime, config: { maxProcesses: 1 } })
      const own = await openLegacy(runner.url, { capabilities: ASKING })
      const first = await openLegacy(runner.url, { capabilities: order === 'plain first' ? {} : ASKING })
      const second = await openLegacy(runner.url, { capabilities: order === 'plain first' ? ASKING : {} })
      expect(await who(second)).toBe(await who(first))
      expect(await who(own)).not.toBe(await who(first))
      expect(runtime.alive).toBe(2)
    }
  })

  it('never shares with isolation session: a client without a free process receives Retry-After', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(FIXTURE), config: { maxProcesses: 2, isolation: 'session' } })
    const [first] = [await openLegacy(runner.url), await openLegacy(runner.url)]
    await expect(openLegacy(runner.url)).rejects.toThrow(/503.*"code":503/)
    await first.end()
    expect((await openLegacy(runner.url)).sessionId).toBeDefined()
  })

  it('shares everything with isolation shared', async () => {
    const runtime = pipeRuntime(FIXTURE)
    await using runner = await startStdioRunner({ runtime, config: { isolation: 'shared' } })
    await openLegacy(runner.url, { capabilities: ASKING })
    await openLegacy(runner.url)
    expect(runtime.started).toHaveLength(1)
  })

  it('refuses isolation session where there is a fixed number of pods', async () => {
    const runtime = pipeRuntime(FIXTURE, { name: 'kubernetes', capacity: 1 })
    await expect(startStdioRunner({ runtime, config: { isolation: 'session' } })).rejects.toThrow(/stdio_isolation/)
  })

  it('spreads sessions over pods and keeps each on its own', async () => {
    const runtime = pipeRuntime(FIXTURE, { name: 'kubernetes', capacity: 2 })
    await using runner = await startStdioRunner({ runtime })
    const clients: LegacyClient[] = []
    for (let index = 0; index < 4; index++) clients.push(await openLegacy(runner.url))
    const who = async () => Promise.all(clients.map(async (client) => jsonOf(await client.tool('who_am_i'))['instance']))
    const whoAre = await who()
    expect(new Set(whoAre).size).toBe(2)
    expect(await who()).toEqual(whoAre)
    expect(runtime.started).toHaveLength(2)
  })
})

describe('a question of the server', () => {
  it('goes to the client that owns the process, and its answer back', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(FIXTURE) })
    const client = await openLegacy(runner.url, { capabilities: ASKING })
    const call = await client.request('tools/call', { name: 'test_sampling', arguments: { prompt: 'Hi' } }, { id: 'call' })
    const question = await call.next(isQuestion)
    expect(question).toMatchObject({ method: 'sampling/createMessage' })
    expect(await client.respond('made-up', { content: {} })).toBe(202)
    const content = { type: 'text', text: 'Paris 🗼' }
    expect(await client.respond(question.id, { role: 'assistant', content, model: 'm' })).toBe(202)
    expect(textOf(await call.next(({ id }) => id === 'call'))).toContain('Paris 🗼')
    expect(runner.dropped('response', 'foreign_id')).toBe(1)
  })

  it('waits for the stream that a client opens after the handshake', async () => {
    const server = scriptedServer(({ method, id, result }, write) => {
      if (method === 'notifications/initialized') write({ jsonrpc: '2.0', id: 'r', method: 'roots/list' })
      if (id === 'r') write({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: result } })
    })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server) })
    const client = await openLegacy(runner.url, { capabilities: { roots: {} } })
    const stream = await client.stream()
    const question = await stream.next()
    expect(question).toMatchObject({ method: 'roots/list' })
    await client.respond(question.id, { roots: [] })
    expect(await stream.next()).toMatchObject({ method: 'notifications/message', params: { data: { roots: [] } } })
  })

  it('goes to the only session at work on a shared process, if that declared it', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(FIXTURE), config: { isolation: 'shared' } })
    const [asked, mute] = [await openLegacy(runner.url, { capabilities: ASKING }), await openLegacy(runner.url)]
    const call = await asked.request('tools/call', { name: 'ask', arguments: { kind: 'elicitation' } }, { id: 1 })
    const question = await call.next(isQuestion)
    await asked.respond(question.id, { action: 'decline' })
    expect(jsonOf(await call.next(({ id }) => id === 1))).toEqual({ answers: { answer_1: { action: 'decline' } } })
    expect(await mute.tool('ask', { kind: 'elicitation' })).toMatchObject({ error: { code: -32601 } })
    expect(runner.dropped('request', 'unattributed')).toBe(1)
  })

  it('is rejected when two sessions are at work, and reaches no client', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(FIXTURE), config: { isolation: 'shared' } })
    const [asked, other] = [await openLegacy(runner.url, { capabilities: ASKING }), await openLegacy(runner.url, { capabilities: ASKING })]
    const hanging = other.request('tools/call', { name: 'hang' }, { id: 'h' })
    await eventually('the other is at work', () => runner.backend.status.inFlight === 1)
    const call = await asked.request('tools/call', { name: 'ask', arguments: { kind: 'sampling' } })
    expect(await call.all()).toMatchObject([{ error: { code: -32601 } }])
    // Cancelled, but the server may still be at it.
    await other.notify('notifications/cancelled', { requestId: 'h' })
    await hanging
    expect(await asked.tool('ask', { kind: 'sampling' })).toMatchObject({ error: { code: -32601 } })
  })

  it('is refused when the owner has no stream for it', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(FIXTURE), config: { isolation: 'shared' } })
    const asked = await openLegacy(runner.url, { capabilities: ASKING })
    expect(await asked.tool('ask', { kind: 'roots' }, { accept: 'application/json' })).toMatchObject({ error: { code: -32601 } })
    expect(runner.dropped('request', 'no_stream')).toBe(1)
  })

  it('keeps its call alive while a person thinks, and is taken back when the server gives up', async () => {
    const clock = new TestClock()
    const server = scriptedServer(({ method, id }, write) => {
      if (method !== 'tools/call') return
      write({ jsonrpc: '2.0', id: 9, method: 'elicitation/create', params: {} })
      clock.setTimer(400, () => {
        write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9, reason: 'too late' } })
        write({ jsonrpc: '2.0', id, result: {} })
      })
    })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server), config: { idleTimeoutMs: 100 }, clock })
    const client = await openLegacy(runner.url, { capabilities: ASKING })
    const call = await client.request('tools/call', {}, { id: 1 })
    const question = await call.next(isQuestion)
    await clock.advance(400)
    expect(await call.next()).toMatchObject({ method: 'notifications/cancelled', params: { requestId: question.id, reason: 'too late' } })
    expect(await call.next()).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
    expect(await client.respond(question.id, { action: 'accept' })).toBe(202)
  })

  it('cannot be answered by another session', async () => {
    const answers: ScriptedMessage[] = []
    const server = scriptedServer((message, write) => {
      if (message.method === 'tools/call') write({ jsonrpc: '2.0', id: 1, method: 'roots/list' })
      if (message.result !== undefined) answers.push(message)
    })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server), config: { isolation: 'shared' } })
    const [victim, thief] = [await openLegacy(runner.url, { capabilities: ASKING }), await openLegacy(runner.url)]
    const call = await victim.request('tools/call', {})
    const question = await call.next(isQuestion)
    await thief.respond(question.id, { roots: [{ uri: 'file:///evil' }] })
    await victim.respond(question.id, { roots: [] })
    await eventually('the answer has arrived', () => answers.length > 0)
    expect(answers).toEqual([{ jsonrpc: '2.0', id: 1, result: { roots: [] } }])
  })

  it('has progress reported by its client only', async () => {
    const seen: unknown[] = []
    const server = scriptedServer(({ method, params }, write) => {
      if (method === 'tools/call') {
        write({ jsonrpc: '2.0', id: 1, method: 'sampling/createMessage', params: { _meta: { progressToken: 't' } } })
      }
      if (method === 'notifications/progress') seen.push(params)
    })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server), config: { isolation: 'shared' } })
    const [client, other] = [await openLegacy(runner.url, { capabilities: ASKING }), await openLegacy(runner.url)]
    const call = await client.request('tools/call', {})
    const question = (await call.next(isQuestion)) as { params: { _meta: { progressToken: string } } }
    const { progressToken } = question.params._meta
    expect(progressToken).not.toBe('t') // that of another process could be the same
    await other.notify('notifications/progress', { progressToken, progress: 66 })
    await client.notify('notifications/progress', { progressToken: 't', progress: 67 })
    await client.notify('notifications/progress', { progressToken, progress: 1 })
    await eventually('it has arrived', () => seen.length > 0)
    expect(seen).toEqual([{ progressToken: 't', progress: 1 }])
  })
})

describe('messages of a shared process without a receiver', () => {
  it('reach the only session at work, else none, and are counted', async () => {
    await using runner = await startStdioRunner({ runtime: pipeRuntime(FIXTURE) })
    const [a, b] = [await openLegacy(runner.url), await openLegacy(runner.url)]
    const streams = [await a.stream(), await b.stream()]
    const alone = await (await a.request('tools/call', { name: 'test_tool_with_logging' })).all()
    expect(alone).toHaveLength(4)
    const hanging = b.request('tools/call', { name: 'hang' }, { id: 'h' })
    await eventually('the other is at work', () => runner.backend.status.inFlight === 1)
    expect(await (await a.request('tools/call', { name: 'test_tool_with_logging' })).all()).toHaveLength(1)
    expect(streams.map(({ messages }) => messages)).toEqual([[], []])
    expect(runner.dropped('log', 'unattributed')).toBe(3)
    await b.notify('notifications/cancelled', { requestId: 'h' })
    expect(await (await hanging).all()).toEqual([])
  })

  it('tells the server once of what several have subscribed to', async () => {
    const told: string[] = []
    const server = scriptedServer(({ method, id, params }, write) => {
      if (method?.startsWith('resources/')) {
        told.push(`${method} ${params?.['uri']}`)
        write(
          params?.['uri'] === 'no' ? { jsonrpc: '2.0', id, error: { code: -32002, message: 'no' } } : { jsonrpc: '2.0', id, result: {} },
        )
      }
      if (method === 'tools/call') {
        write({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'u' } })
        write({ jsonrpc: '2.0', id, result: {} })
      }
    })
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server) })
    const [a, b, c] = [await openLegacy(runner.url), await openLegacy(runner.url), await openLegacy(runner.url)]
    const streams = await Promise.all([a, b, c].map((client) => client.stream()))
    await Promise.all([a, b].map((client) => client.call('resources/subscribe', { uri: 'u' })))
    expect(await c.call('resources/subscribe', { uri: 'no' })).toMatchObject({ error: { code: -32002 } })
    await c.call('tools/call')
    await Promise.all([streams[0]?.next(), streams[1]?.next()])
    expect(streams[2]?.messages).toEqual([])
    await a.call('resources/unsubscribe', { uri: 'u' })
    await b.end()
    await eventually('the server was notified', () => told.length === 3)
    expect(told).toEqual(['resources/subscribe u', 'resources/subscribe no', 'resources/unsubscribe u'])
  })

  it('is asked for as much as the most curious session wants', async () => {
    const levels: unknown[] = []
    const server = scriptedServer(
      ({ method, id, params }, write) => {
        if (method !== 'logging/setLevel') return
        levels.push(params?.['level'])
        write({ jsonrpc: '2.0', id, result: { extra: 1 } })
      },
      { capabilities: { logging: {} } },
    )
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server) })
    const [a, b] = [await openLegacy(runner.url), await openLegacy(runner.url)]
    for (const [client, level] of [
      [a, 'warning'],
      [b, 'error'],
      [b, 'debug'],
      [a, 'info'],
    ] as const) {
      expect(await client.call('logging/setLevel', { level }, { id: level })).toEqual({ jsonrpc: '2.0', id: level, result: {} })
    }
    await b.end()
    await eventually('it was notified', () => levels.length === 3)
    expect(levels).toEqual(['warning', 'debug', 'info'])
  })
})
