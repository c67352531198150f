import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { WireClient } from '@thv/gateway/testing/wire-client'
import { createOutbound } from '@thv/http/outbound/outbound'
import type { Exchange } from '@thv/http/server/exchange'
import { systemClock } from '@thv/kernel/clock'
import { BackendEras } from '@thv/mcp/client/http/backend-eras'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { staticBackends } from './discover/static-backends.ts'
import { healthSettings } from './live/live-server.ts'
import { MemberRoster } from './members/member-roster.ts'
import { outgoingScope } from './members/outgoing-scope.ts'
import { passedHeaders, withPassed } from './members/passed-headers.ts'
import { startGuardedBackend } from './testing/guarded-backend.ts'
import { FIRST_WAIT_MS, startTestVmcp, type TestVmcp, testConfig } from './testing/test-vmcp.ts'
import { viewSettings } from './view/built-view.ts'
import { ViewCache } from './view/view-cache.ts'

const ERAS = ['legacy', 'modern'] as const

function connect({ url }: TestVmcp, mode: 'legacy' | 'modern', headers: Readonly<Record<string, string>>) {
  return connectSdk(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }), mode)
}

describe('headers of clients that are passed on', () => {
  it.each(ERAS.flatMap((client) => ERAS.map((backend) => ({ client, backend }))))(
    'reach the backends, and no others do: $client client, $backend backend',
    async ({ client: mode, backend: era }) => {
      await using a = await startFixture({ era, only: ['report_request'] })
      await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { passthroughHeaders: ['X-Tenant', 'X-Trace-Note'] } })
      await using one = await connect(vmcp, mode, { 'x-tenant': 'one', 'x-other': 'no', authorization: 'Bearer no', cookie: 'no' })
      await using none = await connect(vmcp, mode, {})
      const { headers } = await one.json('report_request')
      expect(headers).toMatchObject({ 'x-tenant': 'one' })
      for (const name of ['x-other', 'authorization', 'cookie', 'x-trace-note']) expect(headers).not.toHaveProperty(name)
      expect((await none.json('report_request'))['headers']).not.toHaveProperty('x-tenant')
      expect((await one.json('report_request'))['headers']).toMatchObject({ 'x-tenant': 'one' })
    },
  )

  it.each(ERAS)('give each value lists of its own, which no other caller sees: %s client', async (mode) => {
    await using a = await startGuardedBackend({ header: 'x-tenant', toolOf: (value) => (value === '' ? 'common' : `of_${value}`) })
    a.accepts = (value) => value !== 'bad'
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { passthroughHeaders: ['X-Tenant'] } })
    const names = async (headers: Readonly<Record<string, string>>) => {
      await using sdk = await connect(vmcp, mode, headers)
      return (await sdk.client.listTools()).tools.map(({ name }) => name)
    }
    expect(await names({ 'x-tenant': 'one' })).toEqual(['of_one'])
    expect(await names({ 'x-tenant': 'two' })).toEqual(['of_two'])
    expect(await names({})).toEqual(['common'])
    expect(await names({ 'x-tenant': 'bad' })).toEqual([])
    expect(await names({ 'x-tenant': 'one' })).toEqual(['of_one'])
    await using two = await connect(vmcp, mode, { 'x-tenant': 'two' })
    expect(await two.text('of_two')).toBe('two')
    await expect(two.text('of_one')).rejects.toThrow()
  })

  it('make lists private, also for requests without them: a cache knows nothing of headers', async () => {
    await using a = await startFixture({ only: ['echo'] })
    const scopes = async (config: object) => {
      await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { ...config } })
      const list = async (headers: Readonly<Record<string, string>>) =>
        (await new WireClient(vmcp.url).modern('tools/list', {}, { headers })).messages[0].result.cacheScope
      return [await list({}), await list({ 'x-tenant': 'one' })]
    }
    expect(await scopes({})).toEqual(['public', 'public'])
    expect(await scopes({ passthroughHeaders: ['X-Tenant'] })).toEqual(['private', 'private'])
  })

  it.each(ERAS)('go with the answers of their own client to questions of a backend: %s client', async (mode) => {
    await using a = await startFixture({ era: 'legacy', only: ['test_elicitation'] })
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { passthroughHeaders: ['X-Tenant'] } })
    for (const tenant of ['one', 'two', 'one']) {
      await using sdk = await connect(vmcp, mode, { 'x-tenant': tenant })
      expect(await sdk.text('test_elicitation', { message: 'who?' })).toContain('accept')
      const answers = a.stats.received.filter(({ message }) => JSON.stringify(message).includes('"action":"accept"'))
      expect(answers.at(-1)?.headers).toMatchObject({ 'x-tenant': tenant })
    }
  })

  it('let policies judge the tools of each caller by their own hints and backend', async () => {
    await using a = await startGuardedBackend({
      header: 'x-tenant',
      tool: (value) => ({ name: 'act', annotations: { readOnlyHint: value === 'safe' }, inputSchema: { type: 'object' } }),
    })
    a.accepts = () => true
    const policies = [
      'permit(principal, action, resource) when { resource.backend == "a" && resource has readOnlyHint && resource.readOnlyHint };',
    ]
    const incomingAuth = { type: 'anonymous', authz: { type: 'cedar', policies } }
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { passthroughHeaders: ['X-Tenant'], incomingAuth } })
    for (const mode of ERAS) {
      await using safe = await connect(vmcp, mode, { 'x-tenant': 'safe' })
      await using other = await connect(vmcp, mode, { 'x-tenant': 'other' })
      expect(await safe.text('act')).toBe('safe')
      await expect(other.text('act')).rejects.toThrow()
      expect(await safe.text('act')).toBe('safe')
    }
  })

  it('lose against forwarded headers and credentials of the backend', async () => {
    await using a = await startFixture({ only: ['report_request'] })
    await using vmcp = await startTestVmcp({
      backends: { a: a.url },
      env: { TOOLHIVE_HEADER_FORWARD_A: JSON.stringify({ addPlaintextHeaders: { 'X-Tenant': 'forwarded' } }) },
      config: {
        passthroughHeaders: ['X-Tenant', 'X-Key', 'X-More'],
        outgoingAuth: {
          source: 'inline',
          default: { type: 'header_injection', headerInjection: { headerName: 'X-Key', headerValue: 'right' } },
        },
      },
    })
    await using sdk = await connect(vmcp, 'modern', { 'x-tenant': 'mine', 'x-key': 'stolen', 'x-more': 'more' })
    const { headers } = await sdk.json('report_request')
    expect(headers).toMatchObject({ 'x-tenant': 'forwarded', 'x-key': 'right', 'x-more': 'more' })
    expect(vmcp.logged.join('\n')).toMatch(/x-key, x-tenant/)
  })

  it('cost memory once for callers with equal lists, and within a bound for others', async () => {
    await using a = await startGuardedBackend({
      header: 'x-tenant',
      toolOf: (value) => (value.startsWith('same') ? 'same' : `of_${value}`),
    })
    a.accepts = () => true
    await using vmcp = await startTestVmcp({ backends: { a: a.url }, config: { passthroughHeaders: ['X-Tenant'] } })
    const { view } = vmcp.offer
    const list = async (tenant: string) => {
      const passed = passedHeaders(['x-tenant'], { 'x-tenant': tenant } as never)
      const seen = await outgoingScope.run({ caller: undefined, exchange: undefined, passed }, async () => await view.current())
      return [...seen.tools.keys()]
    }
    for (let i = 0; i < 50; i++) expect(await list(`same${i}`)).toEqual(['same'])
    const { count, views, size } = view.callers
    expect([count, views]).toEqual([50, 1])
    expect(await list('other')).toEqual(['of_other'])
    expect(view.callers).toMatchObject({ count: 51, views: 2 })
    // A change for all of them replaces the view of all.
    view.reconfigure({
      config: testConfig({ backends: {}, config: { aggregation: { conflictResolution: 'prefix' } } }).aggregation,
      workflows: [],
    })
    expect(view.callers.views).toBe(0)
    for (let i = 0; i < 50; i++) expect(await list(`same${i}`)).toEqual(['a_same'])
    expect(view.callers).toMatchObject({ count: 51, views: 1 })
    expect(view.callers.size).toBeLessThan(3 * size)
    expect(await (await fetch(`${vmcp.base}/metrics`)).text()).toContain('toolhive_vmcp_caller_views{of="views"} 1')
  })

  it('drop the views of callers that were not seen for longest when all are too large', async () => {
    await using a = await startGuardedBackend({ header: 'x-tenant', toolOf: (value) => `of_${value}` })
    a.accepts = () => true
    await using outbound = createOutbound()
    const log = new CollectingLog()
    const eras = new BackendEras({ clock: systemClock })
    const roster = new MemberRoster({ outbound, providers: outbound, eras, clock: systemClock, log, version: '1' })
    const config = testConfig({ backends: { a: a.url } })
    roster.apply(await staticBackends(config, {}, log), healthSettings(config))
    const view = new ViewCache({
      roster,
      settings: viewSettings(config),
      clock: systemClock,
      log,
      maxCallerSize: 1_000,
      firstWaitMs: FIRST_WAIT_MS,
    })
    const list = async (tenant: string, remoteAddress = '10.0.0.1') => {
      const passed = passedHeaders(['x-tenant'], { 'x-tenant': tenant } as never)
      const exchange = { remoteAddress, headers: {} } as Exchange
      const seen = await outgoingScope.run({ caller: undefined, exchange, passed }, async () => await view.current())
      return [...seen.tools.keys()]
    }
    view.start()
    await view.attempted
    expect(await list('ada', '10.0.0.2')).toEqual(['of_ada'])
    for (let i = 0; i < 30; i++) expect(await list(`${i}`)).toEqual([`of_${i}`])
    expect(view.callers.count).toBeLessThan(15)
    expect(view.callers.size).toBeLessThan(1_300)
    // A party with ever new headers pushes out its own views: that of another is answered from memory.
    const before = a.seen.length
    expect(await list('ada', '10.0.0.2')).toEqual(['of_ada'])
    expect(a.seen.slice(before)).toEqual([])
    expect(await list('0')).toEqual(['of_0'])
    expect(a.seen.slice(before)).toContain('0')
    await view.close()
    expect(view.callers).toEqual({ count: 0, views: 0, size: 0 })
    await roster.close()
    eras.close()
  })

  it('differ by name and value, and only valid values pass', () => {
    const key = (headers: Readonly<Record<string, string | string[]>>) => passedHeaders(['a', 'b'], headers as never)?.key
    expect(key({})).toBeUndefined()
    expect(key({ c: '1' })).toBeUndefined()
    expect(key({ a: '1' })).toBe(key({ a: '1', c: '2' }))
    expect(new Set([key({ a: '1' }), key({ b: '1' }), key({ a: '1', b: '1' }), key({ a: '1,b' }), key({ a: '' })]).size).toBe(5)
    expect(passedHeaders(['a'], { a: 'x\u0001' } as never)).toBeUndefined()
    expect(passedHeaders(['a'], { a: 'x\u00a0' } as never)).toBeUndefined()
    expect(withPassed({ a: 'own' }, { headers: { a: '1', b: '2', c: '3' }, key: '' }, ['c'])).toEqual({ a: 'own', b: '2' })
  })
})
