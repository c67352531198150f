import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

const MODERN = '2026-07-28'
const JSON_TYPE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

const COMPOSED = {
  name: 'composed',
  description: 'Asks, then says it.',
  parameters: { type: 'object', properties: { uri: { type: 'string' } } },
  steps: [
    { id: 'ask', type: 'elicitation', message: 'What?', onCancel: { action: 'continue' }, onError: { action: 'continue' } },
    { id: 'say', tool: 'a.echo', dependsOn: ['ask'], arguments: { text: '{{.params.uri}}' } },
  ],
}

describe('a virtual server under hostile clients', () => {
  let fixture: Fixture
  let vmcp: TestVmcp
  let session: string

  beforeAll(async () => {
    fixture = await startFixture({ only: ['echo', 'who_am_i', 'rpc_error', 'test_elicitation'] })
    vmcp = await startTestVmcp({ backends: { a: fixture.url }, config: { compositeTools: [COMPOSED] } })
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const opened = await send(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }), {})
    session = opened.headers.get('mcp-session-id') ?? ''
    expect(session).not.toBe('')
  })
  afterAll(async () => {
    await vmcp?.[Symbol.asyncDispose]()
    await fixture?.[Symbol.asyncDispose]()
  })

  const send = (body: string, headers: Record<string, string>) =>
    fetch(vmcp.url, { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body, signal: AbortSignal.timeout(60_000) })

  const method = fc.constantFrom(
    ...['initialize', 'ping', 'tools/list', 'tools/call', 'resources/list', 'resources/read', 'resources/templates/list', 'prompts/list'],
    ...['prompts/get', 'completion/complete', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe', 'server/discover'],
    ...['notifications/initialized', 'notifications/cancelled', 'notifications/roots/list_changed', 'tasks/get', 'nothing', '__proto__'],
  )
  const name = fc.constantFrom('echo', 'who_am_i', 'rpc_error', 'composed', 'hasOwnProperty', '__proto__', '', 'x'.repeat(5_000))
  const odd = fc.oneof(fc.jsonValue({ maxDepth: 3 }), name)
  const params = fc.record(
    {
      name: odd,
      arguments: odd,
      uri: odd,
      cursor: odd,
      level: odd,
      ref: odd,
      argument: odd,
      requestState: odd,
      inputResponses: odd,
      requestId: odd,
    },
    { requiredKeys: [] },
  )
  const message = fc.record(
    { jsonrpc: fc.constant('2.0'), id: fc.oneof(fc.integer(), fc.string({ maxLength: 5 })), method, params },
    { requiredKeys: ['jsonrpc', 'method'] },
  )
  const envelope = { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }

  it('answers every message of either era, and never with a failure of its own', async () => {
    await fc.assert(
      fc.asyncProperty(message, fc.boolean(), async (given, isModern) => {
        const named =
          typeof given.params?.name === 'string' ? given.params.name : typeof given.params?.uri === 'string' ? given.params.uri : ''
        const body = isModern ? { ...given, params: { ...given.params, _meta: envelope } } : given
        const headers: Record<string, string> = isModern
          ? {
              'mcp-protocol-version': MODERN,
              'mcp-method': given.method,
              'mcp-name': `=?base64?${Buffer.from(named).toString('base64')}?=`,
            }
          : { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }
        const response = await send(JSON.stringify(body), headers)
        const text = await response.text()
        expect(response.status, text.slice(0, 500)).toBeLessThan(500)
      }),
      { numRuns: 400 },
    )
    expect(vmcp.logged.filter((line) => line.startsWith('error'))).toEqual([])
    expect((await send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }), { 'mcp-session-id': session })).status).toBe(200)
  })

  it('keeps equal ids of two sessions apart', async () => {
    const transport = () => new StreamableHTTPClientTransport(new URL(vmcp.url))
    const clients = await Promise.all([1, 2, 3].map(() => connectSdk(transport(), 'legacy')))
    const texts = await Promise.all(clients.flatMap((sdk, i) => [1, 2, 3].map((n) => sdk.text('echo', { text: `${i}.${n}` }))))
    expect(texts.map((text) => (JSON.parse(text) as { text: string }).text)).toEqual(
      [0, 1, 2].flatMap((i) => [1, 2, 3].map((n) => `${i}.${n}`)),
    )
    await Promise.all(clients.map((sdk) => sdk[Symbol.asyncDispose]()))
  })
})

describe('a virtual server with broken backends', () => {
  const ERAS = ['legacy', 'modern'] as const
  it.each(ERAS.flatMap((client) => ERAS.map((backend) => ({ client, backend }))))(
    'answers every call, and the next one works: $client client, $backend backend',
    async ({ client, backend }) => {
      await using fixture = await startFixture({ era: backend })
      await using vmcp = await startTestVmcp({
        backends: { a: fixture.url },
        config: { operational: { timeouts: { perTool: { hang: '300ms', wrong_id: '500ms', garbage: '500ms', close_mid_stream: '1s' } } } },
      })
      await using sdk = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), client)
      for (const name of ['garbage', 'wrong_id', 'close_mid_stream', 'rpc_error', 'hang']) {
        const failed = await sdk.client.callTool({ name, arguments: {} }).then(
          (result) => JSON.stringify(result),
          (error: unknown) => String(error),
        )
        expect(failed).not.toContain('127.0.0.1')
        expect(await sdk.text('echo', { text: name })).toContain(name)
      }
      await fixture.stop()
      const gone = await sdk.client.callTool({ name: 'echo', arguments: {} }).catch((error: unknown) => String(error))
      expect(String(gone)).not.toContain('127.0.0.1')
    },
  )

  it('follows a backend whose era turns while sessions are open', async () => {
    await using fixture = await startFixture({ era: 'legacy' })
    await using vmcp = await startTestVmcp({ backends: { a: fixture.url } })
    await using legacy = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), 'legacy')
    expect(await legacy.text('echo', { text: 'before' })).toContain('before')
    fixture.admin.setEra('modern')
    fixture.admin.forgetSessions()
    await expect.poll(() => legacy.text('echo', { text: 'after' }).catch(String)).toContain('after')
    fixture.admin.setEra('legacy')
    await expect.poll(() => legacy.text('echo', { text: 'again' }).catch(String)).toContain('again')
  })
})
