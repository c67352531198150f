import { wireErrors } from '@thv/kernel/error-registry'
import { describe, expect, it } from 'vitest'
import {
  answerOf,
  errorObjectOf,
  headerMismatch,
  isRejection,
  methodNotAllowed,
  missingCapability,
  reject,
  retryLater,
  sessionRequired,
  unsupportedVersion,
} from './wire-errors.ts'

const bodyOf = (rejection: Parameters<typeof answerOf>[0], id?: string | number) => JSON.parse(answerOf(rejection, id).body)

describe('wire errors', () => {
  it.each(Object.entries(wireErrors))('answers %s with its status, code and text', (name, { httpStatus, jsonRpcCode, text }) => {
    const answer = answerOf(reject(name as keyof typeof wireErrors), 'x')
    expect(answer.status).toBe(httpStatus)
    expect(answer.headers).toEqual({ 'content-type': 'application/json', 'cache-control': 'no-store' })
    expect(answer.body).toBe(JSON.stringify({ jsonrpc: '2.0', id: 'x', error: { code: jsonRpcCode, message: text } }))
  })

  it('keeps out of the ranges that belong to the standard', () => {
    const standard = [-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022]
    const legacyOnly = [-32000, -32001, -32042]
    for (const { jsonRpcCode: code } of Object.values(wireErrors)) {
      const isOwn = code < -32768 || code > -32000
      expect(isOwn || standard.includes(code) || legacyOnly.includes(code), String(code)).toBe(true)
    }
  })

  it('repeats the id exactly or leaves it out, never null', () => {
    expect(bodyOf(reject('parse_error'))).not.toHaveProperty('id')
    expect(bodyOf(reject('invalid_request'), 0).id).toBe(0)
    expect(bodyOf(reject('invalid_request'), '').id).toBe('')
  })

  it('adds a detail, data and headers, and takes another status', () => {
    const rejection = reject('missing_client_capability', { detail: 'why', data: { a: 1 }, headers: { 'x-a': 'b' }, httpStatus: 200 })
    expect(errorObjectOf(rejection)).toEqual({ code: -32021, message: 'Missing required client capability: why', data: { a: 1 } })
    expect(answerOf(rejection)).toMatchObject({ status: 200, headers: { 'x-a': 'b', 'content-type': 'application/json' } })
  })

  it('pins the data of the modern errors', () => {
    expect(bodyOf(unsupportedVersion('v9'), 1).error).toEqual({
      code: -32022,
      message: 'Unsupported protocol version',
      data: { supported: ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'], requested: 'v9' },
    })
    expect(bodyOf(missingCapability({ sampling: {} }), 1).error.data).toEqual({ requiredCapabilities: { sampling: {} } })
    expect(bodyOf(headerMismatch('Mcp-Name', 'is missing'), 1).error).toEqual({
      code: -32020,
      message: 'Header mismatch: Mcp-Name is missing',
      data: { header: 'Mcp-Name' },
    })
  })

  it('says what else HTTP wants to know', () => {
    expect(answerOf(methodNotAllowed(['POST']))).toMatchObject({ status: 405, headers: { allow: 'POST' } })
    expect(answerOf(retryLater('draining', 1_500))).toMatchObject({ status: 503, headers: { 'retry-after': '2' } })
    expect(answerOf(retryLater('backend_unavailable', 0))).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
    expect(bodyOf(sessionRequired()).error).toEqual({ code: -32000, message: 'Session required: header Mcp-Session-Id is missing' })
  })

  it('knows its own', () => {
    expect(isRejection(reject('draining'))).toBe(true)
    expect(isRejection({ protocolVersion: '' })).toBe(false)
  })
})
