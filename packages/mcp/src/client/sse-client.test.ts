import { createOutbound } from '@thv/http/outbound/outbound'
import { startBackend } from '@thv/http/testing/backend'
import { describe, expect, it, vi } from 'vitest'
import { createHttpSseClient } from './http/http-sse-client.ts'
import { ANSWERS, CLIENT_INFO, connectPeers } from './testing/fixture-client.ts'

describe('HTTP+SSE', () => {
  it('is a new session when the old one is gone, with what it knew; the call in flight is not repeated', async () => {
    await using peers = await connectPeers({ transport: 'sse', client: ANSWERS })
    await peers.client.request('resources/subscribe', { uri: 'test://watched-resource' })
    const hung = peers.call('hang')
    await vi.waitFor(() => expect(peers.fixture.stats.count('tools/call')).toBe(1), 10_000)
    const outcome = expect(hung).rejects.toMatchObject({ code: 'mcp_stream_broken' })
    peers.fixture.admin.forgetSessions()
    await outcome
    expect(await peers.text('echo', {})).toBe('{}')
    expect(peers.fixture.stats).toMatchObject({ sessions: 1, sessionsCreated: 2 })
    expect(peers.fixture.stats.count('resources/subscribe')).toBe(2)
  })

  it('ends with its stream', async () => {
    await using peers = await connectPeers({ transport: 'sse' })
    await peers.client.close()
    await vi.waitFor(() => expect(peers.fixture.stats.sessions).toBe(0), 10_000)
  })

  it('refuses to send messages to another origin', async () => {
    const failed = connectPeers({ transport: 'sse', sseEndpoint: 'foreign' })
    await expect(failed).rejects.toMatchObject({ code: 'backend_protocol_error', message: expect.stringContaining('http://example.com') })
  })

  it('breaks off in the middle of an answer', async () => {
    await using peers = await connectPeers({ transport: 'sse' })
    await expect(peers.call('close_mid_stream')).rejects.toMatchObject({ code: 'mcp_stream_broken' })
    expect(await peers.text('echo', {})).toBe('{}')
  })

  it.each([
    [404, 'text/plain', '', 'mcp_http_status'],
    [401, 'text/plain', '', 'mcp_auth_required'],
    [200, 'application/json', '{}', 'backend_protocol_error'],
    [200, 'text/event-stream', ': nothing\n\n', 'backend_protocol_error'],
  ])('is not there: %i %s %j', async (status, type, body, code) => {
    await using backend = await startBackend((_request, response) => void response.writeHead(status, { 'content-type': type }).end(body))
    await using outbound = createOutbound()
    await using client = createHttpSseClient({ url: `${backend.url}/sse`, outbound, clientInfo: CLIENT_INFO })
    await expect(client.connect()).rejects.toMatchObject({ code })
  })

  it('is given up when no endpoint is named in time', async () => {
    await using backend = await startBackend((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    })
    await using outbound = createOutbound()
    await using client = createHttpSseClient({
      url: `${backend.url}/sse`,
      outbound,
      clientInfo: CLIENT_INFO,
      limits: { connectTimeoutMs: 50 },
    })
    await expect(client.connect()).rejects.toMatchObject({ code: 'timeout' })
    await vi.waitFor(() => expect(backend.sockets.size).toBe(0), 10_000)
  })
})
