import type { ServerResponse } from 'node:http'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { TestClock } from '@thv/kernel/clock'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { answer, type ScriptedCall, startScripted } from './testing/scripted-backend.ts'
import { startTestVmcp } from './testing/test-vmcp.ts'

const timeouts = { default: '30s', perWorkload: { a: '10s', b: '20s' }, perTool: { special: '7s' } }

describe('time limits of calls', () => {
  it('are those of the tool, else of the backend that the request leads to, else the default', async () => {
    await using a = await startFixture({ only: ['echo', 'who_am_i'] })
    await using b = await startFixture({ only: ['echo'] })
    await using vmcp = await startTestVmcp({
      backends: { a: a.url, b: b.url },
      config: { aggregation: { conflictResolution: 'selector' }, operational: { timeouts } },
    })
    const limit = (method: string, params: Record<string, unknown>) =>
      vmcp.offer.timeoutMs({ kind: 'request', id: 1, method, text: '', message: { jsonrpc: '2.0', id: 1, method, params } })
    expect(limit('tools/call', { name: 'who_am_i' })).toBe(10_000)
    expect(limit('tools/call', { name: 'special' })).toBe(7_000)
    expect(limit('tools/call', { name: 'echo', arguments: { backend: 'a' } })).toBe(10_000)
    expect(limit('tools/call', { name: 'echo', arguments: { backend: 'b' } })).toBe(20_000)
    expect(limit('tools/call', { name: 'echo', arguments: { backend: 'c' } })).toBe(30_000)
    expect(limit('tools/call', { name: 'none' })).toBe(30_000)
    const { prompts, resources } = vmcp.offer.view.now
    const [prompt] = prompts.values()
    const [resource] = resources.values()
    expect(limit('prompts/get', { name: prompt?.key })).toBe(prompt?.backend === 'a' ? 10_000 : 20_000)
    expect(limit('resources/read', { uri: resource?.key })).toBe(resource?.backend === 'a' ? 10_000 : 20_000)
    expect(limit('resources/read', { uri: 'none://' })).toBe(30_000)
    expect(limit('completion/complete', { ref: { type: 'ref/prompt', name: prompt?.key }, argument: { name: 'x', value: '' } })).toBe(
      prompt?.backend === 'a' ? 10_000 : 20_000,
    )
    expect(limit('ping', {})).toBe(30_000)
  })

  it.each(['legacy', 'modern'] as const)('end a call of one tool, by whatever name it is called, and no other: %s client', async (mode) => {
    await using a = await startFixture({ only: ['hang', 'slow'] })
    const operational = { timeouts: { perTool: { hang: '100ms' } } }
    const clock = new TestClock()
    const vmcp = await startTestVmcp({ backends: { a: a.url }, config: { operational, optimizer: {} }, clock })
    await using _ = { [Symbol.asyncDispose]: () => shutDown(vmcp, clock) }
    await using sdk = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), mode)
    const slow = sdk.client.callTool({ name: 'slow', arguments: { ms: 300 } })
    await expect.poll(() => a.stats.count('tools/call')).toBe(1)
    for (const [index, call] of [
      { name: 'hang', arguments: {} },
      { name: 'call_tool', arguments: { tool_name: 'hang' } },
    ].entries()) {
      const ended = expect(sdk.client.callTool(call)).rejects.toMatchObject({ data: { backend: 'a', timeoutMs: 100, mayHaveRun: true } })
      await expect.poll(() => a.stats.count('tools/call')).toBe(index + 2)
      await clock.advance(100)
      await ended
    }
    expect((await slow).isError).not.toBe(true)
  })
})

/** Time goes on meanwhile. */
async function shutDown(vmcp: AsyncDisposable, clock: TestClock): Promise<void> {
  let isOver = false
  const over = Promise.resolve(vmcp[Symbol.asyncDispose]()).finally(() => {
    isOver = true
  })
  while (!isOver) await clock.advance(100)
  await over
}

describe('a call that lasts', () => {
  it.each(['legacy', 'modern'] as const)('becomes a stream after five seconds, with a comment every 15 seconds: %s client', async (era) => {
    const clock = new TestClock()
    let finish = () => {}
    const call = (called: ScriptedCall, response: ServerResponse) => {
      finish = () => answer(response, called)
    }
    await using backend = await startScripted({ era, call })
    const operational = { timeouts: { default: '5m' } }
    const vmcp = await startTestVmcp({ backends: { one: backend.url }, config: { operational }, clock })
    await using _ = { [Symbol.asyncDispose]: () => shutDown(vmcp, clock) }
    const client = new WireClient(vmcp.url)
    if (era === 'legacy') await client.initialize()
    const lasting = async (ms: number) => {
      const before = backend.calls.length
      const answered = era === 'legacy' ? client.call('work') : client.modernCall('work')
      await expect.poll(() => backend.calls.length, { timeout: 10_000 }).toBe(before + 1)
      await clock.advance(ms)
      finish()
      const { headers, text, messages } = await answered
      expect(messages.at(-1).result.content).toEqual([{ type: 'text', text: 'done' }])
      return { isStream: headers.get('content-type') === 'text/event-stream', comments: text.match(/^:.*$/gm)?.length ?? 0 }
    }
    expect(await lasting(4_000)).toEqual({ isStream: false, comments: 0 })
    expect(await lasting(6_000)).toEqual({ isStream: true, comments: 0 })
    expect(await lasting(6_000 + 3 * 15_000)).toEqual({ isStream: true, comments: 3 })
  })
})
