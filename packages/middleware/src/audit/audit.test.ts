import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { systemClock } from '@thv/kernel/clock'
import { reject } from '@thv/mcp/wire-errors'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startTestRunner, type TestRunnerOptions } from '../../../../apps/proxyrunner/src/testing/test-runner.ts'
import { readUntil, WireClient } from '../../../gateway/src/testing/wire-client.ts'
import type { Middleware } from '../pipeline/middleware.ts'
import { createToolFilter } from '../tool-filter/tool-filter.ts'
import { type AuditOptions, createAudit } from './audit.ts'

const ajv = new Ajv2020({ allErrors: true })
formats.default(ajv)
const SCHEMA = JSON.parse(readFileSync(new URL('../../../../docs/reference/audit-event.schema.json', import.meta.url), 'utf8'))
const isEvent = ajv.compile(SCHEMA)

const OPTIONS: AuditOptions = {
  ...{ component: 'test', eventTypes: [], excludeEventTypes: [], includeRequestData: false, includeResponseData: false },
  ...{ detectApplicationErrors: true, maxDataBytes: 1024, maxDelegationDepth: 10, trustProxyHeaders: false, trustedProxies: [] },
}

const SECRET = 'sk-0123456789abcdef'

let fixture: Fixture
beforeEach(async () => {
  fixture = await startFixture()
})
afterEach(() => fixture.stop())

// biome-ignore lint/suspicious/noExplicitAny: events are looked at as their readers get them
type Line = any

async function start(options: Partial<AuditOptions> = {}, runnerOptions: Partial<TestRunnerOptions> = {}) {
  const lines: string[] = []
  const sink = { write: (event: object) => void lines.push(JSON.stringify(event)), close: async () => {} }
  const audit = createAudit({ ...OPTIONS, ...options }, { clock: systemClock, sink })
  const middleware = [audit, ...(runnerOptions.middleware ?? [])]
  const runner = await startTestRunner({ backend: fixture.url, ...runnerOptions, middleware })
  if (runnerOptions.transport !== 'sse') await runner.probed()
  const events = (): Line[] => lines.map((line) => JSON.parse(line))
  const last = async (count: number): Promise<Line> => {
    await expect.poll(() => lines.length, { timeout: 20_000 }).toBe(count)
    const event = events().at(-1)
    isEvent(event)
    expect(isEvent.errors ?? []).toEqual([])
    return event
  }
  return { runner, lines, events, last, client: new WireClient(runner.url), [Symbol.asyncDispose]: () => runner[Symbol.asyncDispose]() }
}

/** Sends bytes, and waits for the end of the connection or the first answer. */
function raw(base: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    socket.on('data', (chunk) => {
      resolve(chunk.toString('latin1'))
      socket.destroy()
    })
    socket.on('error', () => resolve('')).on('close', () => resolve(''))
  })
}

/** Knows one token, and denies a method; both as a middleware of the pipeline does. */
const guard: Middleware = {
  name: 'guard',
  open(context) {
    const { authorization } = context.exchange.headers
    if (authorization === undefined) return undefined
    if (authorization !== 'Bearer good') return reject('invalid_request', { httpStatus: 401, headers: { 'www-authenticate': 'Bearer' } })
    const claims = { sub: 'ada', act: { sub: 'agent', iss: 'https://idp', act: { sub: 'service' } } }
    context.caller = { principal: 'p', identity: { subject: 'ada', issuer: 'https://idp', provider: 'idp', claims, displayName: 'Ada L.' } }
    return undefined
  },
  message({ received }) {
    if (received.method === 'prompts/list') return reject('forbidden_host', { httpStatus: 403 })
    if (received.method === 'resources/list') return reject('pipeline_full', { httpStatus: 429 })
    if (received.method === 'prompts/get') throw new Error('a fault of a middleware')
    return undefined
  },
}

describe('audit', () => {
  it('writes one event per request over a table of hostile ones, each valid, none with a secret', async () => {
    const httpLimits = { bodyTimeoutMs: 100, bodyGraceMs: 10 }
    const gate = await start(
      { includeRequestData: true, includeResponseData: true },
      { middleware: [guard], gateway: { maxBodyBytes: 4_000 }, httpLimits },
    )
    await using _ = gate
    const { runner, client, last } = gate
    const { base } = runner
    let count = 0
    const expectEvent = async (does: Promise<unknown>, expected: object) => {
      const answer = await does
      count++
      expect(await last(count), JSON.stringify(answer)?.slice(0, 300)).toMatchObject(expected)
      expect(runner.gateway.stats.requests).toBe(count)
    }
    const extra = (of: object) => ({ metadata: { extra: of } })
    const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

    await expectEvent(client.modernCall('echo', { text: 'x' }), {
      outcome: 'success',
      type: 'mcp_tool_call',
      target: { name: 'echo', type: 'tool' },
    })
    await expectEvent(client.modernCall('rpc_error'), { outcome: 'application_error' })
    await expectEvent(client.modernCall('test_error_handling'), { outcome: 'application_error' })
    await expectEvent(client.modernCall('no_such_tool'), { target: { name: 'no_such_tool' } })
    await expectEvent(client.modernCall('echo', {}, bearer(`${SECRET}`)), {
      outcome: 'denied',
      type: 'http_request',
      ...extra({ status_code: 401, rejection: 'invalid_request' }),
    })
    await expectEvent(client.modernCall('echo', {}, bearer('good')), {
      subjects: { user: 'Ada L.', user_id: 'ada', issuer: 'https://idp' },
    })
    await expectEvent(client.modern('prompts/list'), { outcome: 'denied', ...extra({ status_code: 403 }) })
    await expectEvent(client.modern('resources/list'), { outcome: 'failure', ...extra({ status_code: 429 }) })
    await expectEvent(client.modern('prompts/get', { name: 'p' }), {
      outcome: 'error',
      target: { type: 'prompt', name: 'p' },
      ...extra({ status_code: 500 }),
    })
    await expectEvent(fetch(`${base}/nothing?access_token=${SECRET}`), {
      outcome: 'failure',
      target: { endpoint: '/nothing' },
      ...extra({ status_code: 404 }),
    })
    await expectEvent(fetch(`${base}/mcp?token=${SECRET}`, { method: 'PUT' }), extra({ status_code: 405, rejection: 'method_not_allowed' }))
    await expectEvent(client.post('x'.repeat(5_000)), { outcome: 'failure', ...extra({ status_code: 413, rejection: 'body_too_large' }) })
    await expectEvent(client.post(`{"token":"${SECRET}"`), { outcome: 'failure', ...extra({ status_code: 400, rejection: 'parse_error' }) })
    await expectEvent(client.post('[]'), extra({ status_code: 400 }))
    await expectEvent(client.post({ jsonrpc: '2.0', id: 1, method: 5 }), extra({ status_code: 400 }))
    await expectEvent(client.post({ a: 1 }, { headers: { 'content-type': 'text/plain' } }), extra({ status_code: 415 }))
    await expectEvent(client.modern(`x/${'y'.repeat(600)}`), { type: 'mcp_request' })
    await expectEvent(client.modern('tools/call', { name: 5 }), { type: 'mcp_tool_call' })
    await expectEvent(client.modernCall('echo', { password: SECRET, nested: { api_key: SECRET }, text: `Bearer ${SECRET}` }), {
      outcome: 'success',
    })
    const stolen = { 'mcp-session-id': 'of-somebody-else', 'mcp-protocol-version': '2025-11-25' }
    await expectEvent(client.post({ jsonrpc: '2.0', id: 1, method: 'ping' }, { headers: stolen }), {
      type: 'mcp_ping',
      ...extra({ status_code: 404, rejection: 'session_not_found' }),
    })
    await expectEvent(fetch(`${base}/mcp`, { headers: { ...stolen, accept: 'text/event-stream' } }), {
      type: 'sse_connection',
      outcome: 'failure',
    })
    await expectEvent(fetch(`${base}/mcp`, { method: 'DELETE', headers: stolen }), { type: 'http_request', outcome: 'failure' })
    await expectEvent(raw(base, 'POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n'), {
      outcome: 'denied',
      ...extra({ status_code: 403, rejection: 'forbidden_host' }),
    })
    await expectEvent(raw(base, 'GET /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n'), extra({ status_code: 400 }))
    await expectEvent(raw(base, `GET /mcp HTTP/1.1\r\nHost: localhost\r\n${'x: y\r\n'.repeat(100)}\r\n`), extra({ status_code: 431 }))
    await expectEvent(raw(base, 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n'), {
      outcome: 'failure',
      ...extra({ status_code: 408 }),
    })
    await expectEvent(client.modernCall('echo', {}, { headers: { 'user-agent': `evil\u00ff Bearer ${SECRET}`, 'x-request-id': 'r-1' } }), {
      source: { extra: { request_id: 'r-1' } },
    })
    await expectEvent(client.modernCall('echo', {}, { headers: { 'x-forwarded-for': '6.6.6.6' } }), { source: { value: '127.0.0.1' } })
    expect(gate.lines.join('\n')).not.toContain(SECRET)
  })

  it('reports streams when they open, clients that leave, and answers that come as event streams', async () => {
    await using gate = await start()
    const { client, last } = gate
    await client.initialize()
    expect(await last(2)).toMatchObject({ type: 'mcp_notification' })
    expect(gate.events()[0]).toMatchObject({
      type: 'mcp_initialize',
      subjects: { user: 'anonymous', client_name: 'wire', client_version: '1' },
    })
    const leave = new AbortController()
    const stream = await client.get({}, leave.signal)
    expect(stream.status).toBe(200)
    expect(await last(3)).toMatchObject({ type: 'sse_connection', outcome: 'success', target: { type: 'sse_endpoint' } })
    leave.abort()
    const streamed = await client.request('tools/call', { name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 1 } })
    expect(streamed.headers.get('content-type')).toContain('text/event-stream')
    expect(await last(4)).toMatchObject({ type: 'mcp_tool_call', outcome: 'success' })
    const failed = await client.call('rpc_error')
    expect(await last(5), failed.text).toMatchObject({
      outcome: 'application_error',
      metadata: { extra: { jsonrpc_error_code: expect.any(Number) } },
    })
    const away = new AbortController()
    const before = fixture.stats.count('tools/call')
    const hanging = client.modernCall('hang', {}, { signal: away.signal }).catch(() => 'left')
    await expect.poll(() => fixture.stats.count('tools/call'), { timeout: 20_000 }).toBe(before + 1)
    away.abort()
    expect(await hanging).toBe('left')
    expect(await last(6)).toMatchObject({ outcome: 'failure', metadata: { extra: { aborted: true } } })
  })

  it('reports a modern subscription once, when it opens', async () => {
    await using gate = await start()
    const leave = new AbortController()
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
    const body = {
      jsonrpc: '2.0',
      id: 'l',
      method: 'subscriptions/listen',
      params: { notifications: { toolsListChanged: true }, _meta: meta },
    }
    const headers = {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'subscriptions/listen',
      accept: 'application/json, text/event-stream',
    }
    const response = await fetch(gate.runner.url, {
      ...{ method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body), signal: leave.signal },
    })
    await readUntil(response, 'acknowledged')
    expect(await gate.last(1)).toMatchObject({ target: { method: 'subscriptions/listen' }, outcome: 'success' })
    leave.abort()
    await gate.client.modernCall('echo')
    expect(await gate.last(2)).toMatchObject({ target: { method: 'tools/call' } })
  })

  it('reports HTTP+SSE', async () => {
    await using sse = await startFixture({ transport: 'sse' })
    await using gate = await start({}, { backend: sse.url, transport: 'sse' })
    const leave = new AbortController()
    const stream = await fetch(gate.runner.url, { headers: { accept: 'text/event-stream' }, signal: leave.signal })
    expect(stream.status).toBe(200)
    expect(await gate.last(1)).toMatchObject({ type: 'sse_connection', metadata: { extra: { transport: 'sse' } } })
    await fetch(`${gate.runner.base}/messages?sessionId=x`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    })
    expect(await gate.last(2)).toMatchObject({ type: 'mcp_ping', outcome: 'failure', metadata: { extra: { status_code: 404 } } })
    leave.abort()
  })

  it('names the tool that the client asked for, not the one it was renamed from', async () => {
    const filter = createToolFilter({ filter: [], overrides: { echo: { name: 'say' } } }, { warn: () => {} })
    await using gate = await start({}, { middleware: [filter] })
    await gate.client.modernCall('say')
    expect(await gate.last(1)).toMatchObject({ outcome: 'success', target: { name: 'say' } })
    await gate.client.modernCall('echo')
    expect(await gate.last(2)).toMatchObject({
      outcome: 'application_error',
      target: { name: 'echo' },
      metadata: { extra: { rejection: 'invalid_params' } },
    })
  })

  it('adds payloads only where they are asked for, small, and without secrets', async () => {
    await using off = await start()
    await off.client.modernCall('echo', { text: 'hello' })
    expect((await off.last(1)).data).toBeUndefined()
    await using on = await start({ includeRequestData: true, includeResponseData: true })
    await on.client.modernCall('echo', { text: 'hello', token: SECRET })
    const { data } = await on.last(1)
    expect(data.request.params.arguments).toEqual({ text: 'hello', token: '[redacted]' })
    expect(JSON.stringify(data.response)).toContain('hello')
    await on.client.modernCall('echo', { text: 'x'.repeat(2_000) })
    expect((await on.last(2)).data).toBeUndefined()
    expect(on.lines.join('')).not.toContain(SECRET)
  })

  it('leaves out types that are excluded or not listed, and reports errors as successes without detection', async () => {
    await using gate = await start({
      ...{ eventTypes: ['mcp_tool_call', 'mcp_ping'], excludeEventTypes: ['mcp_ping'], detectApplicationErrors: false },
    })
    await gate.client.initialize()
    await gate.client.request('ping')
    await gate.client.call('rpc_error')
    expect(await gate.last(1)).toMatchObject({ type: 'mcp_tool_call', outcome: 'success' })
  })

  it('reports the delegation chain, cut at its limit', async () => {
    await using gate = await start({ maxDelegationDepth: 1 }, { middleware: [guard] })
    await gate.client.modernCall('echo', {}, { headers: { authorization: 'Bearer good' } })
    const chain = [{ iss: 'https://idp', sub: 'agent' }]
    expect((await gate.last(1)).delegation).toEqual({ chain, truncated: true, omitted: 1, malformed: false })
  })

  it('reports the decision of policies; a denied call is denied whatever its status', async () => {
    const errors = [{ policy: 'broken', message: `no attribute; Bearer ${SECRET}` }]
    const policies: Middleware = {
      name: 'policies',
      message(context) {
        const candidate = { decision: 'allow' as const, policies: ['next'], errors: [] }
        context.authz = { decision: 'deny', policies: ['no-echo'], errors, candidate, isListed: false }
        return reject('invalid_params', { detail: 'there is no such tool', inBand: true })
      },
    }
    await using gate = await start({}, { middleware: [policies] })
    await gate.client.modernCall('echo')
    expect(await gate.last(1)).toMatchObject({
      ...{ outcome: 'denied', metadata: { extra: { status_code: 200 } } },
      authz: {
        decision: 'deny',
        policies: ['no-echo'],
        errors: [{ policy: 'broken' }],
        candidate: { decision: 'allow', policies: ['next'] },
        tool_listed: false,
      },
    })
    expect(gate.lines.join('')).not.toContain(SECRET)
  })

  it('does not report probes of the platform', async () => {
    await using gate = await start()
    await fetch(`${gate.runner.base}/health`)
    await fetch(`${gate.runner.base}/ready`)
    await gate.client.modernCall('echo')
    expect(await gate.last(1)).toMatchObject({ type: 'mcp_tool_call' })
  })
})
