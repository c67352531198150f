import { reject } from '@thv/mcp/wire-errors'
import type { Middleware } from '@thv/middleware/pipeline/middleware'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestRunner, type TestRunner } from '../../../apps/proxyrunner/src/testing/test-runner.ts'
import { WireClient } from './testing/wire-client.ts'

const ORIGIN = 'https://app.example.com'
const guard: Middleware = {
  name: 'guard',
  open: ({ exchange }) =>
    exchange.headers['authorization'] === undefined
      ? reject('unauthenticated', { headers: { 'www-authenticate': 'Bearer realm="x"' } })
      : undefined,
}
const PREFLIGHT = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization, mcp-param-City, x-evil',
}

let fixture: Fixture
let runner: TestRunner
beforeAll(async () => {
  fixture = await startFixture()
  runner = await startTestRunner({ backend: fixture.url, middleware: [guard], server: { allowedOrigins: [ORIGIN] } })
  await runner.probed()
})
afterAll(async () => {
  await runner[Symbol.asyncDispose]()
  await fixture.stop()
})

describe('a page of an allowed origin', () => {
  it('gets its preflight answered without a token', async () => {
    const answer = await fetch(runner.url, { method: 'OPTIONS', headers: { origin: ORIGIN, ...PREFLIGHT } })
    expect([answer.status, answer.headers.get('access-control-allow-origin'), answer.headers.get('vary')]).toEqual([204, ORIGIN, 'Origin'])
    expect(answer.headers.get('access-control-allow-methods')).toBe('GET, POST, DELETE')
    expect(answer.headers.get('access-control-allow-headers')).toMatch(/authorization.*mcp-session-id.*mcp-param-city$/)
  })

  it('may read the challenge, the session id and the answers', async () => {
    const rejected = await fetch(runner.url, { method: 'POST', headers: { origin: ORIGIN }, body: '{}' })
    expect(rejected.status).toBe(401)
    const client = new WireClient(runner.url, { origin: ORIGIN, authorization: 'Bearer x' })
    const opened = await client.initialize()
    expect([opened.status, client.sessionId]).toEqual([200, expect.any(String)])
    const called = await client.call('echo')
    for (const { headers } of [rejected, opened, called]) {
      expect(headers.get('access-control-allow-origin')).toBe(ORIGIN)
      expect(headers.get('access-control-expose-headers')).toBe('WWW-Authenticate, Mcp-Session-Id')
    }
    expect(rejected.headers.get('www-authenticate')).toBe('Bearer realm="x"')
  })
})

it('no other page gets anything', async () => {
  const headers = { origin: 'https://evil.example.com', ...PREFLIGHT }
  for (const method of ['OPTIONS', 'POST']) {
    const answer = await fetch(runner.url, { method, headers, ...(method === 'POST' && { body: '{}' }) })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([403, null])
  }
})

it('requests without an origin are as before', async () => {
  const answer = await fetch(runner.url, { method: 'OPTIONS', headers: PREFLIGHT })
  expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([401, null])
})
