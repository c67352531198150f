import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { OutboundError } from '@thv/http/outbound/outbound-error'
import { type BackendHandler, startBackend } from '@thv/http/testing/backend'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { mayRepeat } from './route/retry-policy.ts'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

const connect = ({ url }: TestVmcp, mode: 'legacy' | 'modern') => connectSdk(new StreamableHTTPClientTransport(new URL(url)), mode)
const ERAS = ['legacy', 'modern'] as const

interface Served {
  readonly resources?: readonly string[]
  /** With annotations. */
  readonly tools?: Readonly<Record<string, object>>
  /** Status of the answer to a call, for each one. */
  readonly callStatus?: () => number
}

/** A legacy server without sessions. */
function serve({ resources = [], tools = {}, callStatus = () => 200 }: Served): BackendHandler {
  return ({ body }, response) => {
    if (body === '') return void response.writeHead(405).end() // GET: it has no stream
    const { id, method, params = {} } = JSON.parse(body) as { id?: number; method: string; params?: { uri?: string; name?: string } }
    if (id === undefined) return void response.writeHead(202).end()
    if (method === 'tools/call') {
      const status = callStatus()
      if (status !== 200) return void response.writeHead(status).end()
    }
    const result = {
      initialize: {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {}, resources: {} },
        serverInfo: { name: 's', version: '1' },
      },
      'tools/list': { tools: Object.entries(tools).map(([name, annotations]) => ({ name, annotations, inputSchema: { type: 'object' } })) },
      'tools/call': { content: [{ type: 'text', text: `done ${params.name}` }] },
      'resources/list': { resources: resources.map((uri) => ({ uri, name: uri })) },
      'resources/read': { contents: [{ uri: params.uri, text: `content of ${params.uri}` }] },
    }[method]
    const answer = result === undefined ? { error: { code: -32601, message: 'no' } } : { result }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  }
}

describe('servers that are joined', () => {
  it.each(ERAS)('[002-124] have the resources of all of them listed and read: %s client', async (mode) => {
    await using a = await startBackend(serve({ resources: ['notes://one', 'notes://two'] }))
    await using b = await startBackend(serve({ resources: ['pages://one'] }))
    await using vmcp = await startTestVmcp({ backends: { a: `${a.url}/mcp`, b: `${b.url}/mcp` } })
    await using sdk = await connect(vmcp, mode)
    const uris = (await sdk.client.listResources()).resources.map(({ uri }) => uri)
    expect(uris).toEqual(['notes://one', 'notes://two', 'pages://one'])
    for (const uri of uris) expect(await sdk.client.readResource({ uri })).toMatchObject({ contents: [{ uri, text: `content of ${uri}` }] })
  })

  it('[002-149] have a refused call sent again as often as configured where it is idempotent, and only then', async () => {
    let refusals = 0
    let calls = 0
    const callStatus = () => {
      calls++
      return refusals-- > 0 ? 503 : 200
    }
    const tools = { look: { readOnlyHint: true }, order: { readOnlyHint: false } }
    await using backend = await startBackend(serve({ tools, callStatus }))
    const operational = { retry: { attempts: 3, backoff: '1ms', on: ['connect', 'unavailable'] } }
    await using vmcp = await startTestVmcp({ backends: { a: `${backend.url}/mcp` }, config: { operational } })
    await using sdk = await connect(vmcp, 'legacy')
    const call = async (name: string, refused: number) => {
      refusals = refused
      calls = 0
      const text = await sdk.text(name).catch(() => 'failed')
      return { text, calls }
    }
    expect(await call('look', 2)).toEqual({ text: 'done look', calls: 3 })
    expect(await call('look', 3)).toEqual({ text: 'failed', calls: 3 })
    expect(await call('order', 1)).toEqual({ text: 'failed', calls: 1 })
  })

  it.each([
    { sent: false, on: ['connect'], expected: true },
    { sent: true, on: ['connect'], expected: false },
    { sent: false, on: ['unavailable'], expected: false },
  ])('[002-149] have a call that was sent ($sent) repeated on $on: $expected', ({ sent, on, expected }) => {
    const error = new OutboundError('backend_refused', 'refused', { sent, answered: false })
    for (const isIdempotent of [true, false])
      expect(mayRepeat(error, { attempts: 3, backoffMs: 1, on: new Set(on) }, isIdempotent)).toBe(expected)
  })

  it.each(ERAS)('[002-169] give a name to the winner that is written for it: %s client', async (mode) => {
    await using a = await startFixture({ name: 'server-a', only: ['who_am_i', 'echo'] })
    await using b = await startFixture({ name: 'server-b', only: ['who_am_i', 'echo'] })
    const winners = { who_am_i: 'b', echo: 'a' }
    const aggregation = { conflictResolution: 'manual', conflictResolutionConfig: { winners } }
    await using vmcp = await startTestVmcp({ backends: { a: a.url, b: b.url }, config: { aggregation } })
    await using sdk = await connect(vmcp, mode)
    expect((await sdk.client.listTools()).tools.map(({ name }) => name)).toEqual(['echo', 'who_am_i'])
    expect(await sdk.json('who_am_i')).toMatchObject({ name: 'server-b' })
    await sdk.text('echo', { text: 'x' })
    expect([a, b].map(({ stats }) => stats.count('tools/call'))).toEqual([1, 1])
  })

  it('[002-181] look like one tool with one result to the client of a composite tool', async () => {
    await using a = await startFixture({ only: ['greet'] })
    await using b = await startFixture({ only: ['add_numbers'] })
    const welcome = {
      name: 'welcome',
      description: 'Welcomes a guest.',
      parameters: { type: 'object', properties: { guest: { type: 'string' } }, required: ['guest'] },
      steps: [
        { id: 'salutation', tool: 'kitchen.greet', arguments: { name: '{{.params.guest}}' } },
        { id: 'counting', tool: 'cellar.add_numbers', arguments: { a: 1, b: 2 }, dependsOn: ['salutation'] },
      ],
    }
    const config = {
      compositeTools: [welcome],
      aggregation: { conflictResolution: 'prefixOnConflict', excludeAllTools: true },
    }
    for (const mode of ERAS) {
      await using vmcp = await startTestVmcp({ backends: { kitchen: a.url, cellar: b.url }, config })
      await using sdk = await connect(vmcp, mode)
      const listed = await sdk.client.listTools()
      expect(listed.tools.map(({ name }) => name)).toEqual(['welcome'])
      const result = await sdk.client.callTool({ name: 'welcome', arguments: { guest: 'Ada' } })
      expect(result.isError ?? false).toBe(false)
      for (const hidden of ['kitchen', 'cellar', 'salutation', 'counting', 'greet', 'add_numbers'])
        expect(JSON.stringify([listed, result])).not.toContain(hidden)
      expect([a, b].map(({ stats }) => stats.count('tools/call'))).toEqual(mode === 'legacy' ? [1, 1] : [2, 2])
    }
  })
})
