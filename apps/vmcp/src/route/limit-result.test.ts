import { OutboundError } from '@thv/http/outbound/outbound-error'
import { McpHttpError } from '@thv/mcp/client/client-errors'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { limitResult } from './limit-result.ts'
import { isIdempotentCall, mayRepeat } from './retry-policy.ts'

const text = (value: string) => ({ type: 'text', text: value })

describe('limits of results', () => {
  it('leaves a small result alone, and answers a large one with an error or a shorter text', () => {
    const small = { content: [text('hello')] }
    expect(limitResult(small, { maxBytes: 200, onExceed: 'error' })).toBe(small)
    const large = { content: [text('x'.repeat(1_000))] }
    expect(limitResult(large, { maxBytes: 200, onExceed: 'error' })).toMatchObject({
      isError: true,
      content: [text('The result has 1039 bytes, and the limit is 200.')],
    })
    expect(JSON.stringify(limitResult(large, { maxBytes: 200, onExceed: 'truncate' }))).toMatch(/x{20,}\\n\[\d+ bytes left out\]/)
  })

  it('never cuts structured content', () => {
    const result = { content: [text('short')], structuredContent: { long: 'y'.repeat(1_000) } }
    expect(limitResult(result, { maxBytes: 500, onExceed: 'truncate' })).toMatchObject({ isError: true })
  })

  it('leaves a question of the backend alone, and keeps the mark of an error', () => {
    const question = { resultType: 'input_required', inputRequests: { a: 'x'.repeat(1_000) } }
    expect(limitResult(question, { maxBytes: 200, onExceed: 'error' })).toBe(question)
    const failed = { content: [text('x'.repeat(1_000))], isError: true }
    expect(limitResult(failed, { maxBytes: 300, onExceed: 'truncate' })).toMatchObject({
      isError: true,
      content: [text(expect.anything())],
    })
  })

  it('keeps as much of a text as fits', () => {
    const characters = fc.oneof(fc.string({ unit: 'binary', minLength: 400, maxLength: 800 }), fc.constant('\n"\\\u0000'.repeat(200)))
    fc.assert(
      fc.property(characters, (value) => {
        const maxBytes = 300
        const bytes = Buffer.byteLength(JSON.stringify(limitResult({ content: [text(value)] }, { maxBytes, onExceed: 'truncate' })))
        expect(bytes).toBeLessThanOrEqual(maxBytes)
        expect(bytes).toBeGreaterThan(maxBytes - 48)
      }),
    )
  })

  it('stays within the limit, whole characters only', () => {
    const part = fc.oneof(fc.string({ maxLength: 400 }), fc.string({ unit: 'grapheme', maxLength: 400 })).map(text)
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), fc.integer({ min: 100, max: 2_000 }), (content, maxBytes) => {
        const limited = JSON.stringify(limitResult({ content }, { maxBytes, onExceed: 'truncate' }))
        expect(Buffer.byteLength(limited)).toBeLessThanOrEqual(Math.max(maxBytes, 120))
        expect(limited).not.toMatch(/\\ud[89ab][0-9a-f]{2}(?!\\ud)/i)
      }),
    )
  })
})

describe('calls that may be sent again', () => {
  const policy = { attempts: 3, backoffMs: 1, on: new Set(['connect', 'unavailable']) }
  const refused = (sent: boolean) => new OutboundError('backend_refused', 'x', { sent, answered: false })
  const http = (status: number) => new McpHttpError('mcp_http_status', 'x', { status })

  it.each([
    ['never sent', refused(false), false, true],
    ['sent', refused(true), true, false],
    ['blocked', new OutboundError('backend_blocked', 'x', { sent: false, answered: false }), true, false],
    ['503, idempotent', http(503), true, true],
    ['503, not idempotent', http(503), false, false],
    ['500', http(500), true, false],
    ['a fault', new TypeError('x'), true, false],
  ])('%s', (_, error, isIdempotent, expected) => {
    expect(mayRepeat(error, policy, isIdempotent)).toBe(expected)
    expect(mayRepeat(error, { ...policy, on: new Set() }, isIdempotent)).toBe(false)
  })

  it('asks a tool whether it may be called twice', () => {
    expect(isIdempotentCall('resources/read', undefined)).toBe(true)
    expect(isIdempotentCall('tools/call', undefined)).toBe(false)
    expect(isIdempotentCall('tools/call', { annotations: { readOnlyHint: true } })).toBe(true)
    expect(isIdempotentCall('tools/call', { annotations: { idempotentHint: true } })).toBe(true)
    expect(isIdempotentCall('tools/call', { annotations: { destructiveHint: false } })).toBe(false)
  })
})
