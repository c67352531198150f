import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk, type SdkClient } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { callModern } from './testing/call-modern.ts'
import { startTestVmcp, type TestVmcp, testConfig } from './testing/test-vmcp.ts'

const ERAS = ['legacy', 'modern'] as const
const connect = ({ url }: TestVmcp, mode: 'legacy' | 'modern') => connectSdk(new StreamableHTTPClientTransport(new URL(url)), mode)
const prefix = { aggregation: { conflictResolution: 'prefix' } }

interface Found {
  readonly tools: readonly { readonly name: string; readonly inputSchema: object; readonly outputSchema?: object }[]
  readonly token_metrics?: { readonly baseline_tokens: number; readonly savings_percent: number }
  readonly omitted?: number
}

async function find({ client }: SdkClient, description: string, keywords?: readonly string[]): Promise<Found> {
  const args = { tool_description: description, ...(keywords && { tool_keywords: keywords }) }
  const { structuredContent, content } = await client.callTool({ name: 'find_tool', arguments: args })
  const [first] = content
  expect(first?.type === 'text' && JSON.parse(first.text)).toEqual(structuredContent)
  return structuredContent as unknown as Found
}

const inner = (tool_name: string, parameters: object = {}) => ({ name: 'call_tool', arguments: { tool_name, parameters } })

describe('tool search of a virtual server', () => {
  it.each(ERAS.flatMap((client) => ERAS.map((backend) => ({ client, backend }))))(
    'finds tools and calls them: $client client, $backend backends',
    async ({ client: mode, backend: era }) => {
      await using a = await startFixture({ era, only: ['greet', 'add_numbers', 'structured_list'] })
      await using b = await startFixture({ era, only: ['echo', 'test_elicitation', 'region_query'] })
      const compositeTools = [{ name: 'welcome', description: 'Welcomes a guest.', steps: [{ id: 'only', tool: 'a.greet' }] }]
      const optimizer = { alwaysListed: ['b_echo', 'missing'], maxToolsToReturn: 2 }
      await using vmcp = await startTestVmcp({ backends: { a: a.url, b: b.url }, config: { ...prefix, optimizer, compositeTools } })
      await using sdk = await connect(vmcp, mode)
      const { tools } = await sdk.client.listTools()
      expect(tools.map(({ name }) => name)).toEqual(['b_echo', 'call_tool', 'find_tool'])
      expect(tools[2]?.description).toMatch(/ a, b\.$/)

      const found = await find(sdk, 'say hello to a person', ['greet'])
      expect(found.tools[0]).toMatchObject({ name: 'a_greet', inputSchema: { type: 'object' } })
      expect(found.tools.length).toBeLessThanOrEqual(2)
      expect(found.token_metrics?.baseline_tokens).toBeGreaterThan(0)
      expect((await find(sdk, 'add two numbers')).tools[0]?.name).toBe('a_add_numbers')
      expect((await find(sdk, 'welcome a guest')).tools[0]?.name).toBe('welcome')
      const [list] = (await find(sdk, 'structured list')).tools
      // Legacy backends have no tools with results that are lists.
      const schema = mode === 'legacy' ? { type: 'object', required: ['result'] } : { type: 'array' }
      expect(list ?? {}).toMatchObject(era === 'modern' ? { name: 'a_structured_list', outputSchema: schema } : {})

      expect(await sdk.client.callTool(inner('a_greet', { name: 'Ada' }))).toMatchObject({ content: [{ text: 'Hello, Ada!' }] })
      expect(await sdk.client.callTool(inner('welcome'))).toMatchObject({ content: [{}] })
      expect(await sdk.text('call_tool', { parameters: { tool_name: 'a_add_numbers', a: 1, b: 2 } })).toBe('3')
      // The backend asks the client in the middle of the call.
      expect(await sdk.text('call_tool', inner('b_test_elicitation', { message: 'who?' }).arguments)).toContain('accept')
      // Arguments that the tool wants repeated in headers: the client knows nothing of them.
      expect((await sdk.client.callTool(inner('b_region_query', { region: 'eu', query: 'x' }))).isError).not.toBe(true)
      // Tools that are not listed can be called by their name too.
      expect(await sdk.text('a_greet', { name: 'Bob' })).toBe('Hello, Bob!')
      expect(await sdk.client.callTool(inner('a_nothing'))).toMatchObject({ isError: true, content: [{ text: /unknown tool/ }] })
    },
  )

  it('answers hostile arguments with errors', async () => {
    await using a = await startFixture({ only: ['greet'] })
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { optimizer: {} } })
    for (const args of [{}, { tool_name: 1 }, { tool_name: 'call_tool' }, { tool_name: 'greet', parameters: [] }, []])
      expect((await callModern(vmcp.url, 'call_tool', { arguments: args })).error?.code).toBe(-32602)
    for (const args of [{}, { tool_description: '' }, { tool_description: 1 }, { tool_description: 'x', tool_keywords: [1] }])
      expect((await callModern(vmcp.url, 'find_tool', { arguments: args })).error?.code).toBe(-32602)
    const keywords = { tool_description: 'x', tool_keywords: Array.from({ length: 101 }, () => 'x') }
    expect((await callModern(vmcp.url, 'find_tool', { arguments: keywords })).error?.code).toBe(-32602)
    expect((await callModern(vmcp.url, 'find_tool', { arguments: { tool_description: 'x'.repeat(1_000_000) } })).result).toBeDefined()
    expect(a.stats.count('tools/call')).toBe(0)
  })

  it.each(ERAS)('shows and calls only what policies permit, and audits the tool that was called: %s client', async (mode) => {
    const folder = mkdtempSync(join(tmpdir(), 'vmcp-search-'))
    await using stack = new AsyncDisposableStack()
    stack.defer(() => rmSync(folder, { recursive: true }))
    const a = stack.use(await startFixture({ only: ['greet', 'add_numbers', 'echo'] }))
    const policies = [
      'permit(principal, action == Action::"call_tool", resource == Tool::"add_numbers");',
      'permit(principal, action == Action::"call_tool", resource == Tool::"echo") when { context.arg_text == "ok" };',
    ]
    const authz = { type: 'cedar', policies }
    const rateLimiting = { tools: [{ name: 'echo', shared: { maxTokens: 2, refillPeriod: '1h' } }] }
    const config = {
      ...{ optimizer: {}, incomingAuth: { type: 'anonymous', authz }, rateLimiting },
      audit: { enabled: true, logFile: join(folder, 'audit.log') },
    }
    const b = stack.use(await startFixture({ only: ['greet'] }))
    const vmcp = stack.use(await startTestVmcp({ backends: { a: a.url, secret: b.url }, config }))
    const sdk = stack.use(await connect(vmcp, mode))
    const listed = (await sdk.client.listTools()).tools
    expect(listed.map(({ name }) => name)).toEqual(['call_tool', 'find_tool'])
    // A backend whose tools are all forbidden is not named either.
    expect(listed[1]?.description).not.toMatch(/secret|come from/)
    const found = await find(sdk, 'greet, echo, or add numbers')
    expect(found.tools.map(({ name }) => name).toSorted()).toEqual(['add_numbers', 'echo'])
    expect(found).not.toHaveProperty('token_metrics')
    expect(await sdk.text('call_tool', inner('add_numbers', { a: 1, b: 2 }).arguments)).toBe('3')
    await expect(sdk.client.callTool(inner('greet'))).rejects.toThrow()
    await expect(sdk.client.callTool(inner('echo', { text: 'no' }))).rejects.toThrow()
    await sdk.client.callTool(inner('echo', { text: 'ok' }))
    await sdk.client.callTool(inner('echo', { text: 'ok' }))
    await expect(sdk.client.callTool(inner('echo', { text: 'ok' }))).rejects.toThrow()
    expect(a.stats.count('tools/call')).toBe(3)
    await expect.poll(() => readFileSync(join(folder, 'audit.log'), 'utf8')).toContain('"denied"')
    const audited = readFileSync(join(folder, 'audit.log'), 'utf8')
    expect(audited).toContain('"add_numbers"')
    expect(audited).toContain('"find_tool"')
    expect(audited).not.toContain('"call_tool"')
  })

  it('finds nothing where listing is forbidden', async () => {
    await using a = await startFixture({ only: ['greet'] })
    const policies = ['permit(principal, action, resource);', 'forbid(principal, action == Action::"list_tools", resource);']
    const incomingAuth = { type: 'anonymous', authz: { type: 'cedar', policies } }
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { optimizer: {}, incomingAuth } })
    await using sdk = await connect(vmcp, 'modern')
    expect((await sdk.client.listTools()).tools).toEqual([])
    expect((await find(sdk, 'greet')).tools).toEqual([])
  })

  it('announces a change of the list, not of tools that are only found; takes its settings over while it runs', async () => {
    await using a = await startFixture({ era: 'legacy', only: ['greet', 'set_tool'] })
    const config = { optimizer: { alwaysListed: ['listed'] } }
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config })
    await using sdk = await connect(vmcp, 'legacy')
    const changes = () => sdk.notifications.filter((method) => method === 'notifications/tools/list_changed').length
    await sdk.client.callTool(inner('set_tool', { name: 'unlisted', present: true }))
    await expect.poll(async () => (await find(sdk, 'unlisted')).tools[0]?.name).toBe('unlisted')
    expect(changes()).toBe(0)
    await sdk.client.callTool(inner('set_tool', { name: 'listed', present: true }))
    await expect.poll(changes).toBe(1)
    expect((await sdk.client.listTools()).tools.map(({ name }) => name)).toContain('listed')
    const { view, offer } = { view: vmcp.offer.view, offer: vmcp.offer }
    const without = testConfig({ backends: { a: a.url } })
    view.reconfigure({ config: without.aggregation, workflows: [] })
    offer.reconfigure(without)
    await expect.poll(changes).toBe(2)
    expect((await sdk.client.listTools()).tools.map(({ name }) => name)).not.toContain('find_tool')
    await expect(sdk.client.callTool(inner('greet'))).rejects.toThrow()
  })

  it('keeps its names from backends, and says so', async () => {
    await using a = await startFixture({ era: 'legacy', only: ['set_tool'] })
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { optimizer: {} } })
    await using sdk = await connect(vmcp, 'modern')
    await sdk.client.callTool(inner('set_tool', { name: 'find_tool', present: true }))
    await expect.poll(() => vmcp.offer.view.now.conflicts).toMatchObject([{ outcome: 'lost', name: 'find_tool', backend: 'a' }])
    expect((await find(sdk, 'set a tool')).tools[0]?.name).toBe('set_tool')
  })

  it('leaves definitions out that are too large for a result', async () => {
    await using a = await startFixture({ only: ['greet', 'json_schema_2020_12_tool'] })
    const config = { optimizer: {}, operational: { toolResults: { maxBytes: 1_024 } } }
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config })
    await using sdk = await connect(vmcp, 'modern')
    const found = await find(sdk, 'json schema 2020-12 or greet')
    expect(found.tools.map(({ name }) => name)).toEqual(['greet'])
    expect(found.omitted).toBe(1)
  })
})
