import { createServer, request as httpRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { reject } from '@thv/mcp/wire-errors'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, describe, expect, it } from 'vitest'
import { startTestRunner, type TestRunner, type TestRunnerOptions } from '../../../../apps/proxyrunner/src/testing/test-runner.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function start(options: Partial<TestRunnerOptions> = {}): Promise<{ runner: TestRunner; fixture: Fixture }> {
  const sse = options.transport === 'sse'
  const fixture = await startFixture(sse ? { transport: 'sse' } : {})
  ends.push(() => fixture.stop())
  const runner = await startTestRunner({ backend: fixture.url, ...options })
  ends.push(async () => await runner[Symbol.asyncDispose]())
  await runner.probed()
  return { runner, fixture }
}

/** Replaces a prefix of the path by `/`, as the URLRewrite filter of an HTTPRoute does. */
async function startRewriting(prefix: string, base: string): Promise<{ url: string; paths: Set<string> }> {
  const paths = new Set<string>()
  const server: Server = createServer((incoming, answer) => {
    const path = (incoming.url ?? '').replace(new RegExp(`^${prefix}`), '') || '/'
    const target = new URL(path.startsWith('/') ? path : `/${path}`, base)
    paths.add(target.pathname)
    const headers = { ...incoming.headers, host: target.host }
    const outgoing = httpRequest(target, { method: incoming.method ?? 'GET', headers }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(answer)
    })
    outgoing.on('error', () => answer.destroy())
    answer.on('close', () => outgoing.destroy())
    incoming.pipe(outgoing)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`, paths }
}

async function tools(transport: SSEClientTransport | StreamableHTTPClientTransport): Promise<string[]> {
  const client = new Client({ name: 'test', version: '1' })
  // The SDK types its transports without exact optional properties.
  await client.connect(transport as Parameters<Client['connect']>[0])
  const listed = await client.listTools()
  await client.close()
  return listed.tools.map(({ name }) => name)
}

describe('the MCP endpoint at /', () => {
  it('serves streamable HTTP behind a gateway that cuts off the whole path', async () => {
    const { runner } = await start()
    const { url, paths } = await startRewriting('/servers/x', runner.base)
    expect(await tools(new StreamableHTTPClientTransport(new URL(url)))).toContain('echo')
    expect([...paths]).toEqual(['/'])
  })

  it('serves HTTP+SSE behind it: messages go to the URL that the client used', async () => {
    const { runner } = await start({ transport: 'sse' })
    const { url, paths } = await startRewriting('/servers/x', runner.base)
    expect(await tools(new SSEClientTransport(new URL(url)))).toContain('echo')
    expect([...paths]).toEqual(['/'])
  })

  it('goes through the whole pipeline', async () => {
    const seen: string[] = []
    const open = ({ route }: { route: string }) => {
      seen.push(route)
      return reject('forbidden_host')
    }
    const { runner, fixture } = await start({ middleware: [{ name: 'guard', open }] })
    const before = JSON.stringify(fixture.stats.http)
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const answer = await fetch(`${runner.base}/`, { method: 'POST', headers, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' })
    expect([answer.status, seen]).toEqual([403, ['/mcp']])
    expect(JSON.stringify(fixture.stats.http)).toBe(before)
  })

  it.each([
    ['a health check of a load balancer', 'GET', {}, 404],
    ['a stream of streamable HTTP without a session', 'GET', { accept: 'text/event-stream' }, 400],
    ['another method', 'PUT', {}, 405],
  ])('of a streamable server answers %s', async (_, method, headers, status) => {
    const { runner } = await start()
    expect((await fetch(`${runner.base}/`, { method, headers })).status).toBe(status)
  })

  it.each(['streamable-http', 'sse'] as const)('answers preflights of allowed origins (%s)', async (transport) => {
    const origin = 'https://app.example.com'
    const { runner } = await start({ transport, server: { allowedOrigins: [origin] } })
    const preflight = (from: string) =>
      fetch(`${runner.base}/`, { method: 'OPTIONS', headers: { origin: from, 'access-control-request-method': 'POST' } })
    const answer = await preflight(origin)
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([204, origin])
    expect((await preflight('https://evil.example.com')).status).toBe(403)
  })

  it('of an SSE server answers 405 to a POST without session, so that clients open a stream', async () => {
    const { runner } = await start({ transport: 'sse' })
    const answer = await fetch(`${runner.base}/`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET'])
    expect((await fetch(`${runner.base}/`)).status).toBe(404)
  })
})
