import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

const ERAS = ['legacy', 'modern'] as const
const connect = ({ url }: TestVmcp, mode: 'legacy' | 'modern') => connectSdk(new StreamableHTTPClientTransport(new URL(url)), mode)
const sse = { backend: { transport: 'sse' } }

describe('a backend that speaks HTTP+SSE', () => {
  it.each(ERAS)('is listed and called, may ask, and announces changes: %s client', async (mode) => {
    await using a = await startFixture({ transport: 'sse', only: ['greet', 'test_elicitation', 'test_tool_with_progress', 'set_tool'] })
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, ...sse })
    await using sdk = await connect(vmcp, mode)
    const names = async () => (await sdk.client.listTools()).tools.map(({ name }) => name)
    expect(await names()).toEqual(['greet', 'set_tool', 'test_elicitation', 'test_tool_with_progress'])
    expect(await sdk.text('greet', { name: 'Ada' })).toBe('Hello, Ada!')
    expect(await sdk.text('test_elicitation', { message: 'who?' })).toContain('accept')
    const progress: number[] = []
    const onprogress = ({ progress: done }: { progress: number }) => void progress.push(done)
    await sdk.client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress })
    expect(progress.length).toBeGreaterThan(0)
    await sdk.text('set_tool', { name: 'new_one', present: true })
    await expect.poll(() => [...vmcp.offer.view.now.tools.keys()]).toContain('new_one')
    const status = (await (await fetch(`${vmcp.base}/status`)).json()) as { backends: object[] }
    expect(status.backends).toMatchObject([{ name: 'a', health: 'healthy', transport: 'sse' }])
  })

  it.each(ERAS)('gets another session after it has lost the old one; a call that may have run is not repeated: %s client', async (mode) => {
    await using a = await startFixture({ transport: 'sse', only: ['greet', 'hang'] })
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, ...sse })
    await using sdk = await connect(vmcp, mode)
    await sdk.text('greet')
    const before = a.stats.count('tools/call')
    const outcome = expect(sdk.text('hang')).rejects.toMatchObject({ data: { backend: 'a', mayHaveRun: true } })
    await expect.poll(() => a.stats.count('tools/call')).toBe(before + 1)
    a.admin.forgetSessions()
    await outcome
    expect(a.stats.count('tools/call')).toBe(before + 1)
    expect(await sdk.text('greet', { name: 'Ada' })).toBe('Hello, Ada!')
  })

  it('is not believed when it sends messages to another origin, and leaves the others alone', async () => {
    await using a = await startFixture({ transport: 'sse', sseEndpoint: 'foreign', only: ['greet'] })
    await using b = await startFixture({ transport: 'sse', only: ['echo'] })
    await using vmcp = await startTestVmcp({ backends: { a: a.url, b: b.url }, ...sse })
    await using sdk = await connect(vmcp, 'modern')
    expect((await sdk.client.listTools()).tools.map(({ name }) => name)).toEqual(['echo'])
    expect(vmcp.logged.join('\n')).toContain('could not list what a backend offers')
  })

  it('has one connection per client session, and none when that has ended', async () => {
    await using a = await startFixture({ transport: 'sse', only: ['greet'] })
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, ...sse })
    const shared = a.stats.sessions
    const transport = new StreamableHTTPClientTransport(new URL(vmcp.url))
    {
      await using sdk = await connectSdk(transport, 'legacy')
      await sdk.text('greet')
      await sdk.text('greet')
      expect(a.stats.sessions).toBe(shared + 1)
      await transport.terminateSession()
    }
    await expect.poll(() => a.stats.sessions).toBe(shared)
  })
})
