import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { META } from '@thv/mcp/envelope'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { startTestVmcp } from './testing/test-vmcp.ts'

const ERAS = ['legacy', 'modern'] as const
const COMBINATIONS = ERAS.flatMap((client) => ERAS.map((backend) => ({ client, backend })))
const POLL = { timeout: 20_000, interval: 20 }

type Params = Readonly<Record<string, unknown>> & { readonly _meta?: object }

describe.each(COMBINATIONS)('beside its results, a virtual server relays: $client client, $backend backend', ({ client: era, backend }) => {
  async function start() {
    const stack = new AsyncDisposableStack()
    const fixture = stack.use(await startFixture({ era: backend }))
    const vmcp = stack.use(await startTestVmcp({ backends: { one: fixture.url } }))
    const client = new WireClient(vmcp.url)
    if (era === 'legacy') await client.initialize()
    const send = (method: string, params: Params) => (era === 'legacy' ? client.request(method, params) : client.modern(method, params))
    return { stack, fixture, vmcp, client, send }
  }

  it('progress, under the token of the client, and before the result', async () => {
    const { stack, send } = await start()
    await using _ = stack
    const { messages } = await send('tools/call', { name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 'mine' } })
    const told = messages.filter(({ method }) => method === 'notifications/progress')
    expect(told.map(({ params }) => params.progressToken)).toEqual(told.map(() => 'mine'))
    expect(told.map(({ params }) => params.progress)).toEqual(expect.arrayContaining([50, 100]))
    expect(messages.at(-1)).toHaveProperty('result')
  })

  it('log messages of the level that the client asks for, and none unless it does', async () => {
    const { stack, client, send } = await start()
    await using _ = stack
    const call = async (level: string) => {
      if (era === 'legacy') await client.request('logging/setLevel', { level })
      const meta = era === 'modern' && { _meta: { [META.logLevel]: level } }
      const { messages } = await send('tools/call', { name: 'test_tool_with_logging', arguments: {}, ...meta })
      expect(messages.at(-1)).toHaveProperty('result')
      return messages.filter(({ method }) => method === 'notifications/message').length
    }
    expect(await call('info')).toBe(3)
    expect(await call('emergency')).toBe(0)
  })

  it('completions, of the backend that has the prompt', async () => {
    const { stack, fixture, send } = await start()
    await using _ = stack
    const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' }
    const { messages } = await send('completion/complete', { ref, argument: { name: 'arg1', value: 'par' } })
    expect(messages.at(-1).result.completion.values).toEqual(expect.any(Array))
    expect(fixture.stats.count('completion/complete')).toBe(1)
  })

  it('the end of a call that the client gives up', async () => {
    const { stack, fixture, client } = await start()
    await using _ = stack
    const hangUp = new AbortController()
    const { signal } = hangUp
    const call = { jsonrpc: '2.0', id: 'given up', method: 'tools/call', params: { name: 'hang', arguments: {} } }
    const hanging = (era === 'legacy' ? client.post(call, { signal }) : client.modernCall('hang', {}, { signal })).catch(() => undefined)
    await expect.poll(() => fixture.stats.count('tools/call'), POLL).toBe(1)
    if (era === 'legacy') await client.notify('notifications/cancelled', { requestId: 'given up' })
    else hangUp.abort()
    await expect.poll(() => fixture.stats.cancelled.map(({ name }) => name), POLL).toEqual(['hang'])
    hangUp.abort()
    await hanging
  })

  it('the change of a list, and of no other list', async () => {
    const { stack, fixture, vmcp } = await start()
    await using _ = stack
    await using sdk = await connectSdk(new StreamableHTTPClientTransport(new URL(vmcp.url)), era)
    sdk.client.setNotificationHandler('notifications/resources/list_changed', () => void sdk.notifications.push('resources'))
    if (era === 'modern') await sdk.client.listen({ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true })
    await expect.poll(() => fixture.stats.streams + fixture.stats.listens, POLL).toBeGreaterThan(0)
    for (const name of ['new_1', 'new_2', 'new_3']) await sdk.text('set_tool', { name })
    await expect.poll(() => [...vmcp.offer.view.now.tools.keys()], POLL).toEqual(expect.arrayContaining(['new_1', 'new_2', 'new_3']))
    await expect.poll(() => sdk.notifications, POLL).toContain('notifications/tools/list_changed')
    expect(new Set(sdk.notifications)).toEqual(new Set(['notifications/tools/list_changed']))
  })
})
