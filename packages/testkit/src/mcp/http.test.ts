import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { describe, expect, it, vi } from 'vitest'
import { WATCHED } from './features/resources.ts'
import { startFixture } from './fixture.ts'
import type { FixtureOptions } from './state/options.ts'
import { type ClientMode, connectSdk } from './testing/sdk-client.ts'
import type { EraSupport } from './wire/protocol.ts'

const PAIRS: readonly { era: EraSupport; mode: ClientMode; spoken: 'legacy' | 'modern' }[] = [
  { era: 'dual', mode: 'auto', spoken: 'modern' },
  { era: 'dual', mode: 'legacy', spoken: 'legacy' },
  { era: 'dual', mode: 'modern', spoken: 'modern' },
  { era: 'legacy', mode: 'auto', spoken: 'legacy' },
  { era: 'legacy', mode: 'legacy', spoken: 'legacy' },
  { era: 'modern', mode: 'auto', spoken: 'modern' },
  { era: 'modern', mode: 'modern', spoken: 'modern' },
]

describe('the fixture over HTTP, with the official client', () => {
  it.for(PAIRS)('$era server, $mode client: they speak $spoken', async ({ era, mode, spoken }) => {
    await using peers = await connected({ era }, mode)
    expect(peers.client.getProtocolEra()).toBe(spoken)
    expect(await peers.text('echo', { text: 'größer 大きさ 🙂' })).toBe('{"text":"größer 大きさ 🙂"}')
    expect(await peers.text('test_input_required_result_elicitation')).toBe('Hello, Ada!')
    expect(await peers.text('test_input_required_result_multi_round')).toBe('Ada likes red')
    expect(await peers.text('test_input_required_result_multiple_inputs')).toBe('Answers: client_roots, greeting, user_name')
    expect(await peers.json('ask', { kind: 'url' })).toMatchObject({ answers: { answer_1: { action: 'accept' } } })
    expect(await peers.json('report_request')).toMatchObject({ era: spoken, transport: 'http', clientInfo: { name: 'sdk-client' } })
  })

  it.for([
    { era: 'legacy', mode: 'modern' },
    { era: 'modern', mode: 'legacy' },
  ] as const)('$era server, $mode client: no connection', async ({ era, mode }) => {
    await expect(connected({ era }, mode)).rejects.toThrow()
  })

  it('tells a legacy client about changes on its standalone stream', async () => {
    await using peers = await connected({}, 'legacy')
    await peers.client.subscribeResource({ uri: WATCHED })
    await vi.waitFor(() => expect(peers.fixture.stats.streams).toBe(1), 10_000)
    await peers.text('touch_resource')
    await peers.text('touch_resource', { uri: 'test://not-subscribed' })
    await peers.text('set_tool')
    const expected = ['notifications/resources/updated', 'notifications/tools/list_changed']
    await vi.waitFor(() => expect(peers.notifications).toEqual(expected), 10_000)
    expect((await peers.client.listTools()).tools.map(({ name }) => name)).toContain('zz_dynamic')
  })

  it('tells a modern client what it listens for, until told to stop', async () => {
    await using peers = await connected({}, 'modern')
    const subscription = await peers.client.listen({ toolsListChanged: true, resourceSubscriptions: [WATCHED] })
    expect(peers.fixture.stats.listens).toBe(1)
    await peers.text('test_trigger_prompt_change')
    await peers.text('touch_resource')
    await peers.text('test_trigger_tool_change')
    await vi.waitFor(
      () => expect(peers.notifications).toEqual(['notifications/resources/updated', 'notifications/tools/list_changed']),
      10_000,
    )
    await subscription.close()
    await vi.waitFor(() => expect(peers.fixture.stats.listens).toBe(0), 10_000)
  })

  it('sends progress and log messages on the stream of the call', async () => {
    await using peers = await connected({}, 'legacy')
    const seen: number[] = []
    await peers.client.callTool({ name: 'test_tool_with_progress' }, { onprogress: ({ progress }) => seen.push(progress) })
    expect(seen).toEqual([0, 50, 100])
    await peers.text('test_tool_with_logging')
    expect(peers.notifications.filter((method) => method === 'notifications/message')).toHaveLength(3)
  })

  it('sends a legacy client away and answers when it comes back', async () => {
    await using peers = await connected({}, 'legacy')
    expect(await peers.text('test_reconnection')).toBe('Reconnection test completed successfully.')
  })

  it.for(['sse', 'json'] as const)('answers with %s when told to', async (responseMode) => {
    for (const mode of ['legacy', 'modern'] as const) {
      await using peers = await connected({ responseMode }, mode)
      expect(await peers.text('test_input_required_result_elicitation')).toBe('Hello, Ada!')
    }
  })

  it('can do without sessions, and page its lists', async () => {
    await using peers = await connected({ sessions: false, pageSize: 7 }, 'legacy')
    expect(await peers.json('who_am_i')).toMatchObject({ session: null })
    expect(peers.fixture.stats.sessionsCreated).toBe(0)
    const names = (await peers.client.listTools()).tools.map(({ name }) => name)
    expect(names.length).toBeGreaterThan(40)
    expect(names).toEqual([...names].sort())
  })

  it('offers a client of the modern revision a tool it must drop', async () => {
    using warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    await using peers = await connected({ oddTools: true, only: ['echo', 'zz_invalid_header'] }, 'modern')
    expect((await peers.client.listTools()).tools.map(({ name }) => name)).toEqual(['echo'])
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('zz_invalid_header'))
  })
})

async function connected(options: FixtureOptions & { readonly transport?: 'http' }, mode: ClientMode) {
  const fixture = await startFixture(options)
  try {
    const peer = await connectSdk(new StreamableHTTPClientTransport(new URL(fixture.url)), mode)
    const close = async () => {
      await peer.client.close()
      await fixture.stop()
    }
    return { ...peer, fixture, [Symbol.asyncDispose]: close }
  } catch (error) {
    await fixture.stop()
    throw error
  }
}
