import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { startTestVmcp } from './testing/test-vmcp.ts'

const MODERN = '2026-07-28'

describe('limits of a virtual server', () => {
  it.each(['legacy', 'modern'] as const)(
    'an answer of a %s backend that is over 32 MiB is an error that says so, and the next call works',
    async (era) => {
      await using fixture = await startFixture({ era, only: ['big_result', 'echo'] })
      await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
      await using sdk = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), era)
      const failed = await sdk.client.callTool({ name: 'big_result', arguments: { bytes: 33 << 20 } }).catch((error: unknown) => error)
      expect(String(failed)).toContain('over the limit of 33554432 bytes')
      expect(failed).toMatchObject({ data: { backend: 'one', limitBytes: 32 << 20, mayHaveRun: true } })
      expect(await sdk.text('echo', { text: 'next' })).toContain('next')
    },
  )

  it('a handshake that takes more than 64 KiB to store begins no session, and says why', async () => {
    await using fixture = await startFixture({ era: 'legacy', only: ['echo'] })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
    const client = new WireClient(vmcp.url)
    const extensions = { 'test/large': { text: 'x'.repeat(66_000) } }
    const refused = (await client.request('initialize', { protocolVersion: '2025-11-25', capabilities: { extensions } })).messages[0]
    expect(refused.error).toMatchObject({ code: -32602, message: expect.stringContaining('may take 65536 bytes') })
    extensions['test/large'].text = 'x'.repeat(60_000)
    expect((await client.initialize({ extensions })).messages[0]).toHaveProperty('result')
    expect((await client.call('echo', { text: 'next' })).text).toContain('next')
  })

  it('one party has at most 256 subscriptions open, and gets room again when one ends', async () => {
    await using fixture = await startFixture({ only: ['echo'] })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
    const meta = { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': {} }
    const params = { notifications: { toolsListChanged: true }, _meta: meta }
    const listen = (signal: AbortSignal) =>
      fetch(vmcp.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': MODERN,
          'mcp-method': 'subscriptions/listen',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params }),
        signal,
      })
    const all = new AbortController()
    const one = new AbortController()
    const open = await Promise.all([listen(one.signal), ...Array.from({ length: 255 }, () => listen(all.signal))])
    expect(new Set(open.map(({ status }) => status))).toEqual(new Set([200]))
    const refused = await listen(all.signal)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10'])
    one.abort()
    await expect.poll(async () => (await listen(all.signal)).status).toBe(200)
    all.abort()
  })

  it('/status names nothing where policies decide who sees which tool', async () => {
    await using a = await startFixture({ only: ['echo'] })
    await using b = await startFixture({ only: ['echo'] })
    const backends = { a: a.url, b: b.url }
    const authz = { type: 'cedar', policies: ['permit(principal, action, resource);'] }
    await using guarded = await startTestVmcp({ backends, config: { incomingAuth: { type: 'anonymous', authz } } })
    await using open = await startTestVmcp({ backends })
    const status = async (base: string) => await (await fetch(`${base}/status`)).text()
    expect(await status(open.base)).toContain('a_echo')
    const text = await status(guarded.base)
    expect(text).not.toContain('echo')
    expect(JSON.parse(text)).toMatchObject({ offered: { tools: 2 }, conflicts: { total: expect.any(Number) } })
  })
})
