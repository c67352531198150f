import type { FixtureOptions } from '@thv/testkit/mcp/state/options'
import { describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime, type ServerEnds, scriptedServer } from './testing/pipe-runtime.ts'
import { startStdioRunner } from './testing/stdio-runner.ts'
import { eventually, MODERN, modern, openLegacy, post, send, textOf } from './testing/wire-client.ts'

const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
}

const legacyEcho = async (url: string) => textOf(await (await openLegacy(url)).tool('echo', { era: 'legacy' }))
const modernEcho = async (url: string) =>
  textOf(await (await modern(url, 'tools/call', { name: 'echo', arguments: { era: 'modern' } })).next())

describe('eras of a local stdio server', () => {
  it.each(['latch', 'interleave'] as const)('are both served by a server of both that can %s, by a process each', async (stdioMode) => {
    const runtime = pipeRuntime(fixtureServer({ era: 'dual', stdioMode }))
    await using runner = await startStdioRunner({ runtime })
    expect(runtime.started).toHaveLength(0)
    expect(runner.backend.status).toMatchObject({ ready: true, eras: undefined })
    expect(await modernEcho(runner.url)).toBe('{"era":"modern"}')
    expect(runtime.started).toHaveLength(1)
    expect(await legacyEcho(runner.url)).toBe('{"era":"legacy"}')
    expect(runtime.started).toHaveLength(2)
    await Promise.all(Array.from({ length: 10 }, (_, index) => (index % 2 ? modernEcho(runner.url) : legacyEcho(runner.url))))
    expect(runtime.started).toHaveLength(2)
    expect(runner.backend.status).toMatchObject({ eras: ['legacy', 'modern'] })
  })

  it.each([
    ['answers the probe with an error', { stdioProbe: 'error' }, 10_000],
    ['exits on it', { stdioProbe: 'exit' }, 10_000],
    ['says nothing', { stdioProbe: 'silent' }, 1_000],
  ] as const)('a legacy server that %s gets modern clients told so', async (_, options: FixtureOptions, startTimeoutMs) => {
    const runtime = pipeRuntime(fixtureServer({ era: 'legacy', ...options }))
    await using runner = await startStdioRunner({ runtime, config: { probeTimeoutMs: 50, startTimeoutMs } })
    for (const method of ['server/discover', 'tools/list']) {
      const answer = await modern(runner.url, method, {}, { id: 'm' })
      expect([answer.status, await answer.next()]).toMatchObject([
        400,
        { id: 'm', error: { code: -32022, data: { supported: LEGACY, requested: MODERN } } },
      ])
    }
    expect(runtime.started).toHaveLength(1)
    expect(await legacyEcho(runner.url)).toBe('{"era":"legacy"}')
    expect(runner.backend.status).toMatchObject({ ready: true, eras: ['legacy'] })
  })

  it('a modern server gets legacy clients told so', async () => {
    const runtime = pipeRuntime(fixtureServer({ era: 'modern' }))
    await using runner = await startStdioRunner({ runtime })
    for (const capabilities of [{}, { sampling: {} }]) {
      const answer = await post(runner.url, { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities } })
      expect([answer.status, answer.headers.get('mcp-session-id'), await answer.next()]).toMatchObject([
        400,
        null,
        { id: 1, error: { code: -32022, data: { supported: [MODERN], requested: '2025-06-18' } } },
      ])
    }
    expect(runtime.started).toHaveLength(1)
    expect(await modernEcho(runner.url)).toBe('{"era":"modern"}')
    expect(runner.backend.status).toMatchObject({ eras: ['modern'], sessions: 0 })
  })

  it('are what the run config says, whatever the server could do', async () => {
    const dual = () => pipeRuntime(fixtureServer({ era: 'dual', stdioMode: 'interleave' }))
    await using legacy = await startStdioRunner({ runtime: dual(), config: { era: 'legacy' } })
    expect((await modern(legacy.url, 'tools/list')).status).toBe(400)
    expect(await legacyEcho(legacy.url)).toBe('{"era":"legacy"}')
    await using pinned = await startStdioRunner({ runtime: dual(), config: { era: 'modern' } })
    expect((await post(pinned.url, INITIALIZE)).status).toBe(400)
    expect(pinned.backend.sse).toBeUndefined()
    expect(await (await modern(pinned.url, 'server/discover')).next()).toMatchObject({ result: { supportedVersions: [MODERN] } })
    expect((await send(`${pinned.base}/sse`, {})).status).toBe(404)
  })

  it('an error of the server that says nothing about the era reaches the client as it is', async () => {
    const server = (ends: Parameters<ReturnType<typeof scriptedServer>>[0]) => {
      ends.input.on('data', (line: Buffer) => {
        const { id } = JSON.parse(line.toString()) as { id: string }
        ends.write(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'bad params', data: { why: 'ü' } } })}\n`)
      })
    }
    await using runner = await startStdioRunner({ runtime: pipeRuntime(server) })
    const answer = await post(runner.url, { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: { roots: {} } } })
    expect([answer.status, answer.headers.get('mcp-session-id'), await answer.next()]).toEqual([
      200,
      null,
      { jsonrpc: '2.0', id: 1, error: { code: -32602, message: 'bad params', data: { why: 'ü' } } },
    ])
    expect(runner.backend.status.sessions).toBe(0)
  })
})

describe('the one process of a pod', () => {
  const pod = (options: FixtureOptions) => pipeRuntime(fixtureServer(options), { name: 'kubernetes', capacity: 1 })

  it.each(['latch', 'interleave'] as const)('is greeted the legacy way first, also if it could do both (%s)', async (stdioMode) => {
    const runtime = pod({ era: 'dual', stdioMode })
    await using runner = await startStdioRunner({ runtime })
    await eventually('it is ready', () => runner.backend.status.ready)
    expect(runner.backend.status).toMatchObject({ eras: ['legacy'] })
    const refused = await modern(runner.url, 'server/discover')
    expect([refused.status, await refused.next()]).toMatchObject([400, { error: { code: -32022, data: { supported: LEGACY } } }])
    expect(await legacyEcho(runner.url)).toBe('{"era":"legacy"}')
    expect(runtime.started).toHaveLength(1)
  })

  it('speaks modern if it refuses that, on the same connection', async () => {
    const runtime = pod({ era: 'modern' })
    await using runner = await startStdioRunner({ runtime })
    await eventually('it is ready', () => runner.backend.status.ready)
    expect(await modernEcho(runner.url)).toBe('{"era":"modern"}')
    expect((await post(runner.url, INITIALIZE)).status).toBe(400)
    expect(runtime.started).toHaveLength(1)
  })

  /** The first so many end as soon as they are spoken to. */
  const goingFirst = (count: number) => (ends: ServerEnds) =>
    ends.index < count ? void ends.input.once('data', () => ends.exit(0)) : fixtureServer({ era: 'dual' })(ends)
  const soon = { backoff: { baseMs: 1, maxMs: 1 } }

  it.each([
    ['is still greeted the legacy way when the one before it went meanwhile, as in a rollout', 1, 'legacy'],
    ['is asked the modern way when those before it went each time', 2, 'modern'],
  ])('%s', async (_, count, era) => {
    const runtime = pipeRuntime(goingFirst(count), { name: 'kubernetes', capacity: 1, instance: String })
    await using runner = await startStdioRunner({ runtime, config: soon })
    await eventually('it is ready', () => runner.backend.status.ready)
    expect(runner.backend.status).toMatchObject({ eras: [era] })
    expect(runtime.started).toHaveLength(count + 1)
  })

  it('is shared with attribution: the runner declares what it can relay', async () => {
    await using runner = await startStdioRunner({ runtime: pod({ era: 'legacy' }) })
    const client = await openLegacy(runner.url, { capabilities: { elicitation: {} } })
    const call = await client.request('tools/call', { name: 'test_elicitation' }, { id: 1 })
    const question = await call.next(({ method }) => method === 'elicitation/create')
    await client.respond(question.id, { action: 'accept', content: { username: 'a', email: 'b' } })
    expect(textOf(await call.next(({ id }) => id === 1))).toContain('action=accept')
  })

  it('is not greeted again when only the connection was lost', async () => {
    const greetings: unknown[] = []
    const server = scriptedServer(({ id, method }, write) => {
      if (method === 'initialize' || method === 'notifications/initialized') greetings.push(method)
      if (method === 'tools/call') write({ jsonrpc: '2.0', id, result: {} })
    })
    const runtime = pipeRuntime(server, { name: 'kubernetes', capacity: 1, instance: (index) => (index < 2 ? 'pod-a' : 'pod-b') })
    await using runner = await startStdioRunner({ runtime, config: { backoff: { baseMs: 1, maxMs: 1 } } })
    const client = await openLegacy(runner.url)
    for (const processes of [2, 3]) {
      runtime.started.at(-1)?.exit(0)
      await eventually('it is attached again', () => runtime.started.length === processes && runner.backend.status.ready)
      expect(await client.call('tools/call')).toMatchObject({ result: {} })
      expect(greetings).toHaveLength(processes === 2 ? 2 : 4)
    }
  })
})
