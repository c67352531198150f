import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it } from 'vitest'
import { get, rawExchange, startServer } from '../testing/loopback.ts'
import { createHealth, type Health } from './health.ts'
import { sendText } from './respond.ts'

async function ask(health: Health, request: string): Promise<{ status: number; head: string; body: string }> {
  await using loopback = await startServer((exchange) => {
    if (!health.handle(exchange)) sendText(exchange, 'elsewhere')
  })
  const answer = await rawExchange(loopback.port, request)
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head, body }
}

const close = ['Connection: close']

describe('health', () => {
  it('is alive, and says so without the version', async () => {
    const health = createHealth({ clock: new TestClock(Date.UTC(2026, 7, 21, 10)), details: () => ({ transport: 'stdio' }) })
    const { status, head, body } = await ask(health, get('/health', close))
    expect(status).toBe(200)
    expect(head).toContain('Cache-Control: no-store')
    expect(JSON.parse(body)).toEqual({ status: 'healthy', timestamp: '2026-08-21T10:00:00.000Z', transport: 'stdio' })
  })

  it('is ready when all checks are', async () => {
    const health = createHealth()
    expect((await ask(health, get('/ready', close))).body).toBe('{"status":"ready","checks":{}}')
    let ok = false
    health.addCheck('backend', () => ({ ok, message: ok ? 'up' : 'starting' }))
    const remove = health.addCheck('store', () => ({ ok: true }))
    const before = await ask(health, get('/ready?verbose', close))
    expect(before.status).toBe(503)
    expect(JSON.parse(before.body)).toEqual({
      status: 'not_ready',
      checks: { backend: { ok: false, message: 'starting' }, store: { ok: true } },
    })
    ok = true
    remove()
    const after = await ask(health, get('/ready', close))
    expect(after.status).toBe(200)
    expect(JSON.parse(after.body)).toEqual({ status: 'ready', checks: { backend: { ok: true, message: 'up' } } })
  })

  it('takes a check that throws for one that failed', () => {
    const health = createHealth()
    health.addCheck('broken', () => {
      throw new Error('oops')
    })
    expect(health.ready()).toEqual({ status: 'not_ready', checks: { broken: { ok: false, message: 'the check failed: internal_error' } } })
  })

  it('stays away from other paths, and answers other methods with 405', async () => {
    const health = createHealth({ readinessPath: '/readyz' })
    expect((await ask(health, get('/healthy', close))).body).toBe('elsewhere')
    expect((await ask(health, get('/ready', close))).body).toBe('elsewhere')
    expect((await ask(health, get('/readyz', close))).status).toBe(200)
    const post = await ask(health, 'POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    expect(post.status).toBe(405)
    expect(post.head).toContain('Allow: GET, HEAD')
    expect(await ask(health, 'HEAD /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')).toMatchObject({ status: 200, body: '' })
  })
})
