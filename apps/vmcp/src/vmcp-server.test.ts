import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

const connect = ({ url }: TestVmcp, mode: 'legacy' | 'modern') => connectSdk(new StreamableHTTPClientTransport(new URL(url)), mode)
const ERAS = ['legacy', 'modern'] as const
const COMBINATIONS = ERAS.flatMap((client) => ERAS.map((backend) => ({ client, backend })))

/** Calls that reached the backend. */
const calls = ({ stats }: Fixture) => stats.count('tools/call')

describe('a virtual server', () => {
  it.each(COMBINATIONS)('[002-125] joins two servers: $client client, $backend backends', async ({ client: mode, backend: era }) => {
    await using a = await startFixture({ era, name: 'server-a' })
    await using b = await startFixture({ era, name: 'server-b', only: ['who_am_i', 'echo'] })
    await using vmcp = await startTestVmcp({ backends: { a: a.url, b: b.url } })
    await using sdk = await connect(vmcp, mode)
    const { client } = sdk
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['a_echo', 'a_who_am_i', 'b_echo', 'b_who_am_i', 'test_simple_text']))
    expect(names).toEqual(names.toSorted())
    expect(await sdk.json('a_who_am_i')).toMatchObject({ name: 'server-a' })
    expect(await sdk.json('b_who_am_i')).toMatchObject({ name: 'server-b' })
    expect(await client.readResource({ uri: 'test://template/123/data' })).toMatchObject({ contents: [{ mimeType: 'application/json' }] })
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain('a_test_simple_prompt')
    expect((await client.getPrompt({ name: 'b_test_simple_prompt' })).messages.length).toBeGreaterThan(0)
    expect((await client.listResourceTemplates()).resourceTemplates.length).toBeGreaterThan(0)
    const before = calls(a)
    for (let i = 0; i < 5; i++) await sdk.text('a_echo', { text: String(i) })
    expect(calls(a) - before).toBe(5)
    expect(a.stats.count('initialize')).toBeLessThanOrEqual(2)
    await expect(client.callTool({ name: 'who_am_i', arguments: {} })).rejects.toThrow('unknown tool')
    await expect(client.readResource({ uri: 'test://none' })).rejects.toThrow('unknown resource')
  })

  it('serves the official client of the first generation, which answers questions of either era', async () => {
    for (const era of ERAS) {
      await using fixture = await startFixture({ era })
      await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
      const client = new ClientV1({ name: 'v1', version: '1' }, { capabilities: { sampling: {} } })
      const { CreateMessageRequestSchema } = await import('@modelcontextprotocol/sdk/types.js')
      client.setRequestHandler(CreateMessageRequestSchema, () => ({
        role: 'assistant',
        model: 'm',
        content: { type: 'text', text: 'forty-two' },
      }))
      // The types of the two are not exact about optional members.
      await client.connect(new TransportV1(new URL(vmcp.url)) as never)
      const progress: unknown[] = []
      await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, undefined, { onprogress: (each) => progress.push(each) })
      expect(progress.length).toBeGreaterThanOrEqual(3)
      const asked = await client.callTool({ name: 'test_sampling', arguments: { prompt: 'what?' } })
      expect(JSON.stringify(asked.content)).toContain('forty-two')
      await client.close()
    }
  })

  it('relays the questions of a modern backend to a modern client', async () => {
    await using fixture = await startFixture({ era: 'modern' })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
    await using sdk = await connect(vmcp, 'modern')
    expect(await sdk.text('test_input_required_result_elicitation')).toContain('Ada')
  })

  it('lists without a backend that is down, and announces it when it comes', async () => {
    await using alive = await startFixture({ only: ['echo'] })
    const late = await startFixture({ only: ['who_am_i'] })
    const { port } = new URL(late.url)
    await late.stop()
    await using vmcp = await startTestVmcp({ backends: { alive: alive.url, late: late.url } })
    await using sdk = await connect(vmcp, 'legacy')
    const names = async () => (await sdk.client.listTools()).tools.map(({ name }) => name)
    expect(await names()).toEqual(['echo'])
    await using _again = await startFixture({ only: ['who_am_i'], port: Number(port) })
    await expect.poll(() => sdk.notifications).toContain('notifications/tools/list_changed')
    expect(await names()).toEqual(['echo', 'who_am_i'])
  })

  it('announces a change of one backend to sessions that are open, and keeps its tools while it is away', async () => {
    const fixture = await startFixture({ era: 'legacy' })
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
    await using legacy = await connect(vmcp, 'legacy')
    const { tools } = await legacy.client.listTools()
    await expect.poll(() => fixture.stats.streams).toBeGreaterThan(0)
    await legacy.text('set_tool', { name: 'brand_new' })
    await expect.poll(() => legacy.notifications).toContain('notifications/tools/list_changed')
    expect((await legacy.client.listTools()).tools.map(({ name }) => name)).toContain('brand_new')
    await fixture.stop()
    await expect(legacy.text('echo')).rejects.toThrow(/unavailable|cannot be reached/i)
    expect((await legacy.client.listTools()).tools.length).toBe(tools.length + 1)
  })

  it('[004-118] a backend that has forgotten its session is initialized again, and the call repeated', async () => {
    for (const unknownSessionStatus of [404, 400] as const) {
      await using fixture = await startFixture({ era: 'legacy', unknownSessionStatus })
      await using vmcp = await startTestVmcp({ backends: { one: fixture.url }, backend: { type: 'entry' } })
      await using sdk = await connect(vmcp, 'legacy')
      const first = await sdk.json('who_am_i')
      fixture.admin.forgetSessions()
      const answers = await Promise.all([sdk.json('who_am_i'), sdk.json('who_am_i')])
      for (const answer of answers) expect(answer['session']).not.toBe(first['session'])
    }
  })

  it('[004-115] [004-116] after an interruption and a restart of the remote server later calls succeed, in the same client session', async () => {
    let fixture = await startFixture({ era: 'legacy' })
    const port = Number(new URL(fixture.url).port)
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url }, backend: { type: 'entry' } })
    await using sdk = await connect(vmcp, 'legacy')
    await sdk.text('echo', { text: 'before' })
    await fixture.stop()
    await expect(sdk.text('echo', { text: 'away' })).rejects.toThrow()
    fixture = await startFixture({ era: 'legacy', port })
    await using _ = fixture
    await expect.poll(() => sdk.text('echo', { text: 'again' }).catch(() => 'down')).toContain('again')
  })

  it('[002-130] [002-132] [004-042] aggregation.tools with the name of an entry filters and renames its tools', async () => {
    await using fixture = await startFixture()
    const tools = [{ workload: 'remote', filter: ['say', 'who_am_i'], overrides: { echo: { name: 'say', description: 'Says it.' } } }]
    const aggregation = { conflictResolution: 'prefix', tools }
    await using vmcp = await startTestVmcp({ backends: { remote: fixture.url }, backend: { type: 'entry' }, config: { aggregation } })
    await using sdk = await connect(vmcp, 'modern')
    const listed = (await sdk.client.listTools()).tools
    expect(listed.map(({ name, description }) => [name, description])).toEqual([
      ['remote_say', 'Says it.'],
      ['remote_who_am_i', expect.any(String)],
    ])
    expect(await sdk.text('remote_say', { text: 'hello' })).toContain('hello')
    await expect(sdk.text('remote_test_simple_text')).rejects.toThrow('unknown tool')
  })

  it('sends one tool of several servers to the one that the client chooses', async () => {
    await using a = await startFixture({ name: 'server-a', only: ['who_am_i'] })
    await using b = await startFixture({ name: 'server-b', only: ['who_am_i'] })
    const config = { aggregation: { conflictResolution: 'selector' } }
    await using vmcp = await startTestVmcp({ backends: { a: a.url, b: b.url }, config })
    await using sdk = await connect(vmcp, 'legacy')
    expect((await sdk.client.listTools()).tools.map(({ name }) => name)).toEqual(['who_am_i'])
    expect(await sdk.json('who_am_i', { backend: 'b' })).toMatchObject({ name: 'server-b' })
    await expect(sdk.json('who_am_i', { backend: 'c' })).rejects.toThrow('must be one of a, b')
  })

  it('gives up a call after the silence of its backend, and cancels it there', async () => {
    await using fixture = await startFixture({ era: 'legacy' })
    const config = { operational: { timeouts: { perTool: { hang: '1s' } } } }
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url }, config })
    await using sdk = await connect(vmcp, 'legacy')
    await sdk.text('echo', { text: 'opens the session at the backend' })
    await expect(sdk.text('hang')).rejects.toMatchObject({ data: { backend: 'one', timeoutMs: 1_000, mayHaveRun: true } })
    await expect.poll(() => fixture.stats.cancelled.length).toBe(1)
    expect(await sdk.text('echo', { text: 'next' })).toContain('next')
  })

  it('passes on no header of the client, and adds those of the configuration', async () => {
    await using fixture = await startFixture()
    const headerInjection = { headerName: 'X-Api-Key', headerValueEnv: 'KEY' }
    const forward = { addPlaintextHeaders: { 'X-Team': 'core', 'x-api-key': 'loses' }, addHeadersFromSecret: { 'X-Token': 'T' } }
    await using vmcp = await startTestVmcp({
      backends: { 'my-entry': fixture.url },
      config: { outgoingAuth: { source: 'inline', default: { type: 'header_injection', headerInjection } } },
      env: { KEY: 's3cret', TOOLHIVE_HEADER_FORWARD_MY_ENTRY: JSON.stringify(forward), TOOLHIVE_SECRET_T: 'hush' },
    })
    const requestInit = { headers: { authorization: 'Bearer of-the-client', cookie: 'a=b', 'x-tenant': 't' } }
    await using sdk = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url), { requestInit }), 'legacy')
    const { headers } = await sdk.json('report_request')
    expect(headers).toMatchObject({ 'x-api-key': 's3cret', 'x-team': 'core', 'x-token': 'hush' })
    for (const name of ['authorization', 'cookie', 'x-tenant']) expect(headers).not.toHaveProperty(name)
    expect(vmcp.logged.join()).not.toMatch(/s3cret|hush/)
  })

  it('refuses names of backends that would share the headers of one', async () => {
    const env = { TOOLHIVE_HEADER_FORWARD_MY_ENTRY: JSON.stringify({ addPlaintextHeaders: { 'X-Key': 's3cret' } }) }
    const backends = { 'my-entry': 'http://127.0.0.1:1/mcp', 'my.entry': 'http://127.0.0.1:2/mcp' }
    const refused = expect(startTestVmcp({ backends, env })).rejects
    await refused.toThrow('TOOLHIVE_HEADER_FORWARD_MY_ENTRY is for both my-entry and my.entry')
  })

  it('opens the circuit of a failing backend, answers at once, and keeps its tools listed', async () => {
    const fixture = await startFixture({ only: ['echo'] })
    const failureHandling = { circuitBreaker: { enabled: true, failureThreshold: 2, timeout: '1h' }, unhealthyThreshold: 2 }
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url }, config: { operational: { failureHandling } } })
    await using sdk = await connect(vmcp, 'modern')
    await sdk.text('echo')
    await fixture.stop()
    for (let i = 0; i < 2; i++) await expect(sdk.text('echo')).rejects.toThrow()
    await expect(sdk.text('echo')).rejects.toMatchObject({ data: { reason: 'backend_unavailable', backend: 'one', mayHaveRun: false } })
    expect((await sdk.client.listTools()).tools.length).toBe(1)
    const status = (await (await fetch(`${vmcp.base}/status`)).json()) as Record<string, unknown>
    expect(status).toMatchObject({ healthy: false, group_ref: 'group', backends: [{ name: 'one', health: 'unhealthy', circuit: 'open' }] })
  })

  it('[002-148] refuses new sessions while a backend is unhealthy, where the configuration says so', async () => {
    const fixture = await startFixture({ only: ['echo'] })
    const failureHandling = { partialFailureMode: 'fail', unhealthyThreshold: 1 }
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url }, config: { operational: { failureHandling } } })
    await expect.poll(async () => (await fetch(`${vmcp.base}/readyz`)).status).toBe(200)
    await using sdk = await connect(vmcp, 'legacy')
    await fixture.stop()
    await expect(sdk.text('echo')).rejects.toThrow()
    expect((await fetch(`${vmcp.base}/readyz`)).status).toBe(503)
    await expect(connect(vmcp, 'legacy')).rejects.toThrow()
  })

  it('sends a call again that an unavailable backend refused, where it is idempotent, and limits results', async () => {
    await using fixture = await startFixture({ era: 'legacy' })
    const operational = {
      retry: { attempts: 3, backoff: '1ms', on: ['unavailable'] },
      toolResults: { maxBytes: 2_000, onExceed: 'truncate' },
    }
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url }, config: { operational } })
    // The backend is listed again after its changes can be heard. Later only the client asks it, so the failures are the client's.
    const lists = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']
    await expect.poll(() => Math.min(...lists.map((method) => fixture.stats.count(method)))).toBeGreaterThanOrEqual(2)
    await using sdk = await connect(vmcp, 'legacy')
    await sdk.text('echo')
    const before = fixture.stats.count('resources/read')
    fixture.admin.fail({ status: 503, times: 2 })
    expect(await sdk.client.readResource({ uri: 'test://static-text' })).toMatchObject({ contents: [{ mimeType: 'text/plain' }] })
    fixture.admin.fail({ status: 503, times: 1 })
    await expect(sdk.text('echo')).rejects.toThrow()
    expect(fixture.stats.count('resources/read')).toBe(before + 1)
    expect(await sdk.text('echo', { text: 'x'.repeat(5_000) }).catch(String)).toMatch(/bytes left out|limit is 2000/)
  })

  it('reports health, status and metrics', async () => {
    await using a = await startFixture({ only: ['echo'] })
    await using b = await startFixture({ only: ['echo'] })
    const aggregation = { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: ['b'] } }
    await using vmcp = await startTestVmcp({ backends: { a: a.url, b: b.url }, config: { aggregation } })
    const get = async (path: string) => (await fetch(`${vmcp.base}${path}`)).text()
    await expect.poll(() => get('/readyz')).toBe('{"status":"ready","mode":"static"}')
    expect(JSON.parse(await get('/health'))).toMatchObject({ status: 'healthy' })
    expect(JSON.parse(await get('/status'))).toMatchObject({
      healthy: true,
      offered: { tools: 1 },
      backends: [
        { name: 'a', health: 'healthy', mcp_revision: '2026-07-28', auth_type: 'unauthenticated' },
        { name: 'b', health: 'healthy' },
      ],
    })
    expect(JSON.parse(await get('/status')).conflicts.named).toContainEqual(
      expect.objectContaining({ kind: 'tool', outcome: 'lost', backend: 'a', name: 'echo', winner: 'b' }),
    )
    expect(JSON.parse(await get('/api/backends/health'))).toMatchObject({
      summary: { Total: 2, Healthy: 2 },
      backends: { a: { Status: 'healthy', CircuitState: 'closed' } },
    })
    const metrics = await get('/metrics')
    expect(metrics).toMatch(/toolhive_vmcp_backend_healthy\{backend="a"\} 1/)
    expect(metrics).toMatch(/toolhive_vmcp_conflicts\{outcome="lost"\} \d/)
    expect(metrics).toMatch(/^toolhive_memory_releases_total\{result="done"\} \d+$/m)
  })

  it('delivers changes of a resource to subscribers of either era', async () => {
    for (const { client, backend } of COMBINATIONS) {
      await using fixture = await startFixture({ era: backend })
      await using vmcp = await startTestVmcp({ backends: { one: fixture.url } })
      await using sdk = await connect(vmcp, client)
      const uri = 'test://watched-resource'
      await sdk.client.listTools()
      if (client === 'legacy') await sdk.client.subscribeResource({ uri })
      else await sdk.client.listen({ resourceSubscriptions: [uri] })
      await expect
        .poll(() => {
          fixture.admin.resourceUpdated(uri)
          return sdk.notifications
        })
        .toContain('notifications/resources/updated')
    }
  })
})
