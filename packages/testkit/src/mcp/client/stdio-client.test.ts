import { PassThrough } from 'node:stream'
import { TestClock } from '@thv/kernel/clock'
import { CLIENT_INFO, connectPeers, startStdio } from '@thv/mcp/client/testing/fixture-client'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { describe, expect, it, vi } from 'vitest'
import type { StdioStreams } from './pipe-channel.ts'
import { createStdioClient, type StdioOptions } from './stdio-client.ts'

describe('the era of a process', () => {
  it.each([
    ['dual', undefined, 'legacy'],
    ['dual', 'modern', 'modern'],
    ['legacy', 'modern', 'legacy'],
    ['modern', 'legacy', 'modern'],
  ] as const)('%s, preferring %s: %s', async (era, prefer, expected) => {
    await using peers = await connectPeers({ transport: 'stdio', era, client: prefer ? { prefer } : {} })
    expect(peers.client.era).toBe(expected)
    expect(await peers.text('greet', { name: 'Bob' })).toBe('Hello, Bob!')
  })

  it('is legacy when the process dies of the question; another one is started', async () => {
    await using peers = await connectPeers({ transport: 'stdio', era: 'legacy', stdioProbe: 'exit', client: { prefer: 'modern' } })
    expect(peers.client.era).toBe('legacy')
    expect(await peers.text('greet', {})).toBe('Hello, World!')
  })

  it('is legacy when the process is silent', async () => {
    const server = scripted({ 'server/discover': () => undefined })
    const clock = new TestClock()
    const client = clientOf(server.streams, { prefer: 'modern', limits: { connectTimeoutMs: 200 }, clock })
    const connecting = client.connect()
    await vi.waitFor(() => expect(server.received).toHaveLength(1), 10_000)
    await clock.advance(100)
    await connecting
    expect(client.era).toBe('legacy')
    expect(server.received.map(({ method }) => method)).toEqual(['server/discover', 'initialize', 'notifications/initialized'])
    expect(typeof server.received[0]?.['id']).toBe('string') // a late answer cannot be taken for one to the handshake
    await client.close()
  })

  it('is not asked for before the handshake unless that is wanted', async () => {
    const server = scripted({})
    const client = clientOf(server.streams)
    await client.connect()
    expect(server.received[0]).toMatchObject({ method: 'initialize', params: { protocolVersion: '2025-11-25', clientInfo: CLIENT_INFO } })
    expect(server.received.some(({ method }) => method === 'server/discover')).toBe(false)
    await client.close()
  })

  it('has no version in common with a server that answers with an unknown one', async () => {
    const server = scripted({ initialize: () => ({ result: { protocolVersion: '1999-01-01', capabilities: {} } }) })
    await expect(clientOf(server.streams).connect()).rejects.toMatchObject({ code: 'mcp_no_common_version' })
    expect(server.input.writableEnded).toBe(true)
  })
})

describe('a pipe', () => {
  it('survives noise, and answers in any order and under wrong ids', async () => {
    const warnings: string[] = []
    const server = scripted({ 'tools/call': () => undefined })
    const client = clientOf(server.streams, { onWarning: (text) => void warnings.push(text) })
    const first = client.request('tools/call', { name: 'a' })
    const second = client.request('tools/call', { name: 'b' })
    await vi.waitFor(() => expect(server.calls()).toHaveLength(2), 10_000)
    const [a, b] = server.calls()
    server.output.write('starting up…\n\n{"half": \n')
    server.write({ id: 'unknown', result: {} })
    server.write({ id: b?.['id'], result: { is: 'b' } })
    server.write({ id: a?.['id'], result: { is: 'a' } })
    expect(await Promise.all([first, second])).toEqual([{ is: 'a' }, { is: 'b' }])
    expect(warnings).toHaveLength(3)
    await client.close()
  })

  it('fails the one call whose answer is malformed', async () => {
    const server = scripted({ 'tools/call': () => undefined })
    const client = clientOf(server.streams)
    const call = client.request('tools/call', { name: 'a' })
    await vi.waitFor(() => expect(server.calls()).toHaveLength(1), 10_000)
    server.output.write(`{"jsonrpc":"2.0","id":${server.calls()[0]?.['id']},"result":{},"error":{"code":1,"message":"both"}}\n`)
    await expect(call).rejects.toMatchObject({ code: 'backend_protocol_error' })
    await client.ping()
    await client.close()
  })

  it('ends: waiting calls reject, and nothing can be sent any more', async () => {
    const server = scripted({ 'tools/call': () => undefined })
    const client = clientOf(server.streams)
    const call = client.request('tools/call', { name: 'a' })
    await vi.waitFor(() => expect(server.calls()).toHaveLength(1), 10_000)
    server.output.end()
    await expect(call).rejects.toMatchObject({ code: 'stream_closed' })
    await expect(client.ping()).rejects.toMatchObject({ code: 'stream_closed' })
    await client.close()
  })

  it('is replaced where it can be started again; the call in flight is not repeated', async () => {
    await using peers = await connectPeers({ transport: 'stdio' })
    const before = JSON.parse(await peers.text('who_am_i')) as JsonObject
    await expect(peers.call('crash')).rejects.toMatchObject({ code: 'stream_closed' })
    const after = JSON.parse(await peers.text('who_am_i')) as JsonObject
    expect(after['pid']).not.toBe(before['pid'])
  })

  it('takes no more calls at a time than it may', async () => {
    const server = scripted({ 'tools/call': () => undefined })
    const client = clientOf(server.streams, { limits: { maxInFlight: 2 } })
    await client.connect()
    const hung = [1, 2].map(() => client.request('tools/call', { name: 'a' }).catch((error: unknown) => error))
    await vi.waitFor(() => expect(server.calls()).toHaveLength(2), 10_000)
    await expect(client.request('tools/call', { name: 'a' })).rejects.toMatchObject({ code: 'queue_full' })
    await client.close()
    expect(await Promise.all(hung)).toMatchObject([{ code: 'aborted' }, { code: 'aborted' }])
  })

  it('carries a cancellation in both eras, but none for the handshake', async () => {
    const clock = new TestClock()
    for (const era of ['legacy', 'modern'] as const) {
      const server = scripted({
        'tools/call': () => undefined,
        'server/discover': () => ({ result: { supportedVersions: ['2026-07-28'] } }),
      })
      const client = clientOf(server.streams, { era, clock })
      const call = expect(client.request('tools/call', { name: 'a' }, { timeoutMs: 30 })).rejects.toMatchObject({ code: 'timeout' })
      await vi.waitFor(() => expect(server.calls()).toHaveLength(1), 10_000)
      await clock.advance(30)
      await call
      const cancelled = { method: 'notifications/cancelled', params: { requestId: server.calls()[0]?.['id'] } }
      await vi.waitFor(() => expect(server.received.at(-1)).toMatchObject(cancelled), 10_000)
      await client.close()
    }
    const silent = scripted({ initialize: () => undefined })
    const client = clientOf(silent.streams)
    await expect(client.connect({ timeoutMs: 30 })).rejects.toMatchObject({ code: 'timeout' })
    await client.close()
    expect(silent.received).toHaveLength(1)
  })

  it('brings what the server asks: pings, what there is a handler for, and refusals of the rest', async () => {
    const server = scripted({})
    const signals: AbortSignal[] = []
    const elicitation = async ({ wait }: JsonObject, { signal }: { signal: AbortSignal }) => {
      if (!wait) return { action: 'decline' }
      signals.push(signal)
      return await new Promise<never>(() => {})
    }
    const client = clientOf(server.streams, { handlers: { elicitation }, limits: { maxServerRequests: 2 } })
    await client.connect()
    server.write({ id: 1, method: 'ping' })
    server.write({ id: 'e', method: 'elicitation/create', params: { message: 'Who?' } })
    server.write({ id: 2, method: 'sampling/createMessage', params: {} })
    await vi.waitFor(() => expect(server.responses()).toHaveLength(3), 10_000)
    expect(server.responses()).toEqual(
      [
        { jsonrpc: '2.0', id: 1, result: {} },
        { jsonrpc: '2.0', id: 2, error: { code: -32601, message: 'Method not found' } },
        { jsonrpc: '2.0', id: 'e', result: { action: 'decline' } },
      ].sort((x, y) => server.order(x.id) - server.order(y.id)),
    )
    server.write({ id: 3, method: 'elicitation/create', params: { wait: true } })
    server.write({ id: 4, method: 'elicitation/create', params: { wait: true } })
    server.write({ id: 5, method: 'elicitation/create', params: {} })
    await vi.waitFor(() => expect(server.responses().at(-1)).toMatchObject({ id: 5, error: { code: -32603 } }), 10_000)
    server.write({ method: 'notifications/cancelled', params: { requestId: 3 } })
    await vi.waitFor(() => expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]), 10_000)
    server.write({ id: 6, method: 'elicitation/create', params: {} }) // there is room again
    await vi.waitFor(() => expect(server.responses().at(-1)).toMatchObject({ id: 6, result: { action: 'decline' } }), 10_000)
    await client.close()
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
    expect(server.responses().some(({ id }) => id === 3 || id === 4)).toBe(false)
  })

  it('is closed with the client: the process sees the end of its input', async () => {
    const child = startStdio({})
    const client = clientOf(child.streams)
    await client.connect()
    await client.close()
    expect(await child.exited).toBe(0)
  })
})

type Script = Record<string, (message: JsonObject) => JsonObject | undefined>

/** A server in this process. It does the handshake unless told otherwise. */
function scripted(script: Script) {
  const input = new PassThrough()
  const output = new PassThrough()
  const received: JsonObject[] = []
  const write = (message: JsonObject) => void output.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const hello = { result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } } }
  const usual: Script = { initialize: () => hello, ping: () => ({ result: {} }), ...script }
  let rest = ''
  input.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString('utf8')).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const message = JSON.parse(line) as JsonObject
      received.push(message)
      const answer = message['id'] === undefined || !('method' in message) ? undefined : usual[String(message['method'])]?.(message)
      if (answer) write({ id: message['id'], ...answer })
    }
  })
  const responses = () => received.filter((message) => !('method' in message))
  return {
    streams: { input, output },
    input,
    output,
    received,
    write,
    responses,
    /** The place of an answer among all: several may come in any order. */
    order: (id: unknown) => responses().findIndex((response) => response['id'] === id),
    calls: () => received.filter(({ method }) => method === 'tools/call'),
  }
}

function clientOf(streams: StdioStreams, options: Partial<StdioOptions> = {}) {
  return createStdioClient({ streams, clientInfo: CLIENT_INFO, ...options })
}
