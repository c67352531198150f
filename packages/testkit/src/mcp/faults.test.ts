import { describe, expect, it, vi } from 'vitest'
import { type Fixture, startFixture } from './fixture.ts'
import { spawnFixture } from './fixture-process.ts'
import { openLegacy, sendModern } from './testing/raw-client.ts'
import type { JsonObject, RpcResponse } from './wire/json-rpc.ts'

describe('fault switches of the HTTP fixture', () => {
  it.for([404, 400] as const)('forgets sessions: the next request gets %i', async (unknownSessionStatus) => {
    await using fixture = await startFixture({ unknownSessionStatus })
    const send = await openLegacy(fixture.url)
    expect((await send('ping')).status).toBe(200)
    expect(fixture.admin.forgetSessions()).toBe(1)
    expect((await send('ping')).status).toBe(unknownSessionStatus)
    expect(fixture.stats).toMatchObject({ sessions: 0, sessionsCreated: 1 })
  })

  it('fails the next requests at the edge, then recovers', async () => {
    await using fixture = await startFixture()
    fixture.admin.fail({ status: 429, times: 2, headers: { 'retry-after': '7' } })
    const first = await sendModern(fixture.url, 'server/discover')
    expect([first.status, first.headers.get('retry-after')]).toEqual([429, '7'])
    expect((await sendModern(fixture.url, 'server/discover')).status).toBe(429)
    expect((await sendModern(fixture.url, 'server/discover')).status).toBe(200)
  })

  it('changes its age while it runs', async () => {
    await using fixture = await startFixture({ era: 'legacy' })
    expect((await sendModern(fixture.url, 'server/discover')).status).toBe(400)
    fixture.admin.setEra('dual')
    const { messages } = await sendModern(fixture.url, 'server/discover')
    expect(messages).toMatchObject([
      { result: { supportedVersions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] } },
    ])
  })

  it('answers under a wrong id, in both eras', async () => {
    await using fixture = await startFixture()
    for (const answer of await both(fixture, 'wrong_id')) expect(answer.messages.at(-1)).toMatchObject({ id: 'unused-id' })
  })

  it('writes an event that is no JSON before its answer, in both eras', async () => {
    await using fixture = await startFixture()
    for (const { messages } of await both(fixture, 'garbage')) {
      expect(messages.at(-2)).toBe('{"this is not": json')
      expect(messages.at(-1)).toMatchObject({ id: 1, result: { content: [{ text: 'after garbage' }] } })
    }
  })

  it('cuts the connection in the middle of an answer, in both eras', async () => {
    await using fixture = await startFixture()
    await expect(sendModern(fixture.url, 'tools/call', { name: 'close_mid_stream' })).rejects.toThrow()
    const send = await openLegacy(fixture.url)
    await expect(send('tools/call', { name: 'close_mid_stream' })).rejects.toThrow()
  })

  it('floods: with what was asked for, or by force', async () => {
    await using fixture = await startFixture()
    const flood = async (args: JsonObject, meta: JsonObject = {}) =>
      (await sendModern(fixture.url, 'tools/call', { name: 'flood', arguments: args }, { meta })).messages.length
    expect(await flood({ count: 50 })).toBe(1)
    expect(await flood({ count: 50, force: true })).toBe(51)
    expect(await flood({ count: 50 }, { 'io.modelcontextprotocol/logLevel': 'debug' })).toBe(51)
    expect(await flood({ count: 2_500, kind: 'progress' }, { progressToken: 't' })).toBe(2_501)
  })

  it('returns as many bytes as it is asked for', async () => {
    await using fixture = await startFixture()
    const { messages } = await sendModern(fixture.url, 'tools/call', { name: 'big_result', arguments: { bytes: 3_000_000 } })
    expect(JSON.stringify(messages).length).toBeGreaterThan(3_000_000)
  })

  it('takes a disconnect for a cancellation in the modern era only', async () => {
    await using fixture = await startFixture()
    const hang = { name: 'hang' }
    const leaving = new AbortController()
    const left = expect(sendModern(fixture.url, 'tools/call', hang, { signal: leaving.signal })).rejects.toThrow()
    await vi.waitFor(() => expect(fixture.stats.count('tools/call')).toBe(1), 10_000)
    leaving.abort()
    await left
    const cancelled = { requestId: 1, method: 'tools/call', name: 'hang', by: 'disconnect' }
    await vi.waitFor(() => expect(fixture.stats.cancelled).toEqual([cancelled]), 10_000)

    const send = await openLegacy(fixture.url)
    const leavingToo = new AbortController()
    const leftToo = expect(send('tools/call', hang, { signal: leavingToo.signal })).rejects.toThrow()
    await vi.waitFor(() => expect(fixture.stats.count('tools/call')).toBe(2), 10_000)
    leavingToo.abort()
    await leftToo
    await send('tools/call', { name: 'slow', arguments: { ms: 50 } })
    expect(fixture.stats.cancelled).toEqual([cancelled])
  })

  it('takes a notification for a cancellation in the legacy era', async () => {
    await using fixture = await startFixture()
    const send = await openLegacy(fixture.url)
    const hung = send('tools/call', { name: 'hang' })
    await vi.waitFor(() => expect(fixture.stats.count('tools/call')).toBe(1), 10_000)
    await send('notifications/cancelled', { requestId: 1 }, { notification: true })
    expect((await hung).messages).toEqual([])
    expect(fixture.stats.cancelled).toMatchObject([{ method: 'tools/call', by: 'notification' }])
  })

  it('asks on the standalone stream, where a client may not be listening', async () => {
    await using fixture = await startFixture({ askTimeoutMs: 50 })
    const send = await openLegacy(fixture.url, { roots: {} })
    const { messages } = await send('tools/call', { name: 'ask', arguments: { kind: 'roots', via: 'standalone' } })
    expect(messages).toMatchObject([{ error: { code: -32603 } }])
  })

  it('does not ask a legacy client for what it did not declare', async () => {
    await using fixture = await startFixture()
    const send = await openLegacy(fixture.url)
    const { messages } = await send('tools/call', { name: 'ask', arguments: { kind: 'sampling' } })
    expect(messages).toMatchObject([{ result: { isError: true } }])
  })

  it('ends listen streams with an answer', async () => {
    await using fixture = await startFixture()
    const listening = sendModern(fixture.url, 'subscriptions/listen', { notifications: { toolsListChanged: true } }, { id: 'mine' })
    await vi.waitFor(() => expect(fixture.stats.listens).toBe(1), 10_000)
    fixture.admin.listChanged('tools')
    fixture.admin.listChanged('prompts')
    fixture.admin.endListens()
    const _meta = { 'io.modelcontextprotocol/subscriptionId': 'mine' }
    expect((await listening).messages).toMatchObject([
      { method: 'notifications/subscriptions/acknowledged', params: { notifications: { toolsListChanged: true }, _meta } },
      { method: 'notifications/tools/list_changed', params: { _meta } },
      { id: 'mine', result: { resultType: 'complete', _meta } },
    ])
  })

  it('reports what it received, and remembers it', async () => {
    await using fixture = await startFixture({ name: 'second' })
    const headers = { 'x-trace': 'abc', 'mcp-session-id': 'ignored' }
    const { messages } = await sendModern(fixture.url, 'tools/call', { name: 'report_request' }, { headers, meta: { 'com.example/k': 1 } })
    const report = {
      era: 'modern',
      session: null,
      headers: { 'x-trace': 'abc' },
      meta: { 'com.example/k': 1 },
      clientInfo: { name: 'raw' },
    }
    expect(messages).toMatchObject([
      { result: { structuredContent: report, _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'second' } } } },
    ])
    expect(fixture.stats.received.at(-1)).toMatchObject({ transport: 'http', era: 'modern', headers: { 'x-trace': 'abc' } })
  })

  it('crashes inside this process without taking it along', async () => {
    await using fixture = await startFixture()
    await expect(sendModern(fixture.url, 'tools/call', { name: 'crash' })).rejects.toThrow()
    expect(fixture.crashed).toBe(true)
    await expect(sendModern(fixture.url, 'server/discover')).rejects.toThrow()
  })
})

describe('the fixture in a process of its own', () => {
  it('prints where it listens, obeys its admin endpoint, and crashes with the code it is given', async () => {
    await using fixture = await spawnFixture({ unknownSessionStatus: 400 })
    expect(fixture.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/)
    const send = await openLegacy(fixture.url)
    const admin = (path: string, method = 'POST') =>
      fetch(new URL(`/admin/${path}`, fixture.url), { method }).then((answer) => answer.json())
    expect(await admin('stats', 'GET')).toMatchObject({ sessions: 1, methods: { initialize: 1 } })
    expect(await admin('forget-sessions')).toEqual({ forgotten: 1 })
    expect((await send('ping')).status).toBe(400)
    expect(await admin('fail?status=500&times=1')).toEqual({ done: true })
    expect((await sendModern(fixture.url, 'server/discover')).status).toBe(500)
    await expect(sendModern(fixture.url, 'tools/call', { name: 'crash', arguments: { code: 9 } })).rejects.toThrow()
    expect(await fixture.exited).toBe(9)
  })

  it('can come back on the same port as another instance', async () => {
    const first = await spawnFixture()
    const before = await whoIs(first.url)
    first.kill('SIGKILL')
    expect(await first.exited).toBe('SIGKILL')
    await using second = await spawnFixture({ port: Number(new URL(first.url).port) })
    expect(second.url).toBe(first.url)
    expect((await whoIs(second.url))['instance']).not.toBe(before['instance'])
  })

  it('refuses a flag it does not know', async () => {
    await expect(spawnFixture({ era: 'ancient' as 'legacy' })).rejects.toThrow(/ended with 2.*--era must be one of/)
  })
})

async function both(fixture: Fixture, name: string) {
  const send = await openLegacy(fixture.url)
  return [await sendModern(fixture.url, 'tools/call', { name }), await send('tools/call', { name })]
}

async function whoIs(url: string): Promise<JsonObject> {
  const [message] = (await sendModern(url, 'tools/call', { name: 'who_am_i' })).messages as RpcResponse[]
  return message?.result?.['structuredContent'] as JsonObject
}
