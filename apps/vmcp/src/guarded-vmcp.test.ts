import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { describe, expect, it } from 'vitest'
import { startTestVmcp } from './testing/test-vmcp.ts'

const POLICIES = [
  'permit(principal, action == Action::"call_tool", resource == Tool::"b_who_am_i");',
  'permit(principal == Client::"ada", action == Action::"call_tool", resource == Tool::"mine");',
  'permit(principal == Client::"ada", action == Action::"call_tool", resource == Tool::"a_report_request");',
]

describe('a virtual server with OIDC, policies and audit', () => {
  it('[002-136] [002-137] asks for tokens, judges the names that clients see, and passes no token on', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vmcp-audit-'))
    await using stack = new AsyncDisposableStack()
    stack.defer(() => rmSync(folder, { recursive: true }))
    const idp = stack.use(await startOidcServer())
    const a = stack.use(await startFixture({ only: ['who_am_i', 'report_request'] }))
    const b = stack.use(await startFixture({ only: ['who_am_i'], era: 'legacy' }))
    const oidc = { issuer: idp.issuer, audience: 'tests', protectedResourceAllowPrivateIp: true, insecureAllowHttp: true }
    const vmcp = stack.use(
      await startTestVmcp({
        backends: { a: a.url, b: b.url },
        config: {
          incomingAuth: { type: 'oidc', oidc, authz: { type: 'cedar', policies: POLICIES } },
          aggregation: { conflictResolution: 'prefix' },
          compositeTools: [{ name: 'mine', description: 'Says who it is.', steps: [{ id: 'who', tool: 'a.who_am_i' }] }],
          audit: { enabled: true, logFile: join(folder, 'audit.log') },
        },
      }),
    )
    const tokenOf = (sub: string) => idp.token({ claims: { sub } })
    const connect = async (sub: string, mode: 'legacy' | 'modern') => {
      const requestInit = { headers: { authorization: `Bearer ${await tokenOf(sub)}` } }
      return connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url), { requestInit }), mode)
    }

    for (const path of ['/mcp', '/status', '/api/backends/health', '/metrics']) {
      const refused = await fetch(`${vmcp.base}${path}`, { headers: { accept: 'text/event-stream' } })
      expect([path, refused.status]).toEqual([path, 401])
      expect(refused.headers.get('www-authenticate')).toContain('resource_metadata')
    }
    expect((await fetch(`${vmcp.base}/readyz`)).status).not.toBe(401)
    expect((await fetch(`${vmcp.base}/health`)).status).toBe(200)

    for (const mode of ['legacy', 'modern'] as const) {
      await using ada = await connect('ada', mode)
      await using bob = await connect('bob', mode)
      const names = async ({ client }: typeof ada) => (await client.listTools()).tools.map(({ name }) => name)
      expect(await names(ada)).toEqual(['a_report_request', 'b_who_am_i', 'mine'])
      expect(await names(bob)).toEqual(['b_who_am_i'])
      const { headers } = await ada.json('a_report_request')
      expect(headers).not.toHaveProperty('authorization')
      await expect(bob.text('a_report_request')).rejects.toThrow()
      expect(await bob.text('b_who_am_i')).toContain('name')
      // Policies judge the composite tool, not its steps: no policy permits a_who_am_i.
      expect(await ada.text('mine')).toContain('name')
      await expect(ada.text('a_who_am_i')).rejects.toThrow()
      await expect(bob.text('mine')).rejects.toThrow()
    }

    // A session belongs to its principal.
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const post = async (sub: string, message: object, more: Record<string, string> = {}) =>
      fetch(vmcp.url, {
        method: 'POST',
        headers: { ...headers, authorization: `Bearer ${await tokenOf(sub)}`, ...more },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      })
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const opened = await post('ada', { id: 1, method: 'initialize', params })
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
    expect((await post('ada', { id: 2, method: 'ping' }, session)).status).toBe(200)
    expect((await post('bob', { id: 2, method: 'ping' }, session)).status).toBe(404)

    await expect.poll(() => readFileSync(join(folder, 'audit.log'), 'utf8')).toContain('"denied"')
    expect(readFileSync(join(folder, 'audit.log'), 'utf8')).toContain('b_who_am_i')
    expect(readFileSync(join(folder, 'audit.log'), 'utf8')).toContain('"mine"')
  })

  it('judges tools by their backend and their name there', async () => {
    await using a = await startFixture({ only: ['greet', 'add_numbers'] })
    await using b = await startFixture({ only: ['greet'] })
    const policies = [
      'permit(principal, action == Action::"call_tool", resource) when { resource.backend == "a" };',
      'forbid(principal, action == Action::"call_tool", resource) when { resource.originalName == "add_numbers" };',
    ]
    await using vmcp = await startTestVmcp({
      backends: { a: a.url, b: b.url },
      config: { incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies } }, aggregation: { conflictResolution: 'prefix' } },
    })
    await using client = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), 'modern')
    expect((await client.client.listTools()).tools.map(({ name }) => name)).toEqual(['a_greet'])
    expect(await client.text('a_greet', { name: 'Ada' })).toContain('Ada')
    await expect(client.text('b_greet', { name: 'Ada' })).rejects.toThrow()
    await expect(client.text('a_add_numbers', { a: 1, b: 2 })).rejects.toThrow()
  })

  it('judges calls by the hints of tools as it judges lists', async () => {
    await using fixture = await startFixture({ only: ['add_numbers', 'greet'] })
    const policies = ['permit(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint };']
    const incomingAuth = { type: 'anonymous', authz: { type: 'cedar', policies } }
    const composed = (name: string, tool: string) => ({ name, description: 'Calls one tool.', steps: [{ id: 'only', tool }] })
    const compositeTools = [composed('sum', 'a.add_numbers'), composed('hello', 'a.greet')]
    await using vmcp = await startTestVmcp({ backends: { a: fixture.url }, config: { incomingAuth, compositeTools } })
    for (const mode of ['legacy', 'modern'] as const) {
      await using sdk = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), mode)
      expect((await sdk.client.listTools()).tools.map(({ name }) => name)).toEqual(['add_numbers', 'sum'])
      expect(await sdk.text('add_numbers', { a: 1, b: 2 })).toBe('3')
      expect(await sdk.text('sum')).toBe('0')
      for (const name of ['greet', 'hello']) await expect(sdk.text(name)).rejects.toThrow()
    }
  })
})
