import { ThvError } from '@thv/kernel/errors'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type PlatformToolsServer, serveTools } from './platform-tools-server.ts'

const server = (name: string, extra: object) => ({ metadata: { name, namespace: 'default' }, ...extra })
const OBJECTS: Readonly<Record<string, object[]>> = {
  mcpservers: [server('one', { status: { phase: 'Ready', url: 'http://127.0.0.1:1/mcp' } })],
  mcpserverentries: [server('far', { spec: { remoteUrl: 'https://mcp.example.com/mcp' } })],
}

describe('the tools of the platform', () => {
  let running: PlatformToolsServer
  const asked: unknown[] = []

  beforeAll(async () => {
    running = await serveTools({
      port: 0,
      peerEnv: {},
      log: new CollectingLog() as never,
      deps: {
        client: { listAll: async ({ plural }: { plural: string }) => ({ items: OBJECTS[plural] ?? [] }) } as never,
        search: async (query, limit) => {
          asked.push([query, limit])
          if (query === 'broken') throw new ThvError('source_failed', 'the registry does not answer')
          return [{ name: 'io.example/weather', version: '1.0.0', description: 'Weather.' }]
        },
      },
    })
  })
  afterAll(async () => await running?.stop())

  async function post(message: object, headers: Record<string, string> = {}) {
    const answer = await fetch(running.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    })
    const text = await answer.text()
    return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) }
  }
  const legacy = async (method: string, params: object = {}) => (await post({ id: 1, method, params })).body

  it('shake hands with clients of the older revisions', async () => {
    const { result } = await legacy('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'c', version: '1' },
    })
    expect(result).toMatchObject({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'toolhive-platform' } })
    expect(await post({ method: 'notifications/initialized' })).toMatchObject({ status: 202 })
    expect((await legacy('ping')).result).toEqual({})
    expect((await legacy('resources/list')).error).toMatchObject({ code: -32601 })
    expect((await fetch(running.url, { headers: { accept: 'text/event-stream' } })).status).toBe(405)
  })

  it('answer clients of the newest revision without a handshake', async () => {
    const modern = async (method: string, params: object = {}, name?: string) =>
      (
        await post(
          {
            id: 1,
            method,
            params: {
              ...params,
              _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} },
            },
          },
          { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...(name !== undefined && { 'mcp-name': name }) },
        )
      ).body
    expect((await modern('server/discover')).result.supportedVersions).toContain('2026-07-28')
    const { result } = await modern('tools/list')
    expect(result).toMatchObject({ resultType: 'complete', cacheScope: 'public' })
    expect(result.tools.map(({ name }: { name: string }) => name)).toEqual(['list_servers', 'search_registry'])
    expect((await modern('tools/call', { name: 'list_servers' }, 'list_servers')).result.structuredContent.servers).toHaveLength(2)
  })

  it('list every kind of server, with its address', async () => {
    const { structuredContent, content } = (await legacy('tools/call', { name: 'list_servers' })).result
    expect(structuredContent).toEqual({
      servers: [
        { kind: 'MCPServer', namespace: 'default', name: 'one', phase: 'Ready', url: 'http://127.0.0.1:1/mcp' },
        { kind: 'MCPServerEntry', namespace: 'default', name: 'far', url: 'https://mcp.example.com/mcp' },
      ],
    })
    expect(JSON.parse(content[0].text)).toEqual(structuredContent)
  })

  it('search the registry', async () => {
    const call = (args: object) => legacy('tools/call', { name: 'search_registry', arguments: args })
    expect((await call({ query: 'weather', limit: 3 })).result.structuredContent.servers).toEqual([
      { name: 'io.example/weather', version: '1.0.0', description: 'Weather.' },
    ])
    expect(asked.at(-1)).toEqual(['weather', 3])
    for (const bad of [{}, { query: ' ' }, { query: 'x'.repeat(201) }, { query: 'x', limit: 0 }, { query: 'x', limit: 1e9 }, { query: 7 }])
      expect((await call(bad)).result).toMatchObject({ isError: true })
    expect((await call({ query: 'broken' })).result).toEqual({
      isError: true,
      content: [{ type: 'text', text: 'the registry does not answer' }],
    })
    expect((await legacy('tools/call', { name: 'none' })).error).toMatchObject({ code: -32602 })
  })

  it('refuse a request for another host', async () => {
    const { hostname, port } = new URL(running.url)
    const { request } = await import('node:http')
    const status = await new Promise((resolve, reject) => {
      const call = request({ host: hostname, port, path: '/mcp', method: 'POST', headers: { host: 'evil.example.com' } }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      call.on('error', reject).end('{}')
    })
    expect(status).toBe(403)
  })
})
