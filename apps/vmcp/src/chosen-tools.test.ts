import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connectSdk } from '@thv/testkit/mcp/testing/sdk-client'
import { describe, expect, it } from 'vitest'
import { startTestVmcp, type TestVmcp } from './testing/test-vmcp.ts'

const connect = ({ url }: TestVmcp) => connectSdk(new StreamableHTTPClientTransport(new URL(url)), 'modern')

describe('tools of a virtual server', () => {
  it('[002-131] that are excluded are hidden and cannot be called; the others of the backend stay', async () => {
    await using fixture = await startFixture({ only: ['echo', 'greet', 'who_am_i'] })
    const aggregation = { conflictResolution: 'prefix', tools: [{ workload: 'one', exclude: ['greet'] }] }
    await using vmcp = await startTestVmcp({ backends: { one: fixture.url }, config: { aggregation } })
    await using sdk = await connect(vmcp)
    expect((await sdk.client.listTools()).tools.map(({ name }) => name)).toEqual(['one_echo', 'one_who_am_i'])
    await expect(sdk.text('one_greet')).rejects.toThrow('unknown tool')
    expect(await sdk.text('one_echo', { text: 'hello' })).toContain('hello')
  })

  it('[002-168] of equal names are those of the backend that comes first in the order of priority', async () => {
    await using a = await startFixture({ name: 'server-a', only: ['who_am_i', 'echo'] })
    await using b = await startFixture({ name: 'server-b', only: ['who_am_i'] })
    for (const priorityOrder of [
      ['a', 'b'],
      ['b', 'a'],
    ]) {
      const aggregation = { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder } }
      await using vmcp = await startTestVmcp({ backends: { a: a.url, b: b.url }, config: { aggregation } })
      await using sdk = await connect(vmcp)
      expect((await sdk.client.listTools()).tools.map(({ name }) => name)).toEqual(['echo', 'who_am_i'])
      expect(await sdk.json('who_am_i')).toMatchObject({ name: `server-${priorityOrder[0]}` })
    }
  })

  it('[002-147] of a dead backend fail alone: those of the others are listed and called', async () => {
    await using alive = await startFixture({ only: ['echo'] })
    const dead = await startFixture({ only: ['who_am_i'] })
    const operational = { failureHandling: { partialFailureMode: 'best_effort', unhealthyThreshold: 1 } }
    await using vmcp = await startTestVmcp({ backends: { alive: alive.url, dead: dead.url }, config: { operational } })
    await using sdk = await connect(vmcp)
    expect(await sdk.json('who_am_i')).toBeDefined()
    await dead.stop()
    await expect(sdk.text('who_am_i')).rejects.toThrow()
    expect(await sdk.text('echo', { text: 'hello' })).toContain('hello')
    expect((await fetch(`${vmcp.base}/readyz`)).status).toBe(200)
    await using later = await connect(vmcp)
    expect(await later.text('echo', { text: 'again' })).toContain('again')
  })
})
