import type { AuthenticationResult } from '@thv/auth/incoming/authenticator'
import { TestClock } from '@thv/kernel/clock'
import { createAuthenticate } from '@thv/middleware/authenticate/authenticate'
import { createChallenges } from '@thv/middleware/authenticate/challenges'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, describe, expect, it } from 'vitest'
import { fixtureServer, pipeRuntime } from './backends/stdio/testing/pipe-runtime.ts'
import { startStdioRunner } from './backends/stdio/testing/stdio-runner.ts'
import { type Incoming, send } from './backends/stdio/testing/wire-client.ts'
import { startTestRunner } from './testing/test-runner.ts'

const LEEWAY_MS = 30_000
const LIFE_MS = 60_000

/** Believes tokens such as `ada.1`: of ada, good for one minute from now on. */
function believing(clock: TestClock) {
  const known = new Map<string, AuthenticationResult>()
  const authenticate = (authorization: string | undefined): AuthenticationResult => {
    const token = authorization?.replace('Bearer ', '') ?? ''
    if (!known.has(token)) {
      const identity = {
        subject: token.split('.')[0] ?? '',
        issuer: 'https://i',
        provider: 'p',
        claims: {},
        expiresAt: clock.now() + LIFE_MS,
      }
      known.set(token, { ok: true, identity })
    }
    return known.get(token) as AuthenticationResult
  }
  const challenges = createChallenges({ realm: 'r', resource: { authorizationServers: [], scopes: [] } })
  return createAuthenticate({ forwardToken: false }, { authenticator: { authenticate }, challenges, clock })
}

const stack: AsyncDisposable[] = []
afterEach(async () => {
  for (const each of stack.splice(0).toReversed()) await each[Symbol.asyncDispose]()
})

async function startRunner(backend: 'http' | 'sse' | 'stdio') {
  const clock = new TestClock()
  const middleware = [believing(clock)]
  if (backend === 'stdio') {
    const runner = await startStdioRunner({ runtime: pipeRuntime(fixtureServer({ era: 'dual' })), middleware })
    stack.push(runner)
    return { clock, url: runner.url, base: runner.base }
  }
  const fixture = await startFixture({ transport: backend })
  const runner = await startTestRunner({ backend: fixture.url, transport: backend === 'sse' ? 'sse' : 'streamable-http', middleware })
  stack.push(fixture, runner)
  return { clock, url: runner.url, base: runner.base }
}

const JSON_TYPE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const as = (token: string, more: Record<string, string> = {}) => ({ ...JSON_TYPE, authorization: `Bearer ${token}`, ...more })
const post = (url: string, message: object, headers: Record<string, string>) =>
  send(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) })

const INITIALIZE = {
  ...{ id: 0, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
}

/** The client sees the end of the stream, and no error. */
async function ended(stream: Incoming): Promise<void> {
  await stream.all()
}

describe('a stream ends with the token that opened it', () => {
  it.each(['http', 'stdio'] as const)('GET of a session (%s); a new token carries the session on', async (backend) => {
    const { clock, url } = await startRunner(backend)
    const opened = await post(url, INITIALIZE, as('ada.1'))
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': '2025-11-25' }
    await post(url, { method: 'notifications/initialized' }, as('ada.1', session))
    const stream = await send(url, { headers: as('ada.1', { ...session, accept: 'text/event-stream' }) })
    expect(stream.status).toBe(200)
    await clock.advance(LIFE_MS + LEEWAY_MS - 1)
    await post(url, { id: 1, method: 'tools/call', params: { name: 'test_trigger_tool_change' } }, as('ada.2', session))
    expect(await stream.next()).toMatchObject({ method: 'notifications/tools/list_changed' })
    await clock.advance(1)
    await ended(stream)
    const again = await send(url, { headers: as('ada.2', { ...session, accept: 'text/event-stream' }) })
    expect(again.status).toBe(200)
    await post(url, { id: 2, method: 'tools/call', params: { name: 'test_trigger_tool_change' } }, as('ada.2', session))
    expect(await again.next()).toMatchObject({ method: 'notifications/tools/list_changed' })
    expect((await post(url, { id: 3, method: 'ping' }, as('eve.1', session))).status).toBe(404)
    again.abort()
  })

  it.each(['http', 'stdio'] as const)('subscriptions/listen (%s), with a result', async (backend) => {
    const { clock, url } = await startRunner(backend)
    const version = '2026-07-28'
    const meta = { 'io.modelcontextprotocol/protocolVersion': version, 'io.modelcontextprotocol/clientCapabilities': {} }
    const params = { notifications: { toolsListChanged: true }, _meta: meta }
    const headers = as('ada.1', { 'mcp-protocol-version': version, 'mcp-method': 'subscriptions/listen' })
    const stream = await post(url, { id: 'l', method: 'subscriptions/listen', params }, headers)
    expect(await stream.next()).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
    await clock.advance(LIFE_MS + LEEWAY_MS)
    expect((await stream.all()).at(-1)).toMatchObject({ id: 'l', result: { resultType: 'complete' } })
  })

  it.each(['sse', 'stdio'] as const)('HTTP+SSE (%s), but not before its calls are answered', async (backend) => {
    const { clock, base } = await startRunner(backend)
    const stream = await send(`${base}/sse`, { headers: as('ada.1') })
    await expect.poll(() => stream.events.length, { timeout: 30_000 }).toBeGreaterThan(0)
    const endpoint = new URL(stream.events[0]?.data ?? '', base).href
    await post(endpoint, INITIALIZE, as('ada.1'))
    await stream.next(({ id }) => id === 0)
    await post(endpoint, { method: 'notifications/initialized' }, as('ada.1'))
    await post(endpoint, { id: 'slow', method: 'tools/call', params: { name: 'slow', arguments: { ms: 700 } } }, as('ada.1'))
    await clock.advance(LIFE_MS + LEEWAY_MS)
    expect(await stream.next(({ id }) => id === 'slow')).toHaveProperty('result')
    let isOver = false
    void ended(stream).then(() => {
      isOver = true
    })
    await expect.poll(() => clock.advance(1_000).then(() => isOver), { timeout: 30_000 }).toBe(true)
    expect((await post(endpoint, { id: 1, method: 'ping' }, as('ada.2'))).status).toBe(404)
  })
})

it('no timer is left by a stream that its client ends', async () => {
  const { clock, url } = await startRunner('http')
  const opened = await post(url, INITIALIZE, as('ada.1'))
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
  const stream = await send(url, { headers: as('ada.1', { ...session, accept: 'text/event-stream' }) })
  await expect.poll(() => clock.pending).toBe(1)
  stream.abort()
  await expect.poll(() => clock.pending, { timeout: 30_000 }).toBe(0)
})
