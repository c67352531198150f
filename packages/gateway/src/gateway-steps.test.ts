import { connect } from 'node:net'
import { TestClock } from '@thv/kernel/clock'
import { reject } from '@thv/mcp/wire-errors'
import type { Middleware } from '@thv/middleware/pipeline/middleware'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startTestRunner, type TestRunner, type TestRunnerOptions } from '../../../apps/proxyrunner/src/testing/test-runner.ts'
import { readUntil, WireClient } from './testing/wire-client.ts'

let fixture: Fixture
const runners: TestRunner[] = []

beforeEach(async () => {
  fixture = await startFixture()
})
afterEach(async () => {
  for (const runner of runners.splice(0)) await runner[Symbol.asyncDispose]()
  await fixture.stop()
})

interface Seen {
  readonly opened: string[]
  readonly ended: string[]
  readonly streaming: string[]
}

/** Writes down `open`, `streaming` and `end` as "METHOD route", `end` with status, outcome and error code. */
function recorder(seen: Seen): Middleware {
  const line = ({ exchange, route }: { exchange: { method: string }; route: string }) => `${exchange.method} ${route}`
  return {
    name: 'recorder',
    open: (context) => void seen.opened.push(line(context)) as undefined,
    streaming: (context) => void seen.streaming.push(line(context)),
    end: (context) =>
      void seen.ended.push([line(context), context.exchange.status, context.outcome, context.rejection?.error ?? ''].join(' ').trim()),
  }
}

async function start(options: Partial<TestRunnerOptions> = {}) {
  const seen: Seen = { opened: [], ended: [], streaming: [] }
  const middleware = [recorder(seen), ...(options.middleware ?? [])]
  const runner = await startTestRunner({ backend: fixture.url, ...options, middleware })
  runners.push(runner)
  if (options.transport !== 'sse') await runner.probed()
  return { ...runner, ...seen, client: new WireClient(runner.url) }
}

describe('open', () => {
  const closed: Middleware = { name: 'closed', open: () => reject('invalid_request', { httpStatus: 401 }) }
  const routes = {
    '/status': { guarded: true, handle: ({ response }: { response: { end(): void } }) => void response.end() },
    '/login': { guarded: false, handle: ({ response }: { response: { end(): void } }) => void response.end() },
  }

  it.each([
    ['POST', '/mcp', 401],
    ['GET', '/mcp', 401],
    ['DELETE', '/mcp', 401],
    ['PUT', '/mcp', 401],
    ['OPTIONS', '/mcp/', 401],
    ['GET', '/metrics', 401],
    ['GET', '/status', 401],
    ['POST', '/status', 401],
    ['GET', '/login', 200],
    ['GET', '/health', 200],
    ['GET', '/ready', 200],
    ['GET', '/.well-known/oauth-protected-resource', 404],
    ['GET', '/nothing', 404],
  ])('%s %s without permission is %i', async (method, path, status) => {
    const { base } = await start({ middleware: [closed], server: { metricsHere: true }, routes })
    const body = method === 'POST' ? { body: '{}' } : {}
    expect((await fetch(base + path, { method, ...body })).status).toBe(status)
  })

  it.each(['/sse', '/messages?sessionId=x'])('guards every method of %s', async (path) => {
    await using sse = await startFixture({ transport: 'sse' })
    const { base, opened } = await start({ backend: sse.url, transport: 'sse', middleware: [closed] })
    for (const method of ['GET', 'POST', 'DELETE']) {
      const body = method === 'POST' ? { body: '{}' } : {}
      expect((await fetch(base + path, { method, ...body })).status).toBe(401)
    }
    expect(opened).toEqual(['GET', 'POST', 'DELETE'].map((method) => `${method} ${path.replace(/\?.*/, '')}`))
  })

  it('comes before the first byte of the body', async () => {
    const { base } = await start({ middleware: [closed] })
    const { hostname, port } = new URL(base)
    const socket = connect(Number(port), hostname)
    socket.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n')
    const [chunk] = await socket
      .iterator({ destroyOnReturn: true })
      .next()
      .then(({ value }) => [String(value)])
    expect(chunk).toMatch(/^HTTP\/1.1 401 /)
    socket.destroy()
  })

  it('can wait, and the request goes on afterwards', async () => {
    const waiting: Middleware = { name: 'waiting', open: () => new Promise((resolve) => setImmediate(resolve, undefined)) }
    const { client } = await start({ middleware: [waiting] })
    expect((await client.modernCall('echo')).status).toBe(200)
    await client.initialize()
    expect((await client.call('echo')).status).toBe(200)
  })
})

describe('end', () => {
  it('comes once for every exchange, with its outcome', async () => {
    const forbid: Middleware = {
      name: 'forbid',
      message: ({ received }) => (received.method === 'prompts/list' ? reject('method_not_found', { inBand: true }) : undefined),
    }
    const { base, url, client, ended, streaming } = await start({ middleware: [forbid], gateway: { maxBodyBytes: 500 } })
    const expected: string[] = []
    const expectEnd = async (line: string) => {
      expected.push(line)
      await expect.poll(() => ended).toEqual(expected)
    }
    await fetch(`${base}/nothing`)
    await expectEnd('GET  404 rejected')
    await fetch(`${base}/health`)
    await expectEnd('GET /health 200 ok')
    await fetch(url, { method: 'PUT' })
    await expectEnd('PUT /mcp 405 rejected method_not_allowed')
    await client.post('x'.repeat(501))
    await expectEnd('POST /mcp 413 rejected body_too_large')
    await client.post('{')
    await expectEnd('POST /mcp 400 rejected parse_error')
    await client.modern('prompts/list')
    await expectEnd('POST /mcp 200 rejected method_not_found')
    await client.modernCall('echo')
    await expectEnd('POST /mcp 200 ok')
    await client.modernCall('test_error_handling')
    await expectEnd('POST /mcp 200 toolError')
    await client.modernCall('rpc_error')
    await expectEnd('POST /mcp 200 error')
    await client.post(
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      { headers: { 'mcp-session-id': 'unknown', 'mcp-protocol-version': '2025-11-25' } },
    )
    await expectEnd('POST /mcp 404 rejected session_not_found')

    const leave = new AbortController()
    const hanging = client.modernCall('hang', {}, { signal: leave.signal }).catch(() => 'left')
    await expect.poll(() => fixture.stats.count('tools/call')).toBe(4)
    leave.abort()
    expect(await hanging).toBe('left')
    await expectEnd('POST /mcp 200 aborted')

    await client.initialize()
    expected.push('POST /mcp 200 ok', 'POST /mcp 202 ok')
    await expect.poll(() => ended).toEqual(expected)
    const away = new AbortController()
    const stream = await client.get({}, away.signal)
    expect(stream.status).toBe(200)
    await expect.poll(() => streaming).toEqual(['GET /mcp'])
    expect(ended).toEqual(expected) // it is still open
    away.abort()
    await expectEnd('GET /mcp 200 ok')
    await client.delete()
    await expectEnd('DELETE /mcp 200 ok')
  })

  it('comes after a slow body, and where there are too many requests at once', async () => {
    const limits = { bodyTimeoutMs: 50, bodyGraceMs: 10, maxPipelined: 1 }
    const { base, ended } = await start({ httpLimits: limits })
    const { hostname, port } = new URL(base)
    const head = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n'
    const slow = connect(Number(port), hostname)
    slow.write(head)
    await expect.poll(() => ended, { timeout: 20_000 }).toEqual(['POST /mcp 408 rejected'])
    slow.destroy()
    ended.length = 0
    const many = connect(Number(port), hostname)
    many.write(`POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n${head}`.repeat(2))
    await expect.poll(() => ended.join(), { timeout: 20_000 }).toContain('503 rejected pipeline_full')
    many.destroy()
  })

  it('comes after a rejected Host and while draining', async () => {
    const gatewayClock = new TestClock()
    const { base, ended, gateway } = await start({ gatewayClock, httpLimits: { drainIdleMs: 60_000 } })
    const { hostname, port } = new URL(base)
    const socket = connect(Number(port), hostname)
    socket.write('POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n')
    await expect.poll(() => ended).toEqual(['POST /mcp 403 rejected forbidden_host'])
    const drained = gateway.drain(AbortSignal.timeout(10_000))
    await gatewayClock.advance(1)
    socket.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n')
    await expect.poll(() => ended.slice(1)).toEqual(['POST /mcp 503 rejected draining'])
    socket.destroy()
    await gatewayClock.advance(60_000)
    await drained
  })

  it('of one middleware does not keep another from its own, and is only logged', async () => {
    const failing: Middleware = {
      name: 'failing',
      end() {
        throw new Error('broken end')
      },
    }
    const { client, ended, logged } = await start({ middleware: [failing] })
    expect((await client.modernCall('echo')).status).toBe(200)
    await expect.poll(() => ended).toEqual(['POST /mcp 200 ok'])
    expect(logged.join('\n')).toContain('broken end')
  })
})

describe('streaming', () => {
  it('runs for a modern subscription', async () => {
    const { client, streaming, url } = await start()
    const leave = new AbortController()
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
    const params = { notifications: { toolsListChanged: true }, _meta: meta }
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'subscriptions/listen',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 'l', method: 'subscriptions/listen', params }),
      signal: leave.signal,
    })
    await readUntil(response, 'acknowledged')
    expect(streaming).toEqual(['POST /mcp'])
    await client.modernCall('echo')
    expect(streaming).toHaveLength(1)
    leave.abort()
  })
})

describe('mounted routes', () => {
  it('see the caller; an MCP endpoint cannot be replaced', async () => {
    const identify: Middleware = {
      name: 'identify',
      open(context) {
        context.caller = { principal: 'ada' }
        return undefined
      },
    }
    const routes = {
      '/who': {
        guarded: true,
        handle: async ({ response }: { response: { end(text: string): void } }, { caller }: { caller: { principal: string } }) =>
          response.end(caller.principal),
      },
      '/mcp': { guarded: false, handle: ({ response }: { response: { end(): void } }) => void response.end() },
    }
    const { base, client, ended } = await start({ middleware: [identify], routes })
    expect(await (await fetch(`${base}/who`)).text()).toBe('ada')
    expect(await (await fetch(`${base}/who?q=1`)).text()).toBe('ada')
    expect((await client.modernCall('echo')).messages[0].result).toBeDefined()
    await expect.poll(() => ended).toEqual(['GET /who 200 ok', 'GET /who 200 ok', 'POST /mcp 200 ok'])
  })
})
