import { OutboundError } from '@thv/http/outbound/outbound-error'
import { ThvError } from '@thv/kernel/errors'
import { describe, expect, it } from 'vitest'
import { rejectionOf } from './backend-rejection.ts'

const SECRET = 'http://10.1.2.3:8080/mcp?key=hush'

describe('the rejection of a failed call', () => {
  it.each([
    ['backend_refused', false, 503, false],
    ['backend_dns', false, 503, false],
    ['backend_connect_timeout', false, 503, false],
    ['backend_unreachable', false, 503, false],
    ['backend_busy', false, 503, false],
    ['backend_blocked', false, 503, false],
    ['backend_tls', false, 503, false],
    ['backend_reset', false, 503, false],
    ['backend_reset', true, 502, true],
    ['backend_protocol', true, 502, true],
    ['backend_response_too_large', true, 502, true],
    ['backend_timeout', true, 504, true],
  ] as const)('%s, sent: %s, is %i', (code, sent, status, mayHaveRun) => {
    const rejection = rejectionOf(new OutboundError(code, SECRET, { sent, answered: false }))
    expect(rejection).toMatchObject({ httpStatus: status, data: { mayHaveRun } })
    expect(rejection?.error === 'backend_connection_lost').toBe(code === 'backend_reset' && sent)
    expect(JSON.stringify(rejection)).not.toContain('10.1.2.3')
    if (status === 503) expect(rejection?.headers).toEqual({ 'retry-after': '2' })
  })

  it('of our own limits', () => {
    expect(rejectionOf(new ThvError('timeout', SECRET))).toMatchObject({ httpStatus: 504 })
    expect(rejectionOf(new ThvError('message_too_large', SECRET))).toMatchObject({ httpStatus: 502 })
    expect(rejectionOf(new ThvError('aborted', SECRET))).toMatchObject({ error: 'draining' })
  })

  it('is nothing when it is a fault of ours', () => {
    expect(rejectionOf(new TypeError('x'))).toBeUndefined()
    expect(rejectionOf(new ThvError('usage', 'x'))).toBeUndefined()
  })
})
