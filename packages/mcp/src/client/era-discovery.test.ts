import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import { type Backend, type BackendHandler, startBackend } from '@thv/http/testing/backend'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../json-rpc.ts'
import { BackendEras } from './http/backend-eras.ts'
import { createStreamableHttpClient, type StreamableHttpOptions } from './http/streamable-http-client.ts'
import { CLIENT_INFO } from './testing/fixture-client.ts'

let outbound: Outbound
beforeAll(() => {
  outbound = createOutbound()
})
afterAll(() => outbound.close())

type Answer = readonly [status: number, body: JsonObject | string]

const MODERN_RESULT = { result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } }
const LEGACY_HELLO: Answer = [
  200,
  { result: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'old', version: '1' } } },
]
const versions = (...supported: string[]) => ({ error: { code: -32022, message: 'no', data: { supported } } })
const error = (code: number) => ({ error: { code, message: 'no' } })

describe('the era of a server by its answer to the probe', () => {
  it.each<[string, Answer, 'modern' | 'legacy']>([
    ['a result that lists our version', [200, MODERN_RESULT], 'modern'],
    ['a result that lists only older ones', [200, { result: { supportedVersions: ['2025-11-25'] } }], 'legacy'],
    ['a result of another kind', [200, { result: {} }], 'legacy'],
    ['-32022 that lists only older ones', [400, versions('2025-11-25')], 'legacy'],
    ['-32022 without a list', [400, error(-32022)], 'legacy'],
    ['-32020, our own fault', [400, error(-32020)], 'modern'],
    ['-32601 in-band', [200, error(-32601)], 'legacy'],
    ['-32000 with 400', [400, error(-32000)], 'legacy'],
    ['404 with text', [404, 'not here'], 'legacy'],
    ['405', [405, ''], 'legacy'],
    ['501', [501, ''], 'legacy'],
  ])('%s', async (_title, answer, era) => {
    await using peers = await server({ 'server/discover': [answer, answer] })
    await peers.client.connect()
    expect(peers.client.era).toBe(era)
    expect(peers.asked).toEqual(era === 'modern' ? ['server/discover'] : ['server/discover', 'initialize', 'notifications/initialized'])
  })

  it.each<[string, Answer, JsonObject]>([
    ['401', [401, ''], { code: 'mcp_auth_required', status: 401, challenge: 'Bearer' }],
    ['403', [403, ''], { code: 'mcp_auth_required', status: 403 }],
    ['429', [429, ''], { code: 'mcp_http_status', status: 429, retryAfterMs: 3_000 }],
    ['503', [503, ''], { code: 'mcp_http_status', status: 503 }],
    ['302', [302, ''], { code: 'mcp_http_status', status: 302 }],
    ['no version in common', [200, { result: { supportedVersions: ['2031-01-01'] } }], { code: 'mcp_no_common_version' }],
  ])('%s is no verdict: the next attempt asks again', async (_title, answer, expected) => {
    await using peers = await server({ 'server/discover': [answer, [200, MODERN_RESULT]] })
    await expect(peers.client.connect()).rejects.toMatchObject(expected)
    if (expected['code'] === 'mcp_no_common_version') return // that one is kept for a while
    await peers.client.connect()
    expect(peers.client.era).toBe('modern')
  })

  it('-32022 that lists our version: said again, once', async () => {
    await using peers = await server({
      'server/discover': [
        [400, versions('2026-07-28')],
        [200, MODERN_RESULT],
      ],
    })
    await peers.client.connect()
    expect(peers.asked).toEqual(['server/discover', 'server/discover'])
    await using stubborn = await server({
      'server/discover': [
        [400, versions('2026-07-28')],
        [400, versions('2026-07-28')],
      ],
    })
    await expect(stubborn.client.connect()).rejects.toMatchObject({ code: 'mcp_no_common_version' })
  })

  it('silence is no verdict either', async () => {
    await using backend = await startBackend(() => {})
    await using client = clientOf(backend.url, { limits: { probeTimeoutMs: 50 } })
    await expect(client.connect()).rejects.toMatchObject({ code: 'timeout', message: expect.stringContaining('server/discover') })
    await using gone = clientOf('http://127.0.0.1:1')
    await expect(gone.connect()).rejects.toMatchObject({ code: 'backend_refused' })
  })
})

describe('a pinned era', () => {
  it('legacy is not probed', async () => {
    await using fixture = await startFixture()
    await using client = clientOf(fixture.url, { era: 'legacy' })
    await client.connect()
    expect(client.era).toBe('legacy')
    expect(fixture.stats.count('server/discover')).toBe(0)
  })

  it('modern stands even where the server knows no discovery; who it is shows in its results', async () => {
    const result = { resultType: 'complete', _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'shy', version: '1' } } }
    await using peers = await server({ 'server/discover': [[404, error(-32601)]], 'tools/call': [[200, { result }]] }, { era: 'modern' })
    expect(await peers.client.request('tools/call', { name: 'x' })).toEqual(result)
    expect(peers.client.serverInfo).toEqual({ name: 'shy', version: '1' })
    expect(peers.client.capabilities).toEqual({})
  })
})

describe('the way down to HTTP+SSE', () => {
  it('is found where neither probe nor handshake are known', async () => {
    await using fixture = await startFixture({ transport: 'sse' })
    await using client = clientOf(fixture.url)
    await client.connect()
    expect(client.transport).toBe('sse')
    expect(await client.list('prompts/list')).not.toEqual([])
  })

  it('reports the first rejection of a server that does not speak MCP', async () => {
    await using backend = await startBackend((_request, response) => void response.writeHead(404).end())
    await using client = clientOf(backend.url)
    await expect(client.connect()).rejects.toMatchObject({ code: 'mcp_http_status', status: 404 })
    expect(backend.requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'GET'])
  })
})

describe('the era cache of a process', () => {
  it('is shared: one probe for many clients, and the discovery is still done by each', async () => {
    await using fixture = await startFixture({ era: 'legacy' })
    const eras = new BackendEras()
    const clients = Array.from({ length: 5 }, () => clientOf(fixture.url, { eras }))
    await Promise.all(clients.map((client) => client.connect()))
    const probes = () => fixture.stats.http['POST 400'] ?? 0
    expect(clients.map(({ era }) => era)).toEqual(Array(5).fill('legacy'))
    expect(probes()).toBe(1)
    for (const client of clients) await client.close()
    eras.close()
  })

  it('is corrected when a server becomes younger or older, for every client', async () => {
    await using fixture = await startFixture({ era: 'modern' })
    const changes: string[] = []
    const eras = new BackendEras({ onChange: (_key, { verdict }) => changes.push(verdict) })
    await using one = clientOf(fixture.url, { eras })
    await using two = clientOf(fixture.url, { eras })
    await one.connect()
    await two.connect()
    fixture.admin.setEra('legacy')
    expect(await one.list('tools/list')).not.toEqual([])
    expect(await two.list('tools/list')).not.toEqual([])
    expect([one.era, two.era]).toEqual(['legacy', 'legacy'])
    fixture.admin.setEra('modern')
    fixture.admin.forgetSessions()
    expect(await one.list('tools/list')).not.toEqual([])
    expect(await two.list('tools/list')).not.toEqual([])
    expect([one.era, two.era]).toEqual(['modern', 'modern'])
    expect(changes).toEqual(['modern', 'legacy', 'modern'])
    eras.close()
  })

  it('does not hold for a caller with better credentials than the one who asked first', async () => {
    await using backend = await startBackend(async ({ headers, body }, response) => {
      await new Promise((resolve) => setTimeout(resolve, 30))
      const { id } = JSON.parse(body) as JsonObject
      if (headers.authorization === undefined) response.writeHead(401).end()
      else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...MODERN_RESULT }))
    })
    const eras = new BackendEras()
    await using poor = clientOf(backend.url, { eras })
    await using rich = clientOf(backend.url, { eras, headers: { authorization: 'Bearer x' } })
    const [first, second] = await Promise.allSettled([poor.connect(), rich.connect()])
    expect(first).toMatchObject({ status: 'rejected', reason: { code: 'mcp_auth_required' } })
    expect(second.status).toBe('fulfilled')
    eras.close()
  })
})

/** A server that answers by method, from a list that its last entry ends. */
async function server(answers: Record<string, readonly Answer[]>, options: Partial<StreamableHttpOptions> = {}) {
  const asked: string[] = []
  const handler: BackendHandler = ({ body }, response) => {
    const { id, method } = JSON.parse(body) as { id: unknown; method: string }
    const before = asked.filter((each) => each === method).length
    asked.push(method)
    if (method.startsWith('notifications/')) return void response.writeHead(202).end()
    const script = answers[method] ?? [LEGACY_HELLO]
    const [status, answer] = script[Math.min(before, script.length - 1)] ?? [500, '']
    const text = typeof answer === 'string' ? answer : JSON.stringify({ jsonrpc: '2.0', id, ...answer })
    response.writeHead(status, { 'content-type': 'application/json', 'www-authenticate': 'Bearer', 'retry-after': '3' }).end(text)
  }
  const backend: Backend = await startBackend(handler)
  const client = clientOf(backend.url, options)
  const dispose = async () => {
    await client.close()
    await backend[Symbol.asyncDispose]()
  }
  return { client, asked, [Symbol.asyncDispose]: dispose }
}

function clientOf(url: string, options: Partial<StreamableHttpOptions> = {}) {
  return createStreamableHttpClient({ url, outbound, clientInfo: CLIENT_INFO, ...options })
}
