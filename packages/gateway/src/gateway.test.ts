import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { TestClock } from '@thv/kernel/clock'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startTestRunner, type TestRunner, type TestRunnerOptions } from '../../../apps/proxyrunner/src/testing/test-runner.ts'
import { WireClient } from './testing/wire-client.ts'

let fixture: Fixture
const runners: TestRunner[] = []

beforeEach(async () => {
  fixture = await startFixture()
})

afterEach(async () => {
  for (const runner of runners.splice(0)) await runner[Symbol.asyncDispose]()
  await fixture.stop()
})

async function start(options: Partial<TestRunnerOptions> = {}): Promise<TestRunner & { client: WireClient }> {
  const runner = await startTestRunner({ backend: fixture.url, ...options })
  runners.push(runner)
  await runner.probed()
  return { ...runner, client: new WireClient(runner.url) }
}

describe('routes', () => {
  it.each([
    ['/', 404],
    ['/mcp/x', 404],
    ['/sse', 404],
    ['/messages', 404],
    ['/metrics', 404],
    ['/health', 200],
    ['/ready', 200],
    ['/.well-known/oauth-protected-resource', 404],
    ['/.well-known/oauth-authorization-server', 404],
    ['/admin/stats', 404],
  ])('GET %s is %i and never gets to the backend', async (path, status) => {
    const { base } = await start()
    const before = JSON.stringify(fixture.stats.http)
    expect((await fetch(base + path)).status).toBe(status)
    expect(JSON.stringify(fixture.stats.http)).toBe(before)
  })

  it.each(['PUT', 'PATCH', 'OPTIONS', 'HEAD'])('%s to the endpoint is 405 and says what is allowed', async (method) => {
    const { url } = await start()
    const response = await fetch(url, { method })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('GET, POST, DELETE')
  })

  it('GET and DELETE of a modern client, and of any client where the backend takes only POST, are 405', async () => {
    const { url, client } = await start()
    const modern = await fetch(url, { headers: { 'mcp-protocol-version': '2026-07-28' } })
    expect([modern.status, modern.headers.get('allow')]).toEqual([405, 'POST'])
    const stateless = await start({ server: { stateless: true } })
    expect((await stateless.client.get()).status).toBe(405)
    expect((await stateless.client.delete()).status).toBe(405)
    expect((await client.modernCall('echo')).status).toBe(200)
  })

  it('serves metrics on this port only when told to', async () => {
    const { base, client } = await start({ server: { metricsHere: true } })
    await client.modernCall('echo')
    await client.modern('unknown/method')
    const text = await (await fetch(`${base}/metrics`)).text()
    expect(text).toContain(
      'toolhive_mcp_requests_total{method="POST",status_code="200",status="success",mcp_method="tools/call",server="test"',
    )
    expect(text).toContain('mcp_method="other"')
    expect(text).not.toContain('unknown/method')
  })

  it('describes the protected resource, for pages from anywhere', async () => {
    const resource = { url: 'https://mcp.example.com', authorizationServers: ['https://idp.example.com'], scopes: [] }
    const { base } = await start({ server: { resource } })
    for (const path of ['', '/mcp']) {
      const response = await fetch(`${base}/.well-known/oauth-protected-resource${path}`, { headers: { origin: 'https://evil.example' } })
      expect(response.headers.get('access-control-allow-origin')).toBe('https://evil.example')
      expect(await response.json()).toEqual({
        resource: 'https://mcp.example.com',
        authorization_servers: ['https://idp.example.com'],
        bearer_methods_supported: ['header'],
        scopes_supported: ['openid'],
      })
    }
    const preflight = await fetch(`${base}/.well-known/oauth-protected-resource`, { method: 'OPTIONS' })
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
    expect((await fetch(`${base}/.well-known/oauth-protected-resourceful`)).status).toBe(404)
    expect((await fetch(`${base}/.well-known/oauth-protected-resource`, { method: 'POST' })).status).toBe(405)
  })
})

describe('Host and Origin', () => {
  function status(url: string, headers: Record<string, string>): Promise<number | undefined> {
    const { hostname, port, pathname } = new URL(url)
    return new Promise((resolve, reject) => {
      const all = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers }
      const request = httpRequest({ hostname, port, path: pathname, method: 'POST', headers: all }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode))
      })
      request.on('error', reject).end('{"jsonrpc":"2.0","method":"notifications/x"}')
    })
  }

  it.each([
    [{ host: 'evil.example.com' }, 403],
    [{ host: 'localhost:1', origin: 'http://evil.example.com' }, 403],
    [{ host: 'localhost', origin: 'null' }, 403],
    [{ host: 'localhost', origin: 'http://a.example, http://b.example' }, 403],
    [{ host: 'localhost:9' }, 400],
    [{ host: '127.0.0.1', origin: 'http://localhost:3000' }, 400],
    [{ host: '[::1]:80' }, 400],
  ])('%j is %i', async (headers: Record<string, string>, expected) => {
    const { url } = await start()
    expect(await status(url, headers)).toBe(expected) // 400: came in, and there the backend wants a session
  })

  it('a foreign Host with the matching Origin is 403 wherever the proxy ends up on a loopback address', async () => {
    // The system turns 127.1 into 127.0.0.1, as a local platform turns 0.0.0.0 into the address of the pod.
    const { url, base } = await start({ server: { host: '127.1' } })
    expect(base).toContain('//127.0.0.1:')
    expect(await status(url, { host: 'evil.example.com', origin: 'http://evil.example.com' })).toBe(403)
    expect(await status(url, { host: 'localhost', origin: 'http://localhost' })).toBe(400)
  })

  it.each([
    ['mcp-test-proxy.team.svc.cluster.local:8080', 400],
    ['mcp-test-proxy.team.svc', 400],
    ['127-0-0-1.team.pod.cluster.local', 400],
    ['mcp.example.com', 400],
    ['127.9.9.9', 400],
    ['mcp-other-proxy.team.svc.cluster.local', 403],
    ['evil.example.com', 403],
  ])('Host %s is %i on a proxy with names of its own', async (host, expected) => {
    const { url } = await start({ server: { serviceHosts: ['mcp-test-proxy.team.svc.cluster.local'], allowedHosts: ['mcp.example.com'] } })
    expect(await status(url, { host })).toBe(expected)
  })

  it('a proxy on the network accepts any Host until the user names some', async () => {
    const open = await start({ server: { host: '0.0.0.0' } })
    expect(await status(open.url, { host: 'any.example.com' })).toBe(400)
    const named = await start({ server: { host: '0.0.0.0', allowedHosts: ['mcp.example.com'] } })
    expect(await status(named.url, { host: 'any.example.com' })).toBe(403)
    expect(await status(named.url, { host: 'mcp.example.com' })).toBe(400)
  })

  it('goes by the list of origins if there is one', async () => {
    const { url } = await start({ server: { allowedOrigins: ['https://app.example.com'] } })
    expect(await status(url, { host: 'localhost', origin: 'https://app.example.com' })).toBe(400)
    expect(await status(url, { host: 'localhost', origin: 'http://localhost' })).toBe(403)
  })
})

describe('bodies', () => {
  it.each([
    ['', 400, -32700],
    ['{', 400, -32700],
    ['"text"', 400, -32600],
    ['[]', 400, -32600],
    [' \u00a0[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600],
    ['{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":true,"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":1,"method":5}', 400, -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping"}', 400, -32600],
    [`{"jsonrpc":"2.0","id":1,"method":"x","params":${'{"a":'.repeat(500)}1${'}'.repeat(500)}}`, 400, -32600],
    ['{"jsonrpc":"2.0","id":1,"result":{}}', 400, -32000],
  ])('%.60s is refused with %i and %i', async (body, status, code) => {
    const { client } = await start()
    const answer = await client.post(body)
    expect(answer).toMatchObject({ status, messages: [{ jsonrpc: '2.0', error: { code } }] })
    expect(answer.messages[0]).not.toHaveProperty('id', null)
  })

  it('that are not UTF-8, truncated, compressed or of another type do not get in', async () => {
    const { url } = await start({ gateway: { maxBodyBytes: 1_000 } })
    const send = async (body: Uint8Array<ArrayBuffer> | string, headers: Record<string, string> = {}) =>
      (await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })).status
    expect(await send(Uint8Array.of(0x7b, 0xff, 0x7d))).toBe(400)
    expect(await send('x'.repeat(1_001))).toBe(413)
    expect(await send('{}', { 'content-encoding': 'gzip' })).toBe(415)
    expect(await send('{}', { 'content-type': 'text/plain' })).toBe(415)
    expect(await send('{}', { 'content-type': 'application/json; charset=latin1' })).toBe(415)
    // This one is good; what is missing is for the backend to say.
    expect(await send('{"jsonrpc":"2.0","method":"notifications/x"}', { 'content-type': 'application/json; charset=utf-8' })).toBe(406)
    expect(fixture.stats.count('notifications/x')).toBe(0)
  })

  it('over the limit are rejected as JSON-RPC', async () => {
    const { client } = await start({ gateway: { maxBodyBytes: 100 } })
    expect(await client.post('x'.repeat(200))).toMatchObject({ status: 413, messages: [{ error: { code: 413 } }] })
  })
})

describe('checks of modern requests', () => {
  const META = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }

  it.each([
    ['no envelope', { id: 1, method: 'tools/list' }, { 'mcp-protocol-version': '2026-07-28' }, 400, -32602],
    ['no version header', { id: 1, method: 'tools/list', params: { _meta: META } }, { 'mcp-method': 'tools/list' }, 400, -32020],
    [
      'a header that differs beats a version that is not served',
      { id: 1, method: 'tools/list', params: { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': 'v999' } } },
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' },
      400,
      -32020,
    ],
    [
      'no Mcp-Name',
      { id: 1, method: 'tools/call', params: { name: 'echo', _meta: META } },
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' },
      400,
      -32020,
    ],
    [
      'a removed method',
      { id: 1, method: 'initialize', params: { _meta: META } },
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'initialize' },
      404,
      -32601,
    ],
    ['an unknown header', { id: 1, method: 'tools/list' }, { 'mcp-protocol-version': '1999-01-01' }, 400, -32022],
  ])('%s', async (_, message, headers: Record<string, string>, status, code) => {
    const { client } = await start()
    const before = fixture.stats.count()
    expect(await client.post({ jsonrpc: '2.0', ...message }, { headers })).toMatchObject({ status, messages: [{ id: 1, error: { code } }] })
    expect(fixture.stats.count()).toBe(before)
  })

  it('lists in -32022 what the backend lists, and only that', async () => {
    const { client, backend } = await start()
    const answer = await client.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, { headers: { 'mcp-protocol-version': '1999-01-01' } })
    expect(answer.messages[0].error.data).toEqual({ requested: '1999-01-01', supported: backend.status.versions })
    expect(backend.status.versions).toContain('2026-07-28')
  })

  it('takes notifications and heeds none', async () => {
    const { client } = await start()
    const before = fixture.stats.count()
    const answer = await client.post(
      { jsonrpc: '2.0', method: 'notifications/cancelled' },
      { headers: { 'mcp-protocol-version': '2026-07-28' } },
    )
    expect([answer.status, answer.text]).toEqual([202, ''])
    expect(fixture.stats.count()).toBe(before)
  })

  it.each([
    ['legacy', ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']],
    ['modern', ['2026-07-28']],
  ] as const)('serves only what is pinned to %s', async (era, supported) => {
    const { client } = await start({ server: { era } })
    const modern = await client.modernCall('echo')
    const legacy = await client.request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    })
    const [good, bad] = era === 'legacy' ? [legacy, modern] : [modern, legacy]
    expect(good.status).toBe(200)
    expect(bad).toMatchObject({ status: 400, messages: [{ error: { code: -32022, data: { supported } } }] })
  })
})

describe('a client that sends more over one connection than may wait there', () => {
  it('is rejected with a code of its own', async () => {
    const { url } = await start()
    const { hostname, port, pathname } = new URL(url)
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'slow', arguments: { ms: 200 } } })
    const head = `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\nContent-Length: ${ping.length}\r\n\r\n`
    const socket = connect(Number(port), hostname)
    socket.write(`${head}${ping}`.repeat(17))
    let answers = ''
    for await (const chunk of socket) answers += chunk
    const refused = answers.slice(answers.lastIndexOf('HTTP/1.1 503'))
    expect(refused).toMatch(/retry-after: 2\r\n/i)
    expect(JSON.parse(refused.slice(refused.indexOf('\r\n\r\n')))).toMatchObject({ error: { code: 5032 } })
  })
})

describe('a drain', () => {
  it('says so first, serves until that can be known, refuses what is new, finishes what is under way, and then stops', async () => {
    const gatewayClock = new TestClock()
    const { base, client, gateway } = await start({ gatewayClock, gateway: { lameDuckMs: 500 } })
    await client.initialize()
    const slow = client.call('slow', { ms: 1_500 })
    await expect.poll(() => fixture.stats.count('tools/call')).toBe(1)
    const drained = gateway.drain(AbortSignal.timeout(15_000))
    const ready = await fetch(`${base}/ready`)
    expect([ready.status, await ready.json()]).toEqual([503, expect.objectContaining({ status: 'not_ready' })])
    expect((await fetch(`${base}/health`)).status).toBe(200)
    const late = await client.call('echo')
    expect([late.status, late.headers.get('connection')]).toEqual([200, 'close'])
    await gatewayClock.advance(500)
    const refused = await client.call('echo')
    expect(refused).toMatchObject({ status: 503, messages: [{ error: { code: 5031 } }] })
    expect(refused.headers.get('retry-after')).toBe('2')
    expect((await slow).messages.at(-1)).toMatchObject({ result: { content: [{ text: 'slept' }] } })
    const leftOpen = async () => {
      await gatewayClock.advance(100)
      return gateway.stats.connections
    }
    await expect.poll(leftOpen).toBe(0)
    await drained
    await expect(fetch(`${base}/health`)).rejects.toThrow()
  })

  it('has a limit', async () => {
    const { client, gateway } = await start()
    const hanging = client.modernCall('hang')
    await expect.poll(() => fixture.stats.count('tools/call')).toBe(1)
    const over = expect(hanging).rejects.toThrow()
    await gateway.drain(AbortSignal.timeout(50))
    await over
  })
})

describe('readiness', () => {
  it('follows the backend, and nothing is killed by it', async () => {
    const { base, backend, client } = await start({ watches: true, limits: { checkIntervalMs: 30, checkTimeoutMs: 500 } })
    await expect.poll(() => backend.status.ready).toBe(true)
    expect(fixture.stats.sessionsCreated).toBe(0)
    const { port } = new URL(fixture.url)
    await fixture.stop()
    await expect.poll(() => backend.status.ready).toBe(false)
    expect(await (await fetch(`${base}/ready`)).json()).toMatchObject({ status: 'not_ready', checks: { backend: { ok: false } } })
    fixture = await startFixture({ port: Number(port), era: 'legacy' })
    await expect.poll(() => backend.status.ready).toBe(true)
    await expect.poll(() => backend.status.eras).toEqual(['legacy'])
    expect((await client.initialize()).status).toBe(200)
    expect(fixture.stats.sessionsCreated).toBe(1)
  })
})
