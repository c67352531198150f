import { createOutbound } from '@thv/http/outbound/outbound'
import { type BackendHandler, startBackend } from '@thv/http/testing/backend'
import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it, vi } from 'vitest'
import type { JsonObject } from '../json-rpc.ts'
import { createStreamableHttpClient, type StreamableHttpOptions } from './http/streamable-http-client.ts'
import { ANSWERS, CLIENT_INFO, connectPeers } from './testing/fixture-client.ts'

const CAPABILITIES = { tools: {} }

describe('a request as a modern server receives it', () => {
  it('is a complete envelope, its headers derived from the body, and no session', async () => {
    await using peers = await connectPeers({ client: { headers: { 'X-Trace': 'abc', 'Mcp-Method': 'forged', 'Mcp-Session-Id': 'S' } } })
    const params = {
      name: 'report_request',
      arguments: {},
      _meta: { 'com.example/k': 1, 'io.modelcontextprotocol/clientInfo': { name: 'other hop' } },
    }
    const result = await peers.client.request('tools/call', params, { logLevel: 'debug', capabilities: { roots: {} } })
    expect(JSON.stringify(result['structuredContent'])).not.toContain('mcp-session-id')
    expect(result['structuredContent']).toMatchObject({
      headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'report_request', 'x-trace': 'abc' },
      meta: {
        'com.example/k': 1,
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
        'io.modelcontextprotocol/clientCapabilities': { roots: {} },
        'io.modelcontextprotocol/logLevel': 'debug',
      },
    })
  })

  it('calls its headers for each request, where they are a function', async () => {
    let count = 0
    await using peers = await connectPeers({ client: { headers: async () => ({ authorization: `Bearer ${++count}` }) } })
    expect(await peers.text('report_request')).toContain('"authorization":"Bearer 2"')
    expect(await peers.text('report_request')).toContain('"authorization":"Bearer 3"')
  })

  it('has headers for annotated arguments once the tools are listed', async () => {
    await using peers = await connectPeers({ oddTools: true })
    const names = (await peers.client.list('tools/list')).map((tool) => tool['name'])
    expect(names).toContain('region_query')
    expect(names).not.toContain('zz_invalid_header')
    expect(peers.warnings).toEqual([expect.stringContaining('zz_invalid_header')])
    const before = peers.fixture.stats.count('tools/list')
    const result = await peers.call('region_query', { region: ' ü', limit: 7, dry_run: false, where: { tenant: 't' }, note: 'n' })
    expect(result['structuredContent']).toMatchObject({
      headers: { 'mcp-param-region': '=?base64?IMO8?=', 'mcp-param-limit': '7', 'mcp-param-dry-run': 'false', 'mcp-param-tenant': 't' },
    })
    expect(peers.fixture.stats.count('tools/list')).toBe(before)
  })

  it('is corrected when the server misses such headers: the tools are listed, the call is sent again', async () => {
    await using peers = await connectPeers({ pageSize: 10 })
    expect(await peers.text('region_query', { region: 'eu' })).toContain('"mcp-param-region":"eu"')
    expect(peers.fixture.stats.count('tools/call')).toBe(2)
    expect(peers.fixture.stats.count('tools/list')).toBeGreaterThan(1)
  })

  it('brings log messages and progress of this call to this call', async () => {
    await using peers = await connectPeers()
    const logs: unknown[] = []
    await peers.call('test_tool_with_logging', {}, { logLevel: 'info', onNotification: ({ params }) => logs.push(params?.['data']) })
    expect(logs).toHaveLength(3)
    expect(peers.notifications).toEqual([])
    await peers.call('flood', { count: 2_000, force: true, bytes: 100 })
    expect(peers.notifications).toHaveLength(2_000)
  })
})

describe('faults of a modern server', () => {
  it('are errors of that call alone', async () => {
    await using peers = await connectPeers({ client: { limits: { maxMessageBytes: 100_000 } } })
    await expect(peers.call('close_mid_stream')).rejects.toMatchObject({ code: 'mcp_stream_broken', cause: { code: 'backend_reset' } })
    await expect(peers.call('big_result', { bytes: 200_000 })).rejects.toMatchObject({ code: 'message_too_large' })
    await expect(peers.call('wrong_id')).rejects.toMatchObject({ code: 'backend_protocol_error' })
    await expect(peers.call('test_missing_capability')).rejects.toMatchObject({ rpcCode: -32021, httpStatus: 400 })
    expect(await peers.text('echo', {})).toBe('{}')
  })

  it.each([
    [401, 'mcp_auth_required'],
    [403, 'mcp_auth_required'],
    [429, 'mcp_http_status'],
    [500, 'mcp_http_status'],
    [503, 'mcp_http_status'],
  ])('HTTP %i in the middle of things is %s', async (status, code) => {
    await using peers = await connectPeers()
    peers.fixture.admin.fail({ status, times: 1, headers: { 'retry-after': '7', 'www-authenticate': 'Bearer realm="x"' } })
    const error = await peers.call('echo').catch((e: unknown) => e)
    expect(error).toMatchObject({ code, status })
    if (status === 429) expect(error).toMatchObject({ retryAfterMs: 7_000 })
    if (status === 401) expect(error).toMatchObject({ challenge: 'Bearer realm="x"' })
    expect(await peers.text('echo', {})).toBe('{}')
  })

  it('end the call when the server sends a request of its own', async () => {
    const request = 'data: {"jsonrpc":"2.0","id":1,"method":"roots/list"}\n\n'
    await using peers = await scripted(
      (_message, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(request),
      ANSWERS,
    )
    await expect(peers.client.request('tools/call', { name: 'x' })).rejects.toMatchObject({ code: 'backend_protocol_error' })
  })

  it.each([
    ['absent means complete', { content: [] }, undefined],
    ['complete', { resultType: 'complete' }, undefined],
    ['unknown is an error', { resultType: 'sideways' }, 'backend_protocol_error'],
    ['an unrequested task', { resultType: 'task', taskId: 't' }, 'backend_protocol_error'],
  ])('resultType: %s', async (_title, result, code) => {
    await using peers = await scripted((message, response) => json(response, { id: message['id'], result }))
    const outcome = peers.client.request('tools/call', { name: 'x' })
    if (code === undefined) expect(await outcome).toEqual(result)
    else await expect(outcome).rejects.toMatchObject({ code })
  })

  it('a task is a result for who knows tasks, and input_required for who wants to see it', async () => {
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
    await using peers = await scripted((message, response) => json(response, { id: message['id'], result: resultFor(message) }))
    const task = await peers.client.request('tools/call', { name: 'task' }, { capabilities })
    expect(task).toMatchObject({ resultType: 'task' })
    const input = await peers.client.request('tools/call', { name: 'ask' }, { returnInputRequired: true })
    expect(input).toMatchObject({ resultType: 'input_required', requestState: 's' })
  })

  it('a stream that stays open behind its answer is cut off; one that ends leaves its connection to the next call', async () => {
    let isCut = false
    await using peers = await scripted((message, response) => {
      const isOpen = JSON.stringify(message).includes('"name":"open"')
      response.on('close', () => {
        isCut ||= isOpen
      })
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: { resultType: 'complete' } })}\n\n`)
      if (!isOpen) response.end()
    })
    for (let i = 0; i < 20; i++) await peers.client.request('tools/call', { name: 'closed' })
    expect(peers.connections()).toBeLessThanOrEqual(3) // the next call may come before the end of the last stream
    await peers.client.request('tools/call', { name: 'open' })
    await vi.waitFor(() => expect(isCut).toBe(true), { timeout: 10_000 })
  })

  it('-32022 that lists our version is answered by saying it again, once', async () => {
    const error = { code: -32022, message: 'no', data: { supported: ['2026-07-28'], requested: 'x' } }
    const ids: unknown[] = []
    await using peers = await scripted((message, response) => {
      ids.push(message['id'])
      if (ids.length === 1) json(response, { id: message['id'], error }, 400)
      else json(response, { id: message['id'], result: { resultType: 'complete' } })
    })
    expect(await peers.client.request('tools/call', { name: 'x' })).toEqual({ resultType: 'complete' })
    expect(new Set(ids).size).toBe(2)
    await using stubborn = await scripted((message, response) => {
      ids.push(message['id'])
      json(response, { id: message['id'], error }, 400)
    })
    await expect(stubborn.client.request('tools/call', { name: 'x' })).rejects.toMatchObject({ rpcCode: -32022 })
    expect(ids).toHaveLength(4)
  })
})

describe('listening to a modern server', () => {
  it('goes on after the server ended it or broke it off, and tells of the gap', async () => {
    await using peers = await connectPeers()
    const onNotification = vi.fn()
    const onGap = vi.fn()
    await using _listening = await peers.client.listen({ toolsListChanged: true }, { onNotification, onGap })
    peers.fixture.admin.endListens()
    await vi.waitFor(() => expect(onGap).toHaveBeenCalledTimes(1), { timeout: 15_000 })
    peers.fixture.admin.listChanged('tools')
    await vi.waitFor(() => expect(onNotification).toHaveBeenCalledTimes(1), 10_000)
    expect(peers.fixture.stats.listens).toBe(1)
  })

  it('ends with the stream when it is closed', async () => {
    await using peers = await connectPeers()
    const listening = await peers.client.listen({ promptsListChanged: true }, { onNotification: () => {} })
    expect(peers.fixture.stats.listens).toBe(1)
    await listening.close()
    await vi.waitFor(() => expect(peers.fixture.stats.listens).toBe(0), 10_000)
  })

  it.each([
    ['something else before the acknowledgement', 'notifications/tools/list_changed', 'backend_protocol_error'],
    ['an end without it', undefined, 'mcp_stream_broken'],
  ])('refuses %s', async (_title, method, code) => {
    await using peers = await scripted((message, response) => {
      const params = { _meta: { 'io.modelcontextprotocol/subscriptionId': message['id'] } }
      const event = method ? `data: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n` : ''
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (method) response.write(event)
      else response.end(': \n\n')
    })
    await expect(peers.client.listen({ toolsListChanged: true }, { onNotification: () => {} })).rejects.toMatchObject({ code })
  })

  it('says so when the server knows no listening', async () => {
    await using peers = await scripted((message, response) =>
      json(response, { id: message['id'], error: { code: -32601, message: 'no' } }, 404),
    )
    const refused = peers.client.listen({ toolsListChanged: true }, { onNotification: () => {} })
    await expect(refused).rejects.toMatchObject({ rpcCode: -32601 })
  })

  it('drops what is not of this subscription', async () => {
    await using peers = await scripted((message, response) => {
      const tell = (id: unknown, method: string) =>
        response.write(
          `data: ${JSON.stringify({ jsonrpc: '2.0', method, params: { _meta: { 'io.modelcontextprotocol/subscriptionId': id } } })}\n\n`,
        )
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      tell(String(message['id']), 'notifications/subscriptions/acknowledged') // of another type: not ours
      tell(message['id'], 'notifications/subscriptions/acknowledged')
      tell('other', 'notifications/tools/list_changed')
      tell(message['id'], 'notifications/tools/list_changed')
    })
    const heard = vi.fn()
    await using _listening = await peers.client.listen({ toolsListChanged: true }, { onNotification: heard })
    await vi.waitFor(() => expect(heard).toHaveBeenCalledOnce(), 10_000)
    expect(peers.warnings).toHaveLength(2)
  })

  it('that never open a listen stream are given up, also where calls have no limit', async () => {
    const clock = new TestClock()
    let asked = 0
    const limits = { timeoutMs: Number.POSITIVE_INFINITY }
    await using peers = await scripted(() => void asked++, { clock, limits })
    const outcome = expect(peers.client.listen({ toolsListChanged: true }, { onNotification: () => {} })).rejects.toMatchObject({
      code: 'timeout',
    })
    await vi.waitFor(() => expect(asked).toBe(1), 10_000)
    await clock.advance(60_000)
    await outcome
  })
})

type ModernHandler = (message: JsonObject, response: Parameters<BackendHandler>[1]) => void

/** A server that answers `server/discover` well, and everything else as configured. */
async function scripted(handler: ModernHandler, options: Partial<StreamableHttpOptions> = {}) {
  const outbound = createOutbound()
  const warnings: string[] = []
  const backend = await startBackend((request, response) => {
    const message = JSON.parse(request.body) as JsonObject
    const result = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: CAPABILITIES, ttlMs: 0, cacheScope: 'public' }
    if (message['method'] === 'server/discover') json(response, { id: message['id'], result })
    else handler(message, response)
  })
  const onWarning = (text: string) => void warnings.push(text)
  const client = createStreamableHttpClient({ url: `${backend.url}/mcp`, outbound, clientInfo: CLIENT_INFO, onWarning, ...options })
  const dispose = async () => {
    await client.close()
    await outbound.close()
    await backend[Symbol.asyncDispose]()
  }
  await client.connect()
  return { client, warnings, requests: backend.requests, connections: () => backend.connections, [Symbol.asyncDispose]: dispose }
}

function json(response: Parameters<BackendHandler>[1], message: JsonObject, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', ...message }))
}

function resultFor(message: JsonObject): JsonObject {
  const isTask = JSON.stringify(message).includes('"name":"task"')
  return isTask ? { resultType: 'task', taskId: 't' } : { resultType: 'input_required', requestState: 's' }
}
