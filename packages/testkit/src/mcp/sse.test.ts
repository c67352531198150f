import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, it, vi } from 'vitest'
import { WATCHED } from './features/resources.ts'
import { type Fixture, startFixture } from './fixture.ts'
import type { FixtureOptions } from './state/options.ts'

describe('the fixture over HTTP+SSE, with the official client of the 1.x line', () => {
  it.for(['relative', 'absolute'] as const)('serves a client that receives a %s endpoint', async (sseEndpoint) => {
    await using peers = await connected({ sseEndpoint })
    expect(peers.fixture.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/sse$/)
    expect(await peers.text('echo', { text: 'größer' })).toBe('{"text":"größer"}')
    expect(await peers.text('test_input_required_result_elicitation')).toBe('Hello, Ada!')
    expect(JSON.parse(await peers.text('report_request'))).toMatchObject({ era: 'legacy', transport: 'sse', clientInfo: { name: 'v1' } })
  })

  it('tells about changes on the one stream', async () => {
    await using peers = await connected({})
    const updated = vi.fn()
    peers.client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => updated(params.uri))
    await peers.client.subscribeResource({ uri: WATCHED })
    peers.fixture.admin.resourceUpdated('test://other')
    peers.fixture.admin.resourceUpdated(WATCHED)
    await vi.waitFor(() => expect(updated.mock.calls).toEqual([[WATCHED]]), 10_000)
  })

  it('names a foreign endpoint when told to, which the client refuses', async () => {
    await expect(connected({ sseEndpoint: 'foreign' })).rejects.toThrow(/origin/i)
  })

  it('forgets a session with its stream; its endpoint is then unknown', async () => {
    await using peers = await connected({})
    expect(peers.fixture.stats.sessions).toBe(1)
    expect(peers.fixture.admin.forgetSessions()).toBe(1)
    await vi.waitFor(() => expect(peers.fixture.stats.sessions).toBe(0), 10_000)
    const messages = new URL('/messages?sessionId=gone', peers.fixture.url)
    expect((await fetch(messages, { method: 'POST', body: '{}' })).status).toBe(404)
    expect((await fetch(new URL('/messages', peers.fixture.url), { method: 'POST', body: '{}' })).status).toBe(400)
  })

  it('does not exist in the modern revision', async () => {
    await expect(startFixture({ transport: 'sse', era: 'modern' })).rejects.toThrow(/legacy era only/)
  })
})

async function connected(options: FixtureOptions) {
  const fixture: Fixture = await startFixture({ ...options, transport: 'sse' })
  const client = new Client({ name: 'v1', version: '1.32.2' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }))
  const close = async () => {
    await client.close()
    await fixture.stop()
  }
  try {
    await client.connect(new SSEClientTransport(new URL(fixture.url)))
  } catch (error) {
    await close()
    throw error
  }
  const text = async (name: string, args: Record<string, unknown> = {}) => {
    const result = await client.callTool({ name, arguments: args })
    const [first] = result.content as { text: string }[]
    return first?.text ?? ''
  }
  return { client, fixture, text, [Symbol.asyncDispose]: close }
}
