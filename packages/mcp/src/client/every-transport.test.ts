import { TestClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { describe, expect, it, vi } from 'vitest'
import type { JsonObject } from '../json-rpc.ts'
import { McpErrorResponse } from './client-errors.ts'
import { ANSWERS, CLIENT_INFO, connectPeers, type PeerOptions } from './testing/fixture-client.ts'

interface Case {
  readonly title: string
  readonly options: PeerOptions
  readonly era: 'legacy' | 'modern'
  readonly transport: string
}

const CASES: readonly Case[] = [
  { title: 'HTTP, both eras', options: { era: 'dual' }, era: 'modern', transport: 'streamable-http' },
  { title: 'HTTP, legacy', options: { era: 'legacy' }, era: 'legacy', transport: 'streamable-http' },
  { title: 'HTTP, modern', options: { era: 'modern' }, era: 'modern', transport: 'streamable-http' },
  { title: 'HTTP, legacy, events only', options: { era: 'legacy', responseMode: 'sse' }, era: 'legacy', transport: 'streamable-http' },
  { title: 'HTTP, legacy, JSON only', options: { era: 'legacy', responseMode: 'json' }, era: 'legacy', transport: 'streamable-http' },
  { title: 'HTTP, modern, events only', options: { era: 'modern', responseMode: 'sse' }, era: 'modern', transport: 'streamable-http' },
  { title: 'HTTP+SSE', options: { transport: 'sse' }, era: 'legacy', transport: 'sse' },
  { title: 'HTTP+SSE with an absolute endpoint', options: { transport: 'sse', sseEndpoint: 'absolute' }, era: 'legacy', transport: 'sse' },
  { title: 'stdio, both eras', options: { transport: 'stdio' }, era: 'legacy', transport: 'stdio' },
  { title: 'stdio, modern', options: { transport: 'stdio', era: 'modern' }, era: 'modern', transport: 'stdio' },
]

/** One pair of peers per case: what is tested here leaves nothing behind. */
describe.each(CASES)('a client over $title', ({ options, era, transport }) => {
  it('connects, lists, calls, and hears of progress', async () => {
    await using peers = await connectPeers({ ...options, pageSize: 7, client: ANSWERS })
    const { client } = peers
    expect({ era: client.era, transport: client.transport, info: client.serverInfo }).toMatchObject({
      era,
      transport,
      info: { name: 'mcp-fixture' },
    })
    expect(client.capabilities).toMatchObject({ tools: { listChanged: true } })
    expect(client.instructions).toBe('A server for tests.')
    expect(client.protocolVersion).toBe(era === 'modern' ? '2026-07-28' : '2025-11-25')

    const names = (await client.list('tools/list')).map((tool) => tool['name'])
    expect(names.length).toBeGreaterThan(40)
    expect(new Set(names).size).toBe(names.length)
    expect(await peers.text('echo', { text: 'größer 🦜\n"' })).toBe(JSON.stringify({ text: 'größer 🦜\n"' }))

    const progress: unknown[] = []
    await peers.call('test_tool_with_progress', {}, { onProgress: (each) => progress.push(each['progress']) })
    expect(progress).toEqual([0, 50, 100])

    const report = JSON.parse(await peers.text('report_request')) as JsonObject
    expect(report).toMatchObject({ era, clientInfo: CLIENT_INFO, clientCapabilities: { elicitation: {}, sampling: {}, roots: {} } })
    await client.ping()
    expect(peers.warnings).toEqual([])
  })

  it('answers what the server asks in the middle of a call', async () => {
    await using peers = await connectPeers({ ...options, client: ANSWERS })
    expect(await peers.text('test_input_required_result_elicitation')).toBe('Hello, Ada!')
    expect(await peers.text('test_input_required_result_sampling')).toContain('Paris')
    expect(await peers.text('test_input_required_result_list_roots')).toContain('file:///home/ada')
    expect(await peers.text('test_input_required_result_multiple_inputs')).toBe('Answers: client_roots, greeting, user_name')
    expect(await peers.text('test_input_required_result_multi_round')).toBe('Ada likes red')
  })

  it('runs calls side by side without mixing them up', async () => {
    await using peers = await connectPeers(options)
    const numbers = Array.from({ length: 20 }, (_, index) => index)
    const calls = numbers.map((n) => peers.text(n % 2 ? 'slow' : 'echo', n % 2 ? { ms: 20 } : { text: String(n) }))
    expect(await Promise.all(calls)).toEqual(numbers.map((n) => (n % 2 ? 'slept' : `{"text":"${n}"}`)))
  })

  it('turns what goes wrong into coded errors', async () => {
    await using peers = await connectPeers(options)
    const refused = await peers.call('rpc_error', { code: -32050, message: 'no' }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(McpErrorResponse)
    expect(refused).toMatchObject({ code: 'mcp_error_response', message: 'no', rpcCode: -32050, data: { demanded: true } })
    expect(await peers.text('garbage')).toBe('after garbage')
    await expect(peers.call('hang', {}, { timeoutMs: 60 })).rejects.toMatchObject({
      code: 'timeout',
      message: 'tools/call took longer than 60 ms',
    })
    const controller = new AbortController()
    const hung = peers.call('hang', {}, { signal: controller.signal })
    setTimeout(() => controller.abort('enough'), 30)
    await expect(hung).rejects.toSatisfy((error) => isThvError(error, 'aborted'))
    expect(await peers.text('echo', { text: 'still there' })).toBe('{"text":"still there"}')
  })

  it('listens to changes, and only to those it asked for', async () => {
    await using peers = await connectPeers(options)
    const heard: unknown[] = []
    const filter = { toolsListChanged: true, resourceSubscriptions: ['test://watched-resource'] }
    const onNotification = ({ method, params }: { method: string; params?: JsonObject }) =>
      void heard.push([method, params?.['uri'], params?.['_meta']])
    const listening = await peers.client.listen(filter, { onNotification })
    expect(listening.honoured).toEqual(filter)
    await peers.call('test_trigger_prompt_change')
    await peers.call('test_trigger_tool_change')
    await peers.call('touch_resource', { uri: 'test://something-else' })
    await peers.call('touch_resource', { uri: 'test://watched-resource' })
    await vi.waitFor(() => expect(heard).toHaveLength(2), 10_000)
    expect(heard).toEqual([
      ['notifications/tools/list_changed', undefined, undefined],
      ['notifications/resources/updated', 'test://watched-resource', undefined],
    ])
    await listening.close()
    await listening.done
    await peers.call('test_trigger_tool_change')
    expect(heard).toHaveLength(2)
  })

  it('is over when it is closed', async () => {
    await using peers = await connectPeers(options)
    const hung = peers.call('hang')
    await Promise.all([expect(hung).rejects.toMatchObject({ code: 'aborted' }), peers.client.close()])
    await expect(peers.call('echo')).rejects.toMatchObject({ code: 'aborted' })
    await peers.client.close()
  })
})

describe('cancellation says what the era wants said', () => {
  it.each([
    ['modern: by leaving', { era: 'modern' }, 'disconnect'],
    ['legacy: by a notification', { era: 'legacy' }, 'notification'],
    ['HTTP+SSE: by a notification', { transport: 'sse' }, 'notification'],
  ] as const)('%s', async (_title, options, by) => {
    const clock = new TestClock()
    await using peers = await connectPeers({ ...options, client: { clock } })
    const { stats } = peers.fixture
    const call = expect(peers.call('hang', {}, { timeoutMs: 50 })).rejects.toMatchObject({ code: 'timeout' })
    await vi.waitFor(() => expect(stats.count('tools/call')).toBe(1), 10_000)
    await clock.advance(50)
    await call
    await vi.waitFor(() => expect(stats.cancelled).toMatchObject([{ method: 'tools/call', name: 'hang', by }]), 10_000)
    expect(stats.count('notifications/cancelled')).toBe(by === 'notification' ? 1 : 0)
  })
})
