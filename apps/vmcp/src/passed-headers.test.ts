import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { passedHeaders, withPassed } from './members/passed-headers.ts'
import { startGuardedBackend } from './testing/guarded-backend.ts'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

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
