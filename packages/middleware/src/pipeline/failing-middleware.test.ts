import { systemClock } from '@thv/kernel/clock'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestRunner } from '../../../../apps/proxyrunner/src/testing/test-runner.ts'
import { WireClient } from '../../../gateway/src/testing/wire-client.ts'
import { createAudit } from '../audit/audit.ts'
import type { AuditEvent } from '../audit/audit-event.ts'
import type { Middleware } from './middleware.ts'

/* A middleware with a mistake: one request fails, and nothing else. */

const SECRET = 'sk-0123456789abcdef'
const AUDIT = {
  ...{ component: 'test', eventTypes: [], excludeEventTypes: [], includeRequestData: false, includeResponseData: false },
  ...{ detectApplicationErrors: true, maxDataBytes: 1024, maxDelegationDepth: 10, trustProxyHeaders: false, trustedProxies: [] },
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture()
})
afterAll(() => fixture?.stop())

type Fail = () => never | Promise<never>
const throws = () => {
  throw new TypeError(`cannot read ${SECRET} of undefined`)
}
const rejects = () => Promise.reject(new TypeError(`cannot read ${SECRET} of undefined`))

/** Each step, failing in a request that asks for it. */
const STEPS: readonly [string, (fail: (context: { exchange: { headers: object } | undefined }) => never) => Partial<Middleware>, Fail][] = [
  ['open', (fail) => ({ open: fail }), throws],
  ['open, later', (fail) => ({ open: fail }), rejects],
  ['message', (fail) => ({ message: fail }), throws],
  ['message, later', (fail) => ({ message: fail }), rejects],
  ['prepare', (fail) => ({ prepare: fail }), throws],
  ['prepare, later', (fail) => ({ prepare: fail }), rejects],
  ['headers', (fail) => ({ headers: fail }), throws],
]

it.each(STEPS)('%s that fails answers 500 with its code, is in the audit log, and the next request is served', async (_, step, fail) => {
  const events: AuditEvent[] = []
  const sink = { write: (event: AuditEvent) => void events.push(event), close: async () => {} }
  const failing: Middleware = {
    name: 'failing',
    ...step((context) => ('x-fail' in (context.exchange?.headers ?? {}) ? (fail() as never) : (undefined as never))),
  }
  await using runner = await startTestRunner({
    backend: fixture.url,
    middleware: [createAudit(AUDIT, { clock: systemClock, sink }), failing],
  })
  await runner.probed()
  const client = new WireClient(runner.url)
  for (let round = 0; round < 3; round++) {
    const failed = await client.modernCall('echo', {}, { headers: { 'x-fail': '1' } })
    expect([failed.status, failed.messages]).toEqual([
      500,
      [
        {
          jsonrpc: '2.0',
          ...(failed.messages[0]?.id !== undefined && { id: expect.any(Number) }),
          error: expect.objectContaining({ code: -32603 }),
        },
      ],
    ])
    expect(failed.text).not.toContain(SECRET)
    expect(failed.text).not.toContain('TypeError')
    expect((await client.modernCall('echo')).status).toBe(200)
  }
  await expect.poll(() => events.map(({ outcome }) => outcome)).toEqual(['error', 'success', 'error', 'success', 'error', 'success'])
  expect(events[0]?.metadata.extra).toMatchObject({ status_code: 500, rejection: expect.any(String) })
  expect(JSON.stringify(events)).not.toContain(SECRET)
  expect(runner.logged.join('\n')).toMatch(/TypeError|cannot read/)
})
