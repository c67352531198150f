import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

const ERAS = ['legacy', 'modern'] as const
const connect = ({ url }: TestVmcp, mode: 'legacy' | 'modern') => connectSdk(new StreamableHTTPClientTransport(new URL(url)), mode)
const calls = ({ stats }: Fixture) => stats.count('tools/call')

const GREETING = {
  name: 'greeting',
  description: 'Greets, and says it again where it is asked to.',
  parameters: {
    type: 'object',
    properties: { who: { type: 'string', maxLength: 100 }, again: { type: 'boolean', default: false } },
    required: ['who'],
  },
  steps: [
    {
      id: 'greet',
      tool: 'a.greet',
      arguments: { name: '{{.params.who}}' },
      onError: { action: 'retry', retryCount: 2, retryDelay: '1ms' },
    },
    {
      id: 'repeat',
      tool: 'b.echo',
      dependsOn: ['greet'],
      condition: '{{.params.again}}',
      arguments: { text: '{{.steps.greet.output.text}} {{.steps.greet.output.text}}' },
      defaultResults: { arguments: { text: 'nothing more' } },
    },
  ],
  output: {
    properties: {
      first: { type: 'string', value: '{{.steps.greet.output.text}}' },
      second: { type: 'string', value: '{{.steps.repeat.output.arguments.text}}' },
    },
    required: ['first', 'second'],
  },
}

const one = (name: string, step: object, more: object = {}) => ({
  name,
  description: 'One step.',
  steps: [{ id: 'only', ...step }],
  ...more,
})

describe('composite tools of a virtual server', () => {
  it.each(ERAS.flatMap((client) => ERAS.map((backend) => ({ client, backend }))))(
    '[002-134] [002-171] [002-172] [002-179] [002-183] run over two servers with a condition and a retry: $client client, $backend backends',
    async ({ client: mode, backend: era }) => {
      await using a = await startFixture({ era, only: ['greet'] })
      await using b = await startFixture({ era, only: ['echo'] })
      await using vmcp = await startTestVmcp({ backends: { a: a.url, b: b.url }, config: { compositeTools: [GREETING] } })
      await using sdk = await connect(vmcp, mode)
      const { tools } = await sdk.client.listTools()
      expect(tools.map(({ name }) => name)).toEqual(['echo', 'greet', 'greeting'])
      expect(tools.find(({ name }) => name === 'greeting')).toMatchObject({
        description: GREETING.description,
        inputSchema: GREETING.parameters,
        outputSchema: { properties: { first: { type: 'string' }, second: { type: 'string' } }, required: ['first', 'second'] },
        annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
      })
      // Opens the sessions, so that the faults meet calls.
      await sdk.text('greet')
      const before = [calls(a), calls(b)]
      expect(await sdk.client.callTool({ name: 'greeting', arguments: { who: 'Ada' } })).toMatchObject({
        structuredContent: { first: 'Hello, Ada!', second: 'nothing more' },
      })
      expect([calls(a), calls(b)]).toEqual([(before[0] ?? 0) + 1, before[1]])
      a.admin.fail({ status: 500, times: 2 })
      const again = await sdk.client.callTool({ name: 'greeting', arguments: { who: 'Ada', again: true } })
      expect(again).toMatchObject({ structuredContent: { second: 'Hello, Ada! Hello, Ada!' } })
      expect(again.isError).toBeUndefined()
      expect(calls(b)).toBe((before[1] ?? 0) + 1)
    },
  )

  it.each(ERAS)('[002-184] try a failing step as often as it says, then fail or go on, and name no backend: %s client', async (mode) => {
    await using a = await startFixture({ only: ['rpc_error', 'greet', 'test_error_handling'] })
    const step = { tool: 'a.rpc_error', arguments: { message: 'on demand' } }
    const retry = { retryCount: 2, retryDelay: '1ms' }
    const goesOn = {
      ...one('goes_on', {}),
      steps: [
        { id: 'bad', ...step, onError: { action: 'continue', ...retry } },
        { id: 'good', tool: 'a.greet', dependsOn: ['bad'], arguments: { name: '{{.steps.bad.status}}: {{.steps.bad.error}}' } },
      ],
    }
    const compositeTools = [
      one('fails', { ...step, onError: { action: 'retry', ...retry } }),
      goesOn,
      one('says', { tool: 'test_error_handling' }),
    ]
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { compositeTools } })
    await using sdk = await connect(vmcp, mode)
    const failed = await sdk.client.callTool({ name: 'fails', arguments: {} })
    expect(failed).toMatchObject({ isError: true, content: [{ text: 'Workflow execution failed: step 1 of 1: on demand' }] })
    expect(calls(a)).toBe(3)
    expect(await sdk.text('goes_on')).toBe('Hello, failed: on demand!')
    expect(calls(a)).toBe(7)
    expect(await sdk.client.callTool({ name: 'says', arguments: {} })).toMatchObject({ isError: true })
    await a.stop()
    const gone = await sdk.client.callTool({ name: 'says', arguments: {} })
    expect(gone).toMatchObject({ isError: true })
    expect(JSON.stringify(gone.content)).not.toMatch(/127\.0\.0\.1|rpc_error|"a"|backend a/)
  })

  it.each(ERAS)('refuse arguments that do not fit, before any call: %s client', async (mode) => {
    await using a = await startFixture({ only: ['greet', 'echo'] })
    const nothing = one('nothing', { tool: 'a.greet' })
    await using vmcp = await startTestVmcp({ backends: { a: a.url, b: a.url }, config: { compositeTools: [GREETING, nothing] } })
    await using sdk = await connect(vmcp, mode)
    const call = (name: string, args: Record<string, unknown>) => sdk.client.callTool({ name, arguments: args })
    await expect(call('greeting', {})).rejects.toThrow(/who/)
    await expect(call('greeting', { who: 7 })).rejects.toThrow(/string/)
    await expect(call('greeting', { who: 'x'.repeat(1_000_000) })).rejects.toThrow(/100/)
    await expect(call('nothing', { ['k'.repeat(500_000)]: 1 })).rejects.toThrow(/takes no parameters/)
    await expect(call('nothing', [] as never)).rejects.toThrow()
    expect(calls(a)).toBe(0)
    expect(await sdk.text('nothing')).toBe('Hello, World!')
  })

  it('call hidden tools, win over the tools of their name and still call those, and report the conflict', async () => {
    await using a = await startFixture({ only: ['greet', 'add_numbers'] })
    const wrapped = one('greet', { tool: 'a.greet', arguments: { name: 'the wrapper' } })
    const sum = one(
      'sum',
      { tool: 'add_numbers', arguments: { a: '{{.params.a}}', b: 1 } },
      { parameters: { type: 'object', properties: { a: {} } } },
    )
    const aggregation = { conflictResolution: 'prefixOnConflict', tools: [{ workload: 'a', exclude: ['add_numbers'] }] }
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { aggregation, compositeTools: [wrapped, sum] } })
    await using sdk = await connect(vmcp, 'modern')
    const { tools } = await sdk.client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['greet', 'sum'])
    expect(tools[1]?.annotations).toMatchObject({ readOnlyHint: true, destructiveHint: false })
    expect(await sdk.text('greet')).toBe('Hello, the wrapper!')
    expect(await sdk.text('sum', { a: '41' })).toBe('42')
    await expect(sdk.text('add_numbers')).rejects.toThrow('unknown tool')
    const status = (await (await fetch(`${vmcp.base}/status`)).json()) as Record<string, unknown>
    expect(status).toMatchObject({
      offered: { tools: 2 },
      composite_tools: { offered: ['greet', 'sum'], left_out: [] },
      conflicts: { named: [{ outcome: 'lost', backend: 'a', name: 'greet' }] },
    })
  })

  it('are left out while a tool is missing, and announced when it comes', async () => {
    await using a = await startFixture({ era: 'legacy', only: ['greet', 'set_tool'] })
    const late = one('late', { tool: 'a.brand_new' })
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { compositeTools: [late] } })
    await using sdk = await connect(vmcp, 'legacy')
    const names = async () => (await sdk.client.listTools()).tools.map(({ name }) => name)
    expect(await names()).toEqual(['greet', 'set_tool'])
    await expect(sdk.text('late')).rejects.toThrow('unknown tool')
    expect(vmcp.offer.view.composites.leftOut).toEqual([{ name: 'late', reason: 'no backend offers a.brand_new' }])
    await expect.poll(() => vmcp.logged.join()).toContain('late is not offered: no backend offers a.brand_new')
    await expect.poll(() => a.stats.streams).toBeGreaterThan(0)
    await sdk.text('set_tool', { name: 'brand_new' })
    await expect.poll(names).toContain('late')
    expect(await sdk.text('late')).toBe('I am brand_new')
  })

  it('end after their own time and after that of a step, and cancel the call at the backend', async () => {
    await using a = await startFixture({ era: 'legacy', only: ['hang', 'greet'] })
    const compositeTools = [
      one('whole', { tool: 'a.hang' }, { timeout: '200ms' }),
      one('part', { tool: 'a.hang', timeout: '200ms' }),
      one('silent', { tool: 'hang' }),
    ]
    const operational = { timeouts: { perTool: { hang: '1s' } } }
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { compositeTools, operational } })
    await using sdk = await connect(vmcp, 'legacy')
    // Opens the session, so that the limits meet calls.
    await sdk.text('greet')
    expect(await sdk.client.callTool({ name: 'whole', arguments: {} })).toMatchObject({ isError: true })
    expect(await sdk.text('whole')).toBe('Workflow execution failed: took longer than 200ms')
    expect(await sdk.text('part')).toBe('Workflow execution failed: step 1 of 1: took longer than 200 ms')
    expect(await sdk.text('silent')).toMatch(/^Workflow execution failed: step 1 of 1: Backend .*time/i)
    await expect.poll(() => a.stats.cancelled.length).toBe(4)
  })

  it.each(ERAS)('stop when the client cancels the call: %s client', async (mode) => {
    await using a = await startFixture({ era: 'legacy', only: ['hang', 'greet'] })
    const steps = [
      { id: 'wait', tool: 'a.hang' },
      { id: 'after', tool: 'a.greet', dependsOn: ['wait'] },
    ]
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { compositeTools: [{ ...one('waits', {}), steps }] } })
    await using sdk = await connect(vmcp, mode)
    const stop = new AbortController()
    const call = sdk.client.callTool({ name: 'waits', arguments: {} }, { signal: stop.signal })
    const ended = expect(call).rejects.toThrow()
    await expect.poll(() => calls(a)).toBe(1)
    stop.abort()
    await ended
    await expect.poll(() => a.stats.cancelled.length).toBe(1)
    expect(calls(a)).toBe(1)
  })

  it('[002-180] run steps side by side, and are limited in number per client and in steps at a time', async () => {
    await using a = await startFixture({ only: ['hang', 'greet'] })
    const steps = Array.from({ length: 5 }, (_, index) => ({ id: `s${index}`, tool: 'a.hang' }))
    const config = { compositeTools: [{ ...one('many', {}), steps }], workflows: { maxParallelSteps: 2 } }
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config })
    await using sdk = await connect(vmcp, 'modern')
    const stop = new AbortController()
    const running = Array.from({ length: 10 }, () =>
      sdk.client.callTool({ name: 'many', arguments: {} }, { signal: stop.signal }).catch(() => 'ended'),
    )
    await expect.poll(() => calls(a)).toBe(20)
    await expect(sdk.text('many')).rejects.toMatchObject({ data: { reason: 'busy' } })
    expect(calls(a)).toBe(20)
    stop.abort()
    expect(await Promise.all(running)).toEqual(running.map(() => 'ended'))
    await expect
      .poll(async () => await sdk.client.callTool({ name: 'many', arguments: {} }, { timeout: 50 }).catch(String))
      .not.toMatch(/too many/)
  })

  const ASKS = {
    ...one('asks', {}),
    steps: [
      { id: 'greet', tool: 'a.greet', arguments: { name: 'Bob' } },
      {
        id: 'ask',
        type: 'elicitation',
        dependsOn: ['greet'],
        message: 'Say {{.steps.greet.output.text}} to whom?',
        schema: { type: 'object', properties: { name: { type: 'string' } } },
      },
      { id: 'again', tool: 'a.greet', dependsOn: ['ask'], arguments: { name: '{{.steps.ask.output.content.name}}' } },
    ],
  }

  it.each(ERAS)('ask the user in the middle: %s client', async (mode) => {
    await using a = await startFixture({ only: ['greet'] })
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { compositeTools: [ASKS] } })
    await using sdk = await connect(vmcp, mode)
    expect(await sdk.text('asks')).toBe('Hello, Ada!')
    expect(calls(a)).toBe(2)
  })

  it('go on once with the state of a question, for the same call only; for a client that cannot be asked the step fails', async () => {
    await using a = await startFixture({ only: ['greet'] })
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { compositeTools: [ASKS] } })
    const call = async (params: object, capabilities: object = { elicitation: { form: {} } }) => {
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': capabilities,
        'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
      }
      const response = await fetch(vmcp.url, {
        method: 'POST',
        headers: {
          ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'asks' },
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'asks', ...params, _meta } }),
      })
      return (await response.json()) as { result?: Record<string, unknown>; error?: Record<string, unknown> }
    }
    const asked = await call({})
    expect(asked.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { 'elicitation-1': { method: 'elicitation/create', params: { message: 'Say Hello, Bob! to whom?' } } },
    })
    const inputResponses = { 'elicitation-1': { action: 'accept', content: { name: 'Eve' } } }
    const { requestState } = asked.result ?? {}
    expect((await call({ requestState: 'forged', inputResponses })).error).toMatchObject({ code: -32602 })
    expect((await call({ requestState, inputResponses, arguments: { x: 1 } })).error).toMatchObject({ code: -32602 })
    const unanswered = await call({ requestState, inputResponses: {} })
    expect(unanswered.result).toMatchObject({ resultType: 'input_required' })
    const next = { requestState: unanswered.result?.['requestState'], inputResponses }
    expect((await call({ requestState, inputResponses })).error).toMatchObject({ code: -32602 })
    expect((await call(next)).result).toMatchObject({ resultType: 'complete', content: [{ text: 'Hello, Eve!' }] })
    expect((await call(next)).error).toMatchObject({ code: -32602 })
    expect(calls(a)).toBe(2)
    const cannot = await call({}, {})
    expect(cannot.result).toMatchObject({ isError: true })
    expect(JSON.stringify(cannot.result)).toContain('the client cannot be asked')
  })

  it('tell their progress, without names of steps', async () => {
    await using a = await startFixture({ only: ['greet'] })
    const steps = [
      { id: 'one', tool: 'a.greet' },
      { id: 'two', tool: 'a.greet', dependsOn: ['one'] },
    ]
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { compositeTools: [{ ...one('steps', {}), steps }] } })
    await using sdk = await connect(vmcp, 'legacy')
    const progress: unknown[] = []
    await sdk.client.callTool({ name: 'steps', arguments: {} }, { onprogress: (each) => progress.push(each) })
    expect(progress).toEqual([
      { progress: 1, total: 2 },
      { progress: 2, total: 2 },
    ])
  })
})

describe('the audit log of composite tools', () => {
  it('has the types of events that the file selects, of the run and of its steps', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vmcp-audit-'))
    const logFile = join(folder, 'audit.log')
    try {
      await using a = await startFixture({ only: ['greet'] })
      await using b = await startFixture({ only: ['echo'] })
      const audit = { enabled: true, logFile, eventTypes: ['workflow_started', 'workflow_step_completed', 'workflow_step_skipped'] }
      await using vmcp = await startTestVmcp({ backends: { a: a.url, b: b.url }, config: { compositeTools: [GREETING], audit } })
      await using sdk = await connect(vmcp, 'modern')
      await sdk.client.callTool({ name: 'greeting', arguments: { who: 'Ada' } })
      const events = () =>
        readFileSync(logFile, 'utf8')
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line))
      await expect.poll(() => events().map(({ type }) => type)).toEqual(audit.eventTypes)
      expect(events().map(({ target, metadata }) => [target.name, metadata.extra.workflow.step])).toEqual([
        ['greeting', undefined],
        ['greeting', 'greet'],
        ['greeting', 'repeat'],
      ])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
