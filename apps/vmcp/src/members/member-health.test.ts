import { TestClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import { McpErrorResponse, McpHttpError } from '@thv/mcp/client/client-errors'
import { describe, expect, it } from 'vitest'
import { LocalRefusal } from './local-refusal.ts'
import { failureCategory, MemberHealth } from './member-health.ts'

const TIMEOUT = new ThvError('timeout', 'silent')
const SETTINGS = { unhealthyThreshold: 2, circuit: { enabled: true, failureThreshold: 3, timeoutMs: 1_000 } }

describe('the health of a backend', () => {
  it('is unknown, then follows the outcomes', () => {
    const health = new MemberHealth(new TestClock(), SETTINGS)
    expect(health.status).toBe('unknown')
    health.succeeded()
    expect(health.status).toBe('healthy')
    health.failed(TIMEOUT)
    expect(health.status).toBe('degraded')
    health.failed(TIMEOUT)
    expect(health.status).toBe('unhealthy')
    expect(health.report).toMatchObject({ ConsecutiveFailures: 2, LastErrorCategory: 'timeout', CircuitState: 'closed' })
    health.failed(new McpErrorResponse({ code: -32602, message: 'no such tool' }))
    expect(health.status).toBe('healthy')
  })

  it('opens the circuit, admits one call when its time is over, and closes or opens again by its outcome', async () => {
    const clock = new TestClock()
    const health = new MemberHealth(clock, SETTINGS)
    for (let i = 0; i < 3; i++) {
      expect(health.admit()).toBeUndefined()
      health.failed(TIMEOUT)
    }
    expect(health.circuit).toBe('open')
    expect(health.admit()).toBe(1_000)
    await clock.advance(1_000)
    expect(health.circuit).toBe('half-open')
    expect(health.admit()).toBeUndefined()
    expect(health.admit()).toBeGreaterThan(0)
    health.failed(TIMEOUT)
    expect(health.admit()).toBe(1_000)
    await clock.advance(1_000)
    expect(health.admit()).toBeUndefined()
    health.failed(new ThvError('aborted', 'the client left'))
    expect(health.admit()).toBeUndefined()
    health.succeeded()
    expect([health.circuit, health.status, health.admit()]).toEqual(['closed', 'healthy', undefined])
  })

  it('never opens a circuit that is not enabled', () => {
    const health = new MemberHealth(new TestClock(), { ...SETTINGS, circuit: { ...SETTINGS.circuit, enabled: false } })
    for (let i = 0; i < 10; i++) health.failed(TIMEOUT)
    expect([health.circuit, health.admit()]).toEqual(['closed', undefined])
  })

  it.each([
    [new McpErrorResponse({ code: -32603, message: 'x' }), 'alive'],
    [new McpHttpError('mcp_auth_required', 'x', { status: 401 }), 'alive'],
    [new McpHttpError('mcp_http_status', 'x', { status: 500 }), 'alive'],
    [new McpHttpError('mcp_http_status', 'x', { status: 503 }), 'backend_unavailable'],
    [new LocalRefusal({ code: -32602, message: 'x' }), undefined],
    [TIMEOUT, 'timeout'],
    [new ThvError('mcp_stream_broken', 'x'), 'connection_failed'],
    [new ThvError('aborted', 'x'), undefined],
    [new TypeError('x'), undefined],
  ])('%s: %s', (error, category) => {
    expect(failureCategory(error)).toBe(category)
  })
})
