import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { callModern } from '../testing/call-modern.ts'
import { startTestVmcp, type TestVmcp } from '../testing/test-vmcp.ts'

const STAMP = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
const CAPABILITIES = { tools: {} }

interface Seen {
  readonly text: string
  readonly headers: IncomingMessage['headers']
}

interface Raw {
  readonly vmcp: TestVmcp
  readonly seen: Seen[]
}

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

/** A virtual server before a modern backend that answers calls with the bytes of the test. `$ID` is the id of the call. */
async function before(answer: (response: ServerResponse, seen: Seen, times: number) => void, config: object = {}): Promise<Raw> {
  const seen: Seen[] = []
  const backend = createServer(async (request, response) => {
    const body = await text(request)
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method } = JSON.parse(body) as { id?: number; method: string }
    const result = RESULTS[method]
    if (result !== undefined)
      return void response.setHeader('content-type', 'application/json').end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    const call = { text: body, headers: request.headers }
    seen.push(call)
    answer(response, call, seen.length)
  })
  backend.listen(0, '127.0.0.1')
  await once(backend, 'listening')
  open.push({
    async [Symbol.asyncDispose]() {
      backend.closeAllConnections()
      backend.close()
    },
  })
  const { port } = backend.address() as AddressInfo
  const aggregation = { conflictResolution: 'prefix' }
  const vmcp = await startTestVmcp({ backends: { one: `http://127.0.0.1:${port}/mcp` }, config: { aggregation, ...config } })
  open.push(vmcp)
  return { vmcp, seen }
}

const RESULTS: Readonly<Record<string, object>> = {
  'server/discover': { ...STAMP, supportedVersions: ['2026-07-28'], capabilities: CAPABILITIES, serverInfo: { name: 'raw', version: '1' } },
  'tools/list': { ...STAMP, tools: [{ name: 'raw', inputSchema: { type: 'object' } }] },
}

const idOf = ({ text: body }: Seen) => JSON.stringify((JSON.parse(body) as { id: unknown }).id)

function json(response: ServerResponse, seen: Seen, body: string, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body.replace('$ID', idOf(seen)))
}

async function raw({ vmcp }: Raw, args = '{}'): Promise<string> {
  const meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
  const response = await fetch(vmcp.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'one_raw' },
    },
    body: `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"one_raw","arguments":${args},${meta}}}`,
  })
  return await response.text()
}

describe('a call of a modern client to a modern backend', () => {
  it('passes as it is written, both ways, but for the names of tool and server', async () => {
    const world = await before((response, seen) =>
      json(
        response,
        seen,
        '{"jsonrpc":"2.0","id":$ID,"result":{"n":12345678901234567890,"content":[],"e":1E2,"resultType":"complete","_meta":{"a":1.0}}}',
      ),
    )
    const answer = await raw(world, '{"big":98765432109876543210,"one":1.0}')
    expect(answer).toBe(
      '{"jsonrpc":"2.0","id":"x","result":{"n":12345678901234567890,"content":[],"e":1E2,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"joined","version":"0.0.1"},"a":1.0}}}',
    )
    expect(world.seen[0]?.text).toContain('"name":"raw","arguments":{"big":98765432109876543210,"one":1.0}')
    expect(world.seen[0]?.headers).toMatchObject({ 'mcp-name': 'raw', 'mcp-method': 'tools/call', 'mcp-protocol-version': '2026-07-28' })
  })

  it('declares to the backend what the virtual server can relay, and nothing else', async () => {
    const world = await before((response, seen) => json(response, seen, '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'))
    const { result } = await callModern(world.vmcp.url, 'one_raw', { capabilities: { sampling: {}, extensions: { tasks: {} } } })
    expect(result).toMatchObject({ resultType: 'complete', content: [] })
    expect(world.seen[0]?.text).toContain('"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}')
  })

  it('has its answer as soon as that is there, also from a stream that never ends', async () => {
    const world = await before((response, seen) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"jsonrpc":"2.0","method":"notifications/nothing"}\n\n')
      response.write(`data: {"jsonrpc":"2.0","id":${idOf(seen)},"result":{"content":[{"type":"text","text":"streamed"}]}}\n\n`)
    })
    expect(await raw(world)).toContain('streamed')
  })

  it.each<[string, string, number, object]>([
    ['an error', '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32050,"message":"no"}}', 200, { code: -32050, message: 'no' }],
    ['a refusal', '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"bad"}}', 400, { code: -32602, message: 'bad' }],
    ['another id', '{"jsonrpc":"2.0","id":4711,"result":{}}', 200, { data: { backend: 'one', mayHaveRun: true } }],
    ['a second id', '{"jsonrpc":"2.0","id":$ID,"result":{},"id":4711}', 200, { data: { backend: 'one', mayHaveRun: true } }],
    ['no object', '{"jsonrpc":"2.0","id":$ID,"result":[1]}', 200, { data: { backend: 'one', mayHaveRun: true } }],
    ['an unknown type', '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"odd"}}', 200, { data: { backend: 'one', mayHaveRun: true } }],
    [
      'a question that the client cannot be asked',
      '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}}',
      200,
      { code: -32603, data: { reason: 'backend_protocol_error', mayHaveRun: true } },
    ],
    ['no message', 'Hello', 200, { data: { backend: 'one', mayHaveRun: true } }],
    ['a failure', 'oops', 500, { data: { backend: 'one', backendStatus: 500 } }],
    ['a demand for credentials', '', 401, { data: { backend: 'one' } }],
  ])('that is answered with %s is answered with an error, and sent once', async (_, body, status, expected) => {
    const world = await before((response, seen) => json(response, seen, body, status))
    const { error } = JSON.parse(await raw(world)) as { error: unknown }
    expect(error).toMatchObject(expected)
    expect(JSON.stringify(error)).not.toContain('127.0.0.1')
    expect(world.seen).toHaveLength(1)
  })

  it.each(['input_required', 'input\\u005frequired'])('that is answered with %s gives the client a sealed state', async (type) => {
    const result = `{"resultType":"${type}","inputRequests":{},"requestState":"inner"}`
    const world = await before((response, seen) => json(response, seen, `{"jsonrpc":"2.0","id":$ID,"result":${result}}`))
    const answer = JSON.parse(await raw(world)) as { result: Record<string, unknown> }
    expect(answer.result).toMatchObject({ resultType: 'input_required', requestState: expect.stringMatching(/^vmcp1\./) })
  })

  it('that the backend refuses before it does anything is sent again by a client that knows the cure', async () => {
    const again = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"v","data":{"supported":["2026-07-28"]}}}'
    const world = await before((response, seen, times) =>
      times === 1
        ? json(response, seen, again, 400)
        : json(response, seen, '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"cured":true}}'),
    )
    expect(await raw(world)).toContain('"cured":true')
    expect(world.seen).toHaveLength(2)
  })

  it('is read where results have a limit', async () => {
    const world = await before(
      (response, seen) =>
        json(response, seen, `{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"${'x'.repeat(5_000)}"}]}}`),
      { operational: { toolResults: { maxBytes: 1_024 } } },
    )
    expect(await raw(world)).toContain('the limit is 1024')
  })
})
