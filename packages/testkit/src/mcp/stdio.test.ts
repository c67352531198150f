import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { describe, expect, it, vi } from 'vitest'
import { fixtureCommand } from './fixture-process.ts'
import { modernRequest } from './testing/raw-client.ts'
import { openPipe } from './testing/raw-pipe.ts'
import { type ClientMode, connectSdk } from './testing/sdk-client.ts'
import type { EraSupport } from './wire/protocol.ts'

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 'init',
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}
const PING = { jsonrpc: '2.0', id: 'ping', method: 'ping' }
const LEGACY_LIST = { jsonrpc: '2.0', id: 'list', method: 'resources/templates/list' }

const PAIRS: readonly { era: EraSupport; mode: ClientMode; spoken: 'legacy' | 'modern' }[] = [
  { era: 'dual', mode: 'auto', spoken: 'modern' },
  { era: 'dual', mode: 'legacy', spoken: 'legacy' },
  { era: 'legacy', mode: 'auto', spoken: 'legacy' },
  { era: 'modern', mode: 'modern', spoken: 'modern' },
]

describe('the fixture over stdio, with the official client', () => {
  it.for(PAIRS)('$era server, $mode client: they speak $spoken', async ({ era, mode, spoken }) => {
    const transport = new StdioClientTransport(fixtureCommand({ era, transport: 'stdio' }))
    await using peers = await connectSdk(transport, mode)
    expect(peers.client.getProtocolEra()).toBe(spoken)
    expect(await peers.text('echo', { text: 'größer 大きさ 🙂' })).toBe('{"text":"größer 大きさ 🙂"}')
    expect(await peers.text('test_input_required_result_elicitation')).toBe('Hello, Ada!')
    expect(await peers.text('test_input_required_result_multiple_inputs')).toBe('Answers: client_roots, greeting, user_name')
    expect(await peers.json('who_am_i')).toMatchObject({ pid: transport.pid })
  })
})

describe('a process that latches one era', () => {
  it('refuses the handshake once it was spoken to in the modern revision', async () => {
    await using pipe = openPipe({ stdioMode: 'latch' })
    pipe.send(modernRequest('server/discover'))
    expect(await pipe.message()).toMatchObject({ id: 1, result: { resultType: 'complete' } })
    pipe.send(INITIALIZE)
    expect(await pipe.message()).toMatchObject({ id: 'init', error: { code: -32022, data: { supported: ['2026-07-28'] } } })
  })

  it('does not know discover once it was greeted', async () => {
    await using pipe = openPipe({ stdioMode: 'latch' })
    pipe.send(INITIALIZE)
    expect(await pipe.message()).toMatchObject({ id: 'init', result: { protocolVersion: '2025-06-18' } })
    pipe.send(modernRequest('server/discover'))
    expect(await pipe.message()).toMatchObject({ id: 1, error: { code: -32601 } })
    pipe.send(PING)
    expect(await pipe.message()).toEqual({ jsonrpc: '2.0', id: 'ping', result: {} })
    pipe.send(INITIALIZE)
    expect(await pipe.message()).toMatchObject({ id: 'init', error: { code: -32600 } })
  })
})

describe('a process that lets both eras interleave', () => {
  it('answers each request in its own', async () => {
    await using pipe = openPipe({ stdioMode: 'interleave' })
    pipe.send(modernRequest('server/discover'))
    expect(await pipe.message()).toMatchObject({ id: 1, result: { resultType: 'complete' } })
    pipe.send(INITIALIZE)
    expect(await pipe.message()).toMatchObject({ id: 'init', result: { protocolVersion: '2025-06-18' } })
    pipe.send(LEGACY_LIST)
    expect((await pipe.message())['result']).not.toHaveProperty('resultType')
    pipe.send(modernRequest('tools/call', { name: 'greet' }))
    expect(await pipe.message()).toMatchObject({ result: { resultType: 'complete', content: [{ text: 'Hello, World!' }] } })
  })
})

describe('a line', () => {
  it('may hold the separators of lines and paragraphs that JSON leaves as they are', async () => {
    await using pipe = openPipe({ era: 'modern' })
    const text = 'one\u2028two\u2029three\u0085four'
    pipe.send(modernRequest('tools/call', { name: 'echo', arguments: { text } }))
    expect(await pipe.message()).toMatchObject({ id: 1, result: { structuredContent: { arguments: { text } } } })
  })
})

describe('stdio faults', () => {
  it('speaks when no call is in flight', async () => {
    const transport = new StdioClientTransport(fixtureCommand({ transport: 'stdio' }))
    await using peers = await connectSdk(transport, 'legacy')
    for (const kind of ['roots', 'ping', 'log']) await peers.text('later', { kind })
    await vi.waitFor(async () => {
      const answers = [{ answer: { roots: [{ uri: 'file:///home/ada', name: 'home' }] } }, { answer: {} }]
      expect(await peers.json('late_answers')).toEqual({ answers })
      expect(peers.notifications).toContain('notifications/message')
    }, 10_000)
    expect(await peers.json('fixture_stats')).toMatchObject({ methods: { initialize: 1 } })
  })

  it('a legacy server meets a probe with an error, with silence, or with its end', async () => {
    await using answering = openPipe({ era: 'legacy' })
    answering.send(modernRequest('server/discover'))
    expect(await answering.message()).toMatchObject({ id: 1, error: { code: -32601 } })

    await using silent = openPipe({ era: 'legacy', stdioProbe: 'silent' })
    silent.send(modernRequest('server/discover'))
    silent.send(INITIALIZE)
    expect(await silent.message()).toMatchObject({ id: 'init' })

    await using exiting = openPipe({ era: 'legacy', stdioProbe: 'exit' })
    exiting.send(modernRequest('server/discover'))
    expect(await exiting.exited).toBe(1)
  })

  it('writes a line that is no JSON, and answers after it', async () => {
    await using pipe = openPipe({ era: 'modern' })
    pipe.send(modernRequest('tools/call', { name: 'garbage' }))
    expect(await pipe.line()).toBe('this is not JSON')
    expect(await pipe.message()).toMatchObject({ id: 1 })
  })

  it('crashes with the code it is given', async () => {
    await using pipe = openPipe({ era: 'modern' })
    pipe.send(modernRequest('tools/call', { name: 'crash', arguments: { code: 7 } }))
    expect(await pipe.exited).toBe(7)
  })

  it('closes its output in the middle of an answer, but lives on', async () => {
    await using pipe = openPipe({ era: 'modern' })
    pipe.send(modernRequest('tools/call', { name: 'close_mid_stream' }))
    expect(await pipe.line()).toBe('{"jsonrpc":"2.0","id":')
    expect(await pipe.line()).toBeUndefined()
    pipe.end()
    expect(await pipe.exited).toBe(0)
  })

  it('stops a call that is cancelled, and does not answer it', async () => {
    await using pipe = openPipe({ era: 'modern' })
    pipe.send(modernRequest('tools/call', { name: 'hang' }, { id: 'hung' }))
    pipe.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'hung' } })
    pipe.send(modernRequest('tools/call', { name: 'greet' }, { id: 'next' }))
    expect(await pipe.message()).toMatchObject({ id: 'next' })
    pipe.end()
    expect(await pipe.exited).toBe(0)
  })

  it('answers what is no message with an error that has no id', async () => {
    await using pipe = openPipe({})
    pipe.send('{ this is not json')
    expect(await pipe.message()).toEqual({ jsonrpc: '2.0', error: { code: -32700, message: 'Parse error' } })
    pipe.send('[]')
    expect(await pipe.message()).toMatchObject({ error: { code: -32600 } })
  })
})
